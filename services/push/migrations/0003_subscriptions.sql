-- A subscription waits for its confirmation while `owed` is 'confirmation': its push service has not
-- accepted a message yet. It ends at `owed_until_s`.

CREATE INDEX subscriptions_unconfirmed ON subscriptions (owed_until_s)
    WHERE owed = 'confirmation';

-- Triggers count subscriptions, because reading all of them takes longer the more there are.
CREATE TABLE subscription_counts (
    only INTEGER PRIMARY KEY CHECK (only = 0),
    confirmed INTEGER NOT NULL,
    unconfirmed INTEGER NOT NULL
) STRICT;

INSERT INTO subscription_counts (only, confirmed, unconfirmed)
    SELECT 0, count(*), 0 FROM subscriptions;

CREATE TRIGGER subscription_added AFTER INSERT ON subscriptions BEGIN
    UPDATE subscription_counts SET
        confirmed = confirmed + (NEW.owed IS NOT 'confirmation'),
        unconfirmed = unconfirmed + (NEW.owed IS 'confirmation');
END;

CREATE TRIGGER subscription_confirmed AFTER UPDATE OF owed ON subscriptions
WHEN OLD.owed IS 'confirmation' AND NEW.owed IS NOT 'confirmation' BEGIN
    UPDATE subscription_counts SET confirmed = confirmed + 1, unconfirmed = unconfirmed - 1;
END;

CREATE TRIGGER subscription_removed AFTER DELETE ON subscriptions BEGIN
    UPDATE subscription_counts SET
        confirmed = confirmed - (OLD.owed IS NOT 'confirmation'),
        unconfirmed = unconfirmed - (OLD.owed IS 'confirmation');
END;

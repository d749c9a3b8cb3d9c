-- Registered domains of hosters, from the operator's list: their groups are never over the threshold.
CREATE TABLE hosters (
    domain TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

DROP TRIGGER groups_grow;
CREATE TRIGGER groups_grow AFTER UPDATE OF hosts ON groups
    WHEN NEW.is_over = 0 AND NEW.hosts > (SELECT threshold FROM grouping WHERE id = 1)
        AND NOT EXISTS (SELECT 1 FROM hosters WHERE domain = NEW.domain)
BEGIN
    UPDATE groups SET is_over = 1 WHERE id = NEW.id;
    UPDATE hosts SET held_back = 1 WHERE group_id = NEW.id AND last_alive IS NULL;
END;

DROP TRIGGER groups_shrink;
CREATE TRIGGER groups_shrink AFTER UPDATE OF hosts ON groups
    WHEN NEW.is_over = 1 AND (NEW.hosts <= (SELECT threshold FROM grouping WHERE id = 1)
        OR EXISTS (SELECT 1 FROM hosters WHERE domain = NEW.domain))
BEGIN
    UPDATE groups SET is_over = 0 WHERE id = NEW.id;
    UPDATE hosts SET held_back = 0 WHERE group_id = NEW.id AND held_back = 1;
END;

-- Who named a held-back host: independent sources alone, at most four a host.
CREATE TABLE namings (
    host_id     INTEGER NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    -- The group of the source, which is its registered domain: two hosts of one domain are one source.
    source      INTEGER NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    first_named INTEGER NOT NULL,
    PRIMARY KEY (host_id, source)
) STRICT, WITHOUT ROWID;

CREATE INDEX namings_source ON namings (source);

CREATE TRIGGER hosts_get_a_place AFTER UPDATE OF held_back ON hosts WHEN OLD.held_back = 1 AND NEW.held_back = 0
BEGIN
    DELETE FROM namings WHERE host_id = NEW.id;
END;

-- Starts of other hosts that held groups have not used yet, or overdrew (census::group). A new
-- census may check twenty held-back hosts at first.
ALTER TABLE grouping ADD COLUMN held_credit INTEGER NOT NULL DEFAULT 180;

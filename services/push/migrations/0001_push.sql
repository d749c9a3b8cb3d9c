-- Users, their channels, and messages that wait for them. Times are milliseconds since 1970, or
-- seconds where the name ends in _s.

PRAGMA application_id = 1181053045;

CREATE TABLE users (
    uaid BLOB PRIMARY KEY NOT NULL CHECK (length(uaid) = 16),
    connected_ms INTEGER NOT NULL,
    -- Where the user is connected: the address of a node.
    node TEXT,
    -- Counts changes: a record is replaced only as it was read.
    revision INTEGER NOT NULL DEFAULT 1,
    -- All messages without a topic up to here are done with.
    read_to_ms INTEGER NOT NULL DEFAULT 0,
    -- The last place of a message without a topic, also if the message is gone: later ones come
    -- after it.
    last_place_ms INTEGER NOT NULL DEFAULT 0,
    -- Waiting messages and the bytes of their bodies. Triggers count them, because reading all of a
    -- user's messages costs more the larger the file is.
    messages INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    expires_s INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX users_by_expiry ON users (expires_s);

CREATE TABLE channels (
    uaid BLOB NOT NULL REFERENCES users ON DELETE CASCADE,
    channel BLOB NOT NULL CHECK (length(channel) = 16),
    -- Waiting messages.
    messages INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (uaid, channel)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    uaid BLOB NOT NULL REFERENCES users ON DELETE CASCADE,
    -- The place for messages without a topic, 0 for those with one.
    sort_ms INTEGER NOT NULL,
    channel BLOB NOT NULL,
    -- '' without a topic.
    topic TEXT NOT NULL,
    -- In the order in which messages of this user arrived.
    place_ms INTEGER NOT NULL,
    version TEXT NOT NULL,
    ttl_s INTEGER NOT NULL,
    arrived_s INTEGER NOT NULL,
    expires_s INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    data TEXT,
    headers TEXT,
    UNIQUE (uaid, sort_ms, channel, topic)
-- With WITHOUT ROWID, bodies would be in the tree's inner pages too, and a million messages would
-- make it twice as deep.
) STRICT;

-- Keys that were made at the first start, and what everybody was told last.
CREATE TABLE secrets (
    name TEXT PRIMARY KEY NOT NULL,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Who wants to be told of changes in the list: nothing else is kept of them.
CREATE TABLE subscriptions (
    id INTEGER PRIMARY KEY,
    endpoint TEXT NOT NULL,
    filter TEXT NOT NULL,
    public_key BLOB NOT NULL,
    secret BLOB NOT NULL,
    -- A message about this section is still to be posted to another push service. It is worth
    -- nothing after a newer section, or at this time.
    owed TEXT,
    owed_until_s INTEGER NOT NULL DEFAULT 0,
    UNIQUE (endpoint, filter)
) STRICT;

-- For the next messages to a push service.
CREATE INDEX subscriptions_owed ON subscriptions (owed, endpoint) WHERE owed IS NOT NULL;

CREATE INDEX messages_by_expiry ON messages (expires_s);
-- For the last place, at the start.
CREATE INDEX messages_by_place ON messages (place_ms);

CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
    UPDATE users SET messages = messages + 1, bytes = bytes + NEW.bytes,
        last_place_ms = max(last_place_ms, NEW.sort_ms) WHERE uaid = NEW.uaid;
    UPDATE channels SET messages = messages + 1 WHERE uaid = NEW.uaid AND channel = NEW.channel;
END;

CREATE TRIGGER message_replaced AFTER UPDATE OF bytes ON messages BEGIN
    UPDATE users SET bytes = bytes - OLD.bytes + NEW.bytes WHERE uaid = NEW.uaid;
END;

CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
    UPDATE users SET messages = messages - 1, bytes = bytes - OLD.bytes WHERE uaid = OLD.uaid;
    UPDATE channels SET messages = messages - 1 WHERE uaid = OLD.uaid AND channel = OLD.channel;
END;

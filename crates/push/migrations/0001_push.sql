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
    expires_s INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX users_by_expiry ON users (expires_s);

CREATE TABLE channels (
    uaid BLOB NOT NULL REFERENCES users ON DELETE CASCADE,
    channel BLOB NOT NULL CHECK (length(channel) = 16),
    PRIMARY KEY (uaid, channel)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    uaid BLOB NOT NULL REFERENCES users ON DELETE CASCADE,
    -- 0 for messages with a topic.
    sort_ms INTEGER NOT NULL,
    channel BLOB NOT NULL,
    -- '' without a topic.
    topic TEXT NOT NULL,
    version TEXT NOT NULL,
    ttl_s INTEGER NOT NULL,
    arrived_s INTEGER NOT NULL,
    expires_s INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    data TEXT,
    headers TEXT,
    PRIMARY KEY (uaid, sort_ms, channel, topic)
) STRICT, WITHOUT ROWID;

CREATE INDEX messages_by_expiry ON messages (expires_s);
CREATE INDEX messages_by_sort ON messages (sort_ms);

-- Room: what each network's users take in the file, and which users never connected.

-- Networks, each under its hash of the day on which it made these users. The hash's key is in memory
-- only and changes every day. The empty hash is for users whose network is unknown.
CREATE TABLE networks (
    hash BLOB PRIMARY KEY NOT NULL,
    -- Bytes that their users take: the sum of users.held.
    held INTEGER NOT NULL DEFAULT 0,
    -- Bytes of messages for those that never connected: the sum of users.unread.
    unread INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- 0 for users from before this column.
ALTER TABLE users ADD COLUMN made_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN network BLOB NOT NULL DEFAULT x'';
-- Users from before this column may have connected.
ALTER TABLE users ADD COLUMN has_connected INTEGER NOT NULL DEFAULT 1;
ALTER TABLE users ADD COLUMN channels INTEGER NOT NULL DEFAULT 0;
-- Bytes in the file, as measured: bodies, and the rest of the rows with their indexes.
ALTER TABLE users ADD COLUMN held INTEGER AS (256 + 128 * channels + 512 * messages + bytes) VIRTUAL;
ALTER TABLE users ADD COLUMN unread INTEGER AS (iif(has_connected, 0, 512 * messages + bytes)) VIRTUAL;

UPDATE users SET channels = (SELECT count(*) FROM channels WHERE channels.uaid = users.uaid);
INSERT INTO networks (hash, held) SELECT network, sum(held) FROM users GROUP BY network;

-- For those that make room.
CREATE INDEX users_unused ON users (made_ms) WHERE has_connected = 0 AND messages = 0;
CREATE INDEX users_unread ON users (network) WHERE has_connected = 0 AND messages > 0;

CREATE TRIGGER user_added AFTER INSERT ON users BEGIN
    INSERT OR IGNORE INTO networks (hash) VALUES (NEW.network);
    UPDATE networks SET held = held + NEW.held, unread = unread + NEW.unread
        WHERE hash = NEW.network;
END;

CREATE TRIGGER user_changed AFTER UPDATE OF messages, bytes, channels, has_connected ON users
    WHEN NEW.held <> OLD.held OR NEW.unread <> OLD.unread BEGIN
    UPDATE networks SET held = held - OLD.held + NEW.held, unread = unread - OLD.unread + NEW.unread
        WHERE hash = NEW.network;
END;

CREATE TRIGGER user_removed AFTER DELETE ON users BEGIN
    UPDATE networks SET held = held - OLD.held, unread = unread - OLD.unread
        WHERE hash = OLD.network;
    DELETE FROM networks WHERE hash = OLD.network AND held <= 0;
END;

CREATE TRIGGER channel_added AFTER INSERT ON channels BEGIN
    UPDATE users SET channels = channels + 1 WHERE uaid = NEW.uaid;
END;

CREATE TRIGGER channel_removed AFTER DELETE ON channels BEGIN
    UPDATE users SET channels = channels - 1 WHERE uaid = OLD.uaid;
END;

-- Moderators' accounts, their sessions, and the login limiter's records. None of this is ever
-- published. Times are milliseconds since the Unix epoch.
PRAGMA application_id = 0x46656441; -- "FedA"

-- Keys of this file: `hold` for the keyed hashes of addresses, `device` for the cookies of known
-- browsers, `csrf` for the tokens of forms.
CREATE TABLE keys (
    name TEXT NOT NULL PRIMARY KEY,
    secret BLOB NOT NULL CHECK (length(secret) = 32)
) STRICT, WITHOUT ROWID;

CREATE TABLE moderators (
    name TEXT NOT NULL PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 64),
    -- Argon2id, in the PHC format.
    password TEXT NOT NULL,
    -- RFC 6238.
    totp_secret BLOB NOT NULL CHECK (length(totp_secret) = 20),
    -- The step of the last code that was accepted: none is accepted twice.
    totp_step INTEGER NOT NULL DEFAULT 0,
    -- Drawn when the account is added and at each reset: cookies of browsers known before are void,
    -- and so is a login that began before.
    epoch BLOB NOT NULL CHECK (length(epoch) = 16),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A code is deleted when it is used.
CREATE TABLE recovery_codes (
    moderator TEXT NOT NULL REFERENCES moderators (name) ON DELETE CASCADE,
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (moderator, hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    -- SHA-256 of the token, which only the browser has.
    token BLOB NOT NULL PRIMARY KEY CHECK (length(token) = 32),
    moderator TEXT NOT NULL REFERENCES moderators (name) ON DELETE CASCADE,
    -- SHA-256 of what tells this browser from others.
    browser BLOB NOT NULL CHECK (length(browser) = 32),
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_moderator ON sessions (moderator);

-- The login limiter's records.
CREATE TABLE holds (
    kind TEXT NOT NULL CHECK (kind IN ('address', 'user', 'device')),
    -- A keyed hash of the address, user or browser.
    key BLOB NOT NULL CHECK (length(key) = 32),
    -- The moderator, if there is one of this name. Neither an address is kept nor any other text.
    moderator TEXT,
    -- Times that count, eight bytes each, big-endian.
    times BLOB NOT NULL,
    newest INTEGER NOT NULL,
    held_until INTEGER,
    bans INTEGER NOT NULL,
    quiet_since INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- How the last peers list of a host ended. No row before the first one that this version asked for. Never published.
CREATE TABLE peers_lists (
    host_id INTEGER PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
    outcome TEXT NOT NULL CHECK (outcome IN ('complete', 'refused', 'truncated', 'failed', 'none'))
) STRICT;

-- Hosts whose peers nobody hears of from themselves: their conversations are walked through first.
CREATE INDEX peers_lists_silent ON peers_lists (host_id) WHERE outcome IN ('refused', 'none');

-- The last walk through a host's public conversations (setting `walks_per_hour`), and its back-off. Never published.
CREATE TABLE walks (
    host_id  INTEGER PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
    at       INTEGER NOT NULL,
    outcome  TEXT NOT NULL,
    requests INTEGER NOT NULL CHECK (requests >= 0),
    posts    INTEGER NOT NULL CHECK (posts >= 0),
    -- Hosts that it named, known ones as well.
    named    INTEGER NOT NULL CHECK (named >= 0),
    failures INTEGER NOT NULL CHECK (failures >= 0),
    free_at  INTEGER
) STRICT;

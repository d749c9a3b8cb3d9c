-- How many names came in lately and by whom, and the names that had no room. Ids are hashes, keyed by what stands in admission_state.

-- A row a counter above zero. Rows of windows that are over mean nothing.
CREATE TABLE admission_counters (
    -- Start of the window, in seconds since 1970: counters have windows of whole seconds.
    window_start_s INTEGER NOT NULL CHECK (window_start_s >= 0),
    counts         TEXT NOT NULL CHECK (counts IN ('key', 'domain', 'public', 'source', 'shared_suffix', 'total')),
    id             INTEGER NOT NULL CHECK (id >= 0),
    count          INTEGER NOT NULL CHECK (count > 0),
    PRIMARY KEY (window_start_s, counts, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE admission_state (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    -- Drawn here, so that nobody can choose who shares a counter.
    hash_key       BLOB NOT NULL CHECK (length(hash_key) = 16),
    -- The window that was entered last; none before the first.
    window_start_s INTEGER
) STRICT;
INSERT INTO admission_state (id, hash_key) VALUES (1, randomblob(16));

-- Names that had no room. All moments are seconds since 1970.
CREATE TABLE waiting (
    name          TEXT PRIMARY KEY,
    -- What had no room.
    room          TEXT NOT NULL CHECK (room IN ('rule', 'source', 'shared_suffix', 'total')),
    first_named_s INTEGER NOT NULL,
    last_named_s  INTEGER NOT NULL,
    -- The counter of the source that named it last.
    source        INTEGER NOT NULL CHECK (source >= 0),
    -- A bit for each independent source that named it.
    named_by      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The census: a row a host, its last verdicts, the names that were forgotten, the dumps that were written.
-- All moments are milliseconds since 1970 in UTC. Words are those of census::state.

-- "Fedi" in ASCII, so that a file of another program is never taken for a census.
PRAGMA application_id = 1181049961;

CREATE TABLE hosts (
    id            INTEGER PRIMARY KEY,
    -- Canonical form (design §8). Its unique index serves look-ups by name.
    name          TEXT NOT NULL UNIQUE,
    state         TEXT NOT NULL
        CHECK (state IN ('discovered', 'alive', 'dying', 'dead', 'moving', 'moved', 'opted_out', 'parked')),
    since         INTEGER NOT NULL,
    -- What the states carry: each column belongs to some states and is NULL or 0 in the others.
    state_before  TEXT CHECK (state_before IN ('discovered', 'alive', 'dead', 'moved')),
    count         INTEGER NOT NULL DEFAULT 0 CHECK (count >= 0),
    gone          INTEGER NOT NULL DEFAULT 0 CHECK (gone IN (0, 1)),
    gone_last     INTEGER NOT NULL DEFAULT 0 CHECK (gone_last IN (0, 1)),
    target        TEXT,
    opted_out_by  TEXT CHECK (opted_out_by IN ('robots', 'owner', 'moderator')),
    parked_why    TEXT CHECK (parked_why IN ('invalid_name', 'moderator')),
    hidden        INTEGER NOT NULL DEFAULT 0 CHECK (hidden IN (0, 1)),
    refuses       INTEGER NOT NULL DEFAULT 0 CHECK (refuses IN (0, 1)),
    software      TEXT,
    version       TEXT,
    first_seen    INTEGER NOT NULL,
    last_alive    INTEGER,
    last_checked  INTEGER,
    due           INTEGER,
    in_flight     INTEGER NOT NULL DEFAULT 0 CHECK (in_flight IN (0, 1)),
    -- Checks in a row that a crash of ours cut short; checks in a row that ended in a fault of ours.
    interruptions INTEGER NOT NULL DEFAULT 0 CHECK (interruptions >= 0),
    faults        INTEGER NOT NULL DEFAULT 0 CHECK (faults >= 0),
    doublings     INTEGER NOT NULL DEFAULT 0 CHECK (doublings BETWEEN 0 AND 2),
    alive_count   INTEGER NOT NULL DEFAULT 0 CHECK (alive_count >= 0),
    -- What last happened to it on our side without a verdict.
    last_note     TEXT,
    CHECK ((state IN ('dying', 'moving')) = (state_before IS NOT NULL)),
    CHECK (state IN ('dying', 'moving') OR count = 0),
    CHECK (state = 'dying' OR gone = 0),
    CHECK (gone = 1 OR gone_last = 0),
    CHECK ((state IN ('moving', 'moved')) = (target IS NOT NULL)),
    CHECK ((state = 'opted_out') = (opted_out_by IS NOT NULL)),
    CHECK ((state = 'parked') = (parked_why IS NOT NULL)),
    -- Who opted out by word of mouth, and the parked, are never asked (invariant I7).
    CHECK (due IS NULL OR (state <> 'parked' AND (state <> 'opted_out' OR opted_out_by = 'robots')))
) STRICT;

-- Picks of due hosts, the oldest first.
CREATE INDEX hosts_due ON hosts (due) WHERE in_flight = 0 AND due IS NOT NULL;

-- What a crash left behind, and how much is going on.
CREATE INDEX hosts_in_flight ON hosts (id) WHERE in_flight = 1;

-- The dump, sorted, without touching the table: it covers all that the rule of listing asks for.
CREATE INDEX hosts_listable ON hosts (name, state, state_before, gone, target, last_alive, hidden)
    WHERE hidden = 0 AND last_alive IS NOT NULL AND state IN ('alive', 'dying', 'moving');

-- Counts for status and metrics.
CREATE INDEX hosts_state ON hosts (state, hidden);

-- The last verdicts of a host; `seq` counts per host, since clocks jump and moments don't sort.
CREATE TABLE history (
    host_id INTEGER NOT NULL REFERENCES hosts (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    reason  TEXT,
    PRIMARY KEY (host_id, seq)
) STRICT, WITHOUT ROWID;

-- Names that never lived for a year: 64 bits each. The hash is keyed with chance drawn here, so that nobody can make a name up that shuts out
-- another one.
CREATE TABLE forgotten (
    hash INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE forgotten_key (
    id  INTEGER PRIMARY KEY CHECK (id = 1),
    key BLOB NOT NULL CHECK (length(key) = 16)
) STRICT;
INSERT INTO forgotten_key (id, key) VALUES (1, randomblob(16));

CREATE TABLE dumps (
    id    INTEGER PRIMARY KEY,
    at    INTEGER NOT NULL,
    names INTEGER NOT NULL CHECK (names >= 0)
) STRICT;

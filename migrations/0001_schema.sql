-- The census: a row per host, its last verdicts, names that were forgotten, lists that were published; how many names came
-- in lately; hosts by registered domain; public lists; counts per day.
-- All moments are milliseconds since 1970 in UTC, except where a column's name says seconds. Words are those of census::state.

-- "Fedi" in ASCII, so that a file of another program is never taken for a census.
PRAGMA application_id = 1181049961;

-- Hosts by registered domain, what the operator decided about whole domains, and every such decision.

-- Of how many hosts a group grows over the threshold (setting `group_threshold`), which the triggers below go by. Written at each start.
CREATE TABLE grouping (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    threshold INTEGER NOT NULL CHECK (threshold >= 1)
) STRICT;
INSERT INTO grouping (id, threshold) VALUES (1, 10);

CREATE TABLE groups (
    id          INTEGER PRIMARY KEY,
    -- The registered domain.
    domain      TEXT NOT NULL UNIQUE,
    -- All of its hosts, whatever their states. The triggers below alone write it.
    hosts       INTEGER NOT NULL DEFAULT 0 CHECK (hosts >= 0),
    -- More hosts than the threshold. The triggers below alone write it.
    is_over     INTEGER NOT NULL DEFAULT 0 CHECK (is_over IN (0, 1)),
    decision    TEXT NOT NULL DEFAULT 'none' CHECK (decision IN ('none', 'allow', 'deny', 'limit')),
    a_day       INTEGER CHECK (a_day BETWEEN 1 AND 2147483647),
    reason      TEXT,
    decided_at  INTEGER,
    -- The span that is counted in: its start, which is the first ask in it, and how many were asked. For groups that are paced alone.
    asked_since INTEGER,
    asked       INTEGER NOT NULL DEFAULT 0 CHECK (asked >= 0),
    -- What two made-up names below the domain showed when they were last answered: `no`, the `same_place`, or places `apart`.
    -- NULL before the first answer.
    wildcard         TEXT CHECK (wildcard IN ('no', 'same_place', 'apart')),
    -- When that was.
    wildcard_at      INTEGER CHECK ((wildcard IS NULL) = (wildcard_at IS NULL)),
    -- When they were last looked up, whatever the outcome.
    wildcard_tried   INTEGER,
    -- Why the last look-up showed nothing; NULL when it showed something.
    wildcard_trouble TEXT,
    CHECK ((decision = 'limit') = (a_day IS NOT NULL)),
    CHECK ((decision = 'none') = (reason IS NULL)),
    CHECK ((decision = 'none') = (decided_at IS NULL))
) STRICT;

-- How many are held, for `status`, and which of them was looked at longest ago.
CREATE INDEX groups_over ON groups (decision, wildcard_tried, wildcard_trouble) WHERE is_over = 1;

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
    -- NULL until the host is grouped, which the census does soon after it came in: only it knows the list of public suffixes.
    group_id      INTEGER REFERENCES groups (id),
    -- It came in, or had never responded, when its group was over the threshold.
    held_back     INTEGER NOT NULL DEFAULT 0 CHECK (held_back IN (0, 1)),
    -- The class of a due host (census::class): 0 living, 1 new, 2 retry, 3 dead. Computed from what it depends on, so that no
    -- write can forget it; stored nowhere but in the index below.
    class         INTEGER NOT NULL GENERATED ALWAYS AS (
        CASE
            WHEN state = 'alive' OR (state_before = 'alive' AND state IN ('dying', 'moving')) THEN 0
            WHEN state = 'discovered' AND last_note IS NULL THEN 1
            WHEN state IN ('discovered', 'dying', 'moving') THEN 2
            ELSE 3
        END
    ) VIRTUAL,
    CHECK ((state IN ('dying', 'moving')) = (state_before IS NOT NULL)),
    CHECK (state IN ('dying', 'moving') OR count = 0),
    CHECK (state = 'dying' OR gone = 0),
    CHECK (gone = 1 OR gone_last = 0),
    CHECK ((state IN ('moving', 'moved')) = (target IS NOT NULL)),
    CHECK ((state = 'opted_out') = (opted_out_by IS NOT NULL)),
    -- Who opted out by word of mouth, and the parked, are never asked (invariant I7).
    CHECK (due IS NULL OR (state <> 'parked' AND (state <> 'opted_out' OR opted_out_by = 'robots')))
) STRICT;

-- Due hosts, the oldest of a class first: what a take costs depends on how many are taken, and neither on how many hosts
-- there are nor on which others are due. A question about all due hosts is one about each class.
CREATE INDEX hosts_due_in_class ON hosts (class, due) WHERE in_flight = 0 AND due IS NOT NULL;

-- What a crash left behind, and how much is going on.
CREATE INDEX hosts_in_flight ON hosts (id) WHERE in_flight = 1;

-- The published list, sorted: all that the rule of listing needs and all that is published of a host, so that writing a
-- million rows reads this index alone, from one end to the other.
CREATE INDEX hosts_listable ON hosts
    (name, state, state_before, gone, target, last_alive, hidden, held_back, group_id, software, version, first_seen)
    WHERE hidden = 0 AND last_alive IS NOT NULL AND state IN ('alive', 'dying', 'moving');

-- A name that has just come in belongs to no group and needs no entry here: `hosts_ungrouped` finds it.
CREATE INDEX hosts_group ON hosts (group_id, held_back) WHERE group_id IS NOT NULL;

CREATE INDEX hosts_ungrouped ON hosts (id) WHERE group_id IS NULL;

-- Counts for status and metrics.
CREATE INDEX hosts_state ON hosts (state, hidden);

CREATE TRIGGER hosts_come_grouped AFTER INSERT ON hosts WHEN NEW.group_id IS NOT NULL
BEGIN
    UPDATE groups SET hosts = hosts + 1 WHERE id = NEW.group_id;
    UPDATE hosts SET held_back = 1
        WHERE id = NEW.id AND last_alive IS NULL AND EXISTS (SELECT 1 FROM groups WHERE id = NEW.group_id AND is_over = 1);
END;

CREATE TRIGGER hosts_change_group AFTER UPDATE OF group_id ON hosts WHEN NEW.group_id IS NOT OLD.group_id
BEGIN
    UPDATE groups SET hosts = hosts - 1 WHERE id = OLD.group_id;
    UPDATE groups SET hosts = hosts + 1 WHERE id = NEW.group_id;
    DELETE FROM groups WHERE id = OLD.group_id AND hosts = 0 AND decision = 'none';
    -- Who lived before it came keeps its place.
    UPDATE hosts SET held_back = EXISTS (SELECT 1 FROM groups WHERE id = NEW.group_id AND is_over = 1) AND (held_back = 1 OR last_alive IS NULL)
        WHERE id = NEW.id;
END;

CREATE TRIGGER hosts_go AFTER DELETE ON hosts WHEN OLD.group_id IS NOT NULL
BEGIN
    UPDATE groups SET hosts = hosts - 1 WHERE id = OLD.group_id;
    DELETE FROM groups WHERE id = OLD.group_id AND hosts = 0 AND decision = 'none';
END;

CREATE TRIGGER groups_grow AFTER UPDATE OF hosts ON groups
    WHEN NEW.is_over = 0 AND NEW.hosts > (SELECT threshold FROM grouping WHERE id = 1)
BEGIN
    UPDATE groups SET is_over = 1 WHERE id = NEW.id;
    UPDATE hosts SET held_back = 1 WHERE group_id = NEW.id AND last_alive IS NULL;
END;

CREATE TRIGGER groups_shrink AFTER UPDATE OF hosts ON groups
    WHEN NEW.is_over = 1 AND NEW.hosts <= (SELECT threshold FROM grouping WHERE id = 1)
BEGIN
    UPDATE groups SET is_over = 0 WHERE id = NEW.id;
    UPDATE hosts SET held_back = 0 WHERE group_id = NEW.id AND held_back = 1;
END;

-- Every decision about a group, the first to the last.
CREATE TABLE group_decisions (
    id       INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    -- Not the group's id: a group may go, what was decided about it stays.
    domain   TEXT NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('none', 'allow', 'deny', 'limit')),
    a_day    INTEGER,
    reason   TEXT NOT NULL,
    -- Who decided, and how.
    who      TEXT NOT NULL
) STRICT;

CREATE INDEX group_decisions_domain ON group_decisions (domain, id);

-- One that is replaced would be deleted without the next trigger being asked.
CREATE TRIGGER group_decisions_come_last BEFORE INSERT ON group_decisions WHEN EXISTS (SELECT 1 FROM group_decisions WHERE id >= NEW.id AND NEW.id > 0)
BEGIN
    SELECT RAISE(ABORT, 'decisions are never changed');
END;

CREATE TRIGGER group_decisions_stay BEFORE DELETE ON group_decisions
BEGIN
    SELECT RAISE(ABORT, 'decisions are kept for ever');
END;

CREATE TRIGGER group_decisions_stand BEFORE UPDATE ON group_decisions
BEGIN
    SELECT RAISE(ABORT, 'decisions are never changed');
END;

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

-- What is remembered of each public list that is read on a schedule, by the name that the operator gave it. Times in milliseconds since 1970.

CREATE TABLE sources (
    name          TEXT PRIMARY KEY,
    -- When it was last asked for, whatever came of it.
    tried         INTEGER,
    -- When its names were last taken, and how many different ones it held then.
    taken         INTEGER,
    taken_names   INTEGER CHECK (taken_names >= 0),
    -- Since when it is paused for having grown too fast, how many names it held then and how many before.
    paused        INTEGER,
    paused_names  INTEGER CHECK (paused_names >= 0),
    paused_before INTEGER CHECK (paused_before >= 0),
    -- What was the matter when it was last tried.
    trouble       TEXT,
    CHECK ((taken IS NULL) = (taken_names IS NULL)),
    CHECK ((paused IS NULL) = (paused_names IS NULL)),
    CHECK ((paused IS NULL) = (paused_before IS NULL))
) STRICT;

-- What each day's last list was like, for plots over time: counts alone, no names. Bounded by the program, which keeps three years.

-- A day in UTC, as days since 1970.
CREATE TABLE days (
    day      INTEGER PRIMARY KEY,
    -- Listed hosts of software that is not among the day's most frequent, or of none that is known.
    others   INTEGER NOT NULL CHECK (others >= 0),
    -- Hosts that came onto the list on this day, and that left it, over all of the day's lists.
    appeared INTEGER NOT NULL CHECK (appeared >= 0),
    died     INTEGER NOT NULL CHECK (died >= 0)
) STRICT;

-- Known hosts by state; a state without a row had none.
CREATE TABLE day_states (
    day   INTEGER NOT NULL REFERENCES days (day) ON DELETE CASCADE,
    state TEXT NOT NULL,
    hosts INTEGER NOT NULL CHECK (hosts >= 0),
    PRIMARY KEY (day, state)
) STRICT, WITHOUT ROWID;

-- Listed hosts by software, the most frequent first.
CREATE TABLE day_software (
    day      INTEGER NOT NULL REFERENCES days (day) ON DELETE CASCADE,
    place    INTEGER NOT NULL,
    software TEXT NOT NULL,
    hosts    INTEGER NOT NULL CHECK (hosts >= 0),
    PRIMARY KEY (day, place)
) STRICT, WITHOUT ROWID;

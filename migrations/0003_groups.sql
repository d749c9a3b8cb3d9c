-- Hosts by registered domain, what the operator decided about whole domains, and every such decision for ever.

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
    CHECK ((decision = 'limit') = (a_day IS NOT NULL)),
    CHECK ((decision = 'none') = (reason IS NULL)),
    CHECK ((decision = 'none') = (decided_at IS NULL))
) STRICT;

-- How many are held, for `status`.
CREATE INDEX groups_over ON groups (decision) WHERE is_over = 1;

-- NULL until the host is grouped, which the census does soon after it came in: only it knows the list of public suffixes.
ALTER TABLE hosts ADD COLUMN group_id INTEGER REFERENCES groups (id);

-- It came in, or had never lived, when its group was over the threshold.
ALTER TABLE hosts ADD COLUMN held_back INTEGER NOT NULL DEFAULT 0 CHECK (held_back IN (0, 1));

CREATE INDEX hosts_group ON hosts (group_id, held_back);

CREATE INDEX hosts_ungrouped ON hosts (id) WHERE group_id IS NULL;

-- The same as before with the two columns that the rule of listing asks for besides.
DROP INDEX hosts_listable;
CREATE INDEX hosts_listable ON hosts (name, state, state_before, gone, target, last_alive, hidden, held_back, group_id)
    WHERE hidden = 0 AND last_alive IS NOT NULL AND state IN ('alive', 'dying', 'moving');

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

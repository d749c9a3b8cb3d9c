-- Moderators' decisions about single hosts, in order, with their author. Never published.
CREATE TABLE host_decisions (
    id       INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    -- Not the host's id: a host may be forgotten, what was decided about it stays.
    host     TEXT NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('take_out', 'put_back')),
    reason   TEXT NOT NULL,
    -- Who decided, and how.
    who      TEXT NOT NULL
) STRICT;

CREATE INDEX host_decisions_host ON host_decisions (host, id);

-- A replaced row would be deleted without the next trigger.
CREATE TRIGGER host_decisions_come_last BEFORE INSERT ON host_decisions
    WHEN EXISTS (SELECT 1 FROM host_decisions WHERE id >= NEW.id AND NEW.id > 0)
BEGIN
    SELECT RAISE(ABORT, 'decisions are never changed');
END;

CREATE TRIGGER host_decisions_stay BEFORE DELETE ON host_decisions
BEGIN
    SELECT RAISE(ABORT, 'decisions are kept for ever');
END;

CREATE TRIGGER host_decisions_stand BEFORE UPDATE ON host_decisions
BEGIN
    SELECT RAISE(ABORT, 'decisions are never changed');
END;

-- Groups that were decided about, for the moderators' pages.
CREATE INDEX groups_decided ON groups (decided_at) WHERE decided_at IS NOT NULL;

-- An owner and a moderator can both have opted a host out. `opted_out_by` names the first of them
-- and this column the other, so that neither takes the other's opt-out back.
ALTER TABLE hosts ADD COLUMN also_opted_out_by TEXT CHECK (also_opted_out_by IN ('owner', 'moderator'));

-- The classes of due hosts (census::class), so that no crowd of one kind stands before all others in the only line.

-- 0 living, 1 new, 2 retry, 3 dead. Computed from what it depends on, so that no write can forget it; stored nowhere but in the index below.
ALTER TABLE hosts ADD COLUMN class INTEGER NOT NULL GENERATED ALWAYS AS (
    CASE
        WHEN state = 'alive' OR (state_before = 'alive' AND state IN ('dying', 'moving')) THEN 0
        WHEN state = 'discovered' AND last_note IS NULL THEN 1
        WHEN state IN ('discovered', 'dying', 'moving') THEN 2
        ELSE 3
    END
) VIRTUAL;

-- Picks of due hosts, the oldest of a class first: what a pick costs depends on how many are picked, and neither on how many hosts there are nor on who
-- else is due. In the place of the index of all due hosts: a question about all of them is one about each class.
CREATE INDEX hosts_due_in_class ON hosts (class, due) WHERE in_flight = 0 AND due IS NOT NULL;
DROP INDEX hosts_due;

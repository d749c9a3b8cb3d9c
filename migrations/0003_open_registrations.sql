-- NodeInfo's `openRegistrations`, when the host last lived. NULL if it did not say.
ALTER TABLE hosts ADD COLUMN open_registrations INTEGER CHECK (open_registrations IN (0, 1));

-- This index has all that is published of a host, so that a list reads it alone.
DROP INDEX hosts_listable;
CREATE INDEX hosts_listable ON hosts
    (name, state, state_before, gone, target, last_alive, hidden, held_back, group_id, software, version, first_seen,
     open_registrations)
    WHERE hidden = 0 AND last_alive IS NOT NULL AND state IN ('alive', 'dying', 'moving');

-- The fork that an instance ran when the host last responded. NULL if nothing named one.
ALTER TABLE hosts ADD COLUMN variant TEXT;

DROP INDEX hosts_listable;
CREATE INDEX hosts_listable ON hosts
    (name, state, state_before, gone, target, last_alive, hidden, held_back, group_id, software, version, first_seen,
     open_registrations, variant)
    WHERE hidden = 0 AND last_alive IS NOT NULL AND state IN ('alive', 'dying', 'moving');

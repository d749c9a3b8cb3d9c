-- Hosts that a decision about their group freed. When it is taken back, those that had responded are held back again, and what
-- speaks for all of them is still there.
CREATE TABLE freed (
    host_id       INTEGER PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
    had_responded INTEGER NOT NULL CHECK (had_responded IN (0, 1))
) STRICT;

DROP TRIGGER hosts_get_a_place;
CREATE TRIGGER hosts_get_a_place AFTER UPDATE OF held_back ON hosts
    WHEN OLD.held_back = 1 AND NEW.held_back = 0 AND NOT EXISTS (SELECT 1 FROM freed WHERE host_id = NEW.id)
BEGIN
    DELETE FROM namings WHERE host_id = NEW.id;
END;

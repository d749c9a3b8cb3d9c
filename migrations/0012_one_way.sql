-- Hosts that responded by one of two ways out just after they had failed by the other. Never published.
CREATE TABLE one_way (
    host_id INTEGER PRIMARY KEY REFERENCES hosts (id) ON DELETE CASCADE,
    way     TEXT NOT NULL CHECK (way IN ('first', 'second')),
    -- How often in a row.
    times   INTEGER NOT NULL CHECK (times > 0),
    since   INTEGER NOT NULL
) STRICT;

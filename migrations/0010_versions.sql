-- Versions of the most frequent software on each day's last list, for the spread of fixes: counts
-- alone, no names. `place` orders them, the most frequent first.

-- Full versions, which the program keeps for 400 days.
CREATE TABLE day_versions (
    day      INTEGER NOT NULL REFERENCES days (day) ON DELETE CASCADE,
    software TEXT NOT NULL,
    place    INTEGER NOT NULL,
    -- NULL: the hosts name none.
    version  TEXT,
    -- The fork. NULL: nothing names one. `(rest)`: all versions that have no row.
    variant  TEXT,
    hosts    INTEGER NOT NULL CHECK (hosts >= 0),
    PRIMARY KEY (day, software, place)
) STRICT, WITHOUT ROWID;

-- Their first two numbers, which the program keeps as long as the day.
CREATE TABLE day_minors (
    day      INTEGER NOT NULL REFERENCES days (day) ON DELETE CASCADE,
    software TEXT NOT NULL,
    place    INTEGER NOT NULL,
    minor    TEXT NOT NULL,
    hosts    INTEGER NOT NULL CHECK (hosts >= 0),
    PRIMARY KEY (day, software, place)
) STRICT, WITHOUT ROWID;

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

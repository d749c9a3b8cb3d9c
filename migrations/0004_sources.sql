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

-- Seconds for which a census is young, from its first list with a name on: while it is, it takes the
-- lists of the operator's seeds and sources whole. Ends for good.
ALTER TABLE admission_state ADD COLUMN young_left_s INTEGER NOT NULL DEFAULT 86400 CHECK (young_left_s >= 0);
UPDATE admission_state SET young_left_s = 0 WHERE EXISTS (SELECT 1 FROM dumps WHERE names > 0);

-- Whether the list was full: every name that was due when it was made had been checked once, or waited for a reason. A list
-- that an operator forced counts as full. The next list must not be much shorter than the last full one.
ALTER TABLE dumps ADD COLUMN is_full INTEGER NOT NULL DEFAULT 1 CHECK (is_full IN (0, 1));

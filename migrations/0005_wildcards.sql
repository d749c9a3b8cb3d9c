-- Whether any name below a group's domain resolves, for whoever decides about the group. Times in milliseconds since 1970.

-- What two made-up names showed when they were last answered: `no`, the `same_place`, or places `apart`. None before the first answer.
ALTER TABLE groups ADD COLUMN wildcard TEXT CHECK (wildcard IN ('no', 'same_place', 'apart'));

-- When that was.
ALTER TABLE groups ADD COLUMN wildcard_at INTEGER CHECK ((wildcard IS NULL) = (wildcard_at IS NULL));

-- When they were last looked up, whatever came of it.
ALTER TABLE groups ADD COLUMN wildcard_tried INTEGER;

-- Why the last look-up showed nothing; none when it did.
ALTER TABLE groups ADD COLUMN wildcard_trouble TEXT;

-- As before, and which of those that are held was looked at longest ago.
DROP INDEX groups_over;
CREATE INDEX groups_over ON groups (decision, wildcard_tried, wildcard_trouble) WHERE is_over = 1;

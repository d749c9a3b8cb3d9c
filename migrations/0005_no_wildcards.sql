-- Invented names below a group's domain are no longer looked up.
DROP INDEX groups_over;
ALTER TABLE groups DROP COLUMN wildcard_at;
ALTER TABLE groups DROP COLUMN wildcard;
ALTER TABLE groups DROP COLUMN wildcard_tried;
ALTER TABLE groups DROP COLUMN wildcard_trouble;

-- How many are held, for `status`.
CREATE INDEX groups_over ON groups (decision) WHERE is_over = 1;

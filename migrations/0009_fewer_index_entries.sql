-- A name that has just come in belongs to no group, and nobody looks for the hosts of none by this index: that is what `hosts_ungrouped` is for. Without an
-- entry in it, each new name costs one less, and so does its grouping.
DROP INDEX hosts_group;
CREATE INDEX hosts_group ON hosts (group_id, held_back) WHERE group_id IS NOT NULL;

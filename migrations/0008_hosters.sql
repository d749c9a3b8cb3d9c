-- Registered domains of hosters, from the operator's list: their groups are never over the threshold.
CREATE TABLE hosters (
    domain TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

DROP TRIGGER groups_grow;
CREATE TRIGGER groups_grow AFTER UPDATE OF hosts ON groups
    WHEN NEW.is_over = 0 AND NEW.hosts > (SELECT threshold FROM grouping WHERE id = 1)
        AND NOT EXISTS (SELECT 1 FROM hosters WHERE domain = NEW.domain)
BEGIN
    UPDATE groups SET is_over = 1 WHERE id = NEW.id;
    UPDATE hosts SET held_back = 1 WHERE group_id = NEW.id AND last_alive IS NULL;
END;

DROP TRIGGER groups_shrink;
CREATE TRIGGER groups_shrink AFTER UPDATE OF hosts ON groups
    WHEN NEW.is_over = 1 AND (NEW.hosts <= (SELECT threshold FROM grouping WHERE id = 1)
        OR EXISTS (SELECT 1 FROM hosters WHERE domain = NEW.domain))
BEGIN
    UPDATE groups SET is_over = 0 WHERE id = NEW.id;
    UPDATE hosts SET held_back = 0 WHERE group_id = NEW.id AND held_back = 1;
END;

-- Nodes that hold clients' connections. Users of a node that was not seen for long count as away.
CREATE TABLE nodes (
    name TEXT PRIMARY KEY NOT NULL,
    seen_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Names from before this table belong to no node.
INSERT INTO nodes (name, seen_ms) SELECT DISTINCT node, 0 FROM users WHERE node IS NOT NULL;

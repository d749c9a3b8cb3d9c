//! JSON Schemas (draft 2020-12) of the published JSON files. They are in `schema/`, and published
//! with the files.

use crate::changes::CHANGE_SCHEMA;

/// Each with its name below `data/schema/`.
pub(crate) const SCHEMAS: [(&str, &str); 6] = [
    (
        "by-software.json",
        include_str!("../../schema/by-software.json"),
    ),
    ("change.json", CHANGE_SCHEMA),
    ("index.json", include_str!("../../schema/index.json")),
    ("instance.json", include_str!("../../schema/instance.json")),
    ("nodes.json", include_str!("../../schema/nodes.json")),
    ("software.json", include_str!("../../schema/software.json")),
];

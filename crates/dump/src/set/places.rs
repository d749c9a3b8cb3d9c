//! Paths of the set's files in the public folder.

/// The published list of names. A second copy is below [`DATA_FOLDER`].
pub const NODES_FILE: &str = "nodes.json";

/// The folder of all other files, in the public folder.
pub const DATA_FOLDER: &str = "data";

/// The folder of the JSON Schemas, in the public folder.
pub const SCHEMA_FOLDER: &str = "data/schema";

/// The folder of changes from one set to the next, in the public folder.
pub const CHANGES_FOLDER: &str = "data/changes";

/// The index of all files, in their folder.
pub const INDEX_FILE: &str = "index.json";

/// The file that rows are read back from.
pub(super) const ROWS_PLACE: &str = "data/instances.ndjson";

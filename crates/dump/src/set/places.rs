//! Where the files of the set lie in the public folder.

/// The published list of names, also below [`DATA_FOLDER`].
pub const NODES_FILE: &str = "nodes.json";

/// The folder of all other files, in the public one.
pub const DATA_FOLDER: &str = "data";

/// The folder of the JSON Schemas, in the public one.
pub const SCHEMA_FOLDER: &str = "data/schema";

/// The folder of what changed from one set to the next, in the public one.
pub const CHANGES_FOLDER: &str = "data/changes";

/// What tells of all files, in their folder.
pub const INDEX_FILE: &str = "index.json";

/// Where the rows are read back from.
pub(super) const ROWS_PLACE: &str = "data/instances.ndjson";

//! Paths of the set's files in a tree.

use publish::GZIP_END;

/// The published list of names. A second copy is below [`DATA_FOLDER`].
pub const NODES_FILE: &str = "nodes.json";

/// The folder of all other files.
pub const DATA_FOLDER: &str = "data";

/// The folder of the JSON Schemas.
pub const SCHEMA_FOLDER: &str = "data/schema";

/// The folder of changes from one set to the next.
pub const CHANGES_FOLDER: &str = "data/changes";

/// The listed hosts by software.
pub(crate) const BY_SOFTWARE_PLACE: &str = "data/by-software.json";

/// The folder of the listed hosts of one software each.
pub(crate) const SOFTWARE_FOLDER: &str = "data/software";

/// The index of all files, in their folder.
pub const INDEX_FILE: &str = "index.json";

/// The feed with an entry per list.
pub(crate) const ATOM_FILE: &str = "feed.atom";

/// The feed with an entry per week.
pub(crate) const WEEKLY_ATOM_FILE: &str = "weekly.atom";

/// The file that rows are read back from.
pub(crate) const ROWS_PLACE: &str = "data/instances.ndjson";

/// Whether the file at this place in a tree belongs to the set. All others are pages.
pub fn is_of_set(place: &str) -> bool {
    let (first, _) = place.split_once('/').unwrap_or((place, ""));
    first == DATA_FOLDER || first.strip_suffix(GZIP_END).unwrap_or(first) == NODES_FILE
}

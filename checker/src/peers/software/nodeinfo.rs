//! Relays: NodeInfo itself holds their peers as `metadata.peers`, so reading them costs no request.

use crate::peers::feed::{Session, Stop};
use crate::peers::page::Shape;

/// The document's shape. A list elsewhere on the way to `metadata.peers` is read as well, because
/// all its names are only candidates.
static SHAPE: Shape = Shape::of(&["metadata", "peers"], &[]);

/// Reads the names in a document. [`Stop::Silent`] if there are none.
pub(in crate::peers) fn collect(session: &mut Session<'_>, document: &[u8]) -> Result<(), Stop> {
    match session.read(document, &SHAPE)?.items {
        0 => Err(Stop::Silent),
        _ => Ok(()),
    }
}

//! The error of a list that is not in its format.

/// Why what was read is no list of its format. What there is to tell of it, its elements, is
/// counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no list of that format")]
pub(crate) struct NotAList;

//! The error of a list that is not in its format.

/// The text is no list of its format. It has no details: the elements are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a list of that format")]
pub(crate) struct NotAList;

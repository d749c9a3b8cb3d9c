//! The guard before publishing (invariant I11): if a list shrank too much, a fault on our side is
//! more likely than a real change. It compares the new dump with the last full one: a dump that was
//! made while a backlog of names was never checked says little about the next one's size.

use thiserror::Error;

/// A dump with less than this percentage of the last full one's names is held back. On an ordinary
/// day the list changes by less than one per cent.
const PERCENT_MIN: u128 = 70;

/// Whether an operator wants to publish the dump whatever its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Hold it back if it shrank too much.
    No,
    /// Publish it: an operator has looked at it.
    Yes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the new list has {names} names and the last full one {previous}: less than {PERCENT_MIN} %, so it is held back and the published one stays; if this is right, run `fedicensus dump --force`"
)]
pub struct HeldBack {
    /// Names in the last full dump.
    pub previous: u64,
    pub names: u64,
}

/// Checks the size of a dump of `names` names against the last full one's. Without one there is
/// nothing to compare with: a young list grows, and a responding host stays on it for a week of
/// failures.
///
/// # Errors
/// Fails if it has less than 70 % of them and no operator forces it.
pub fn guard(previous_names: Option<u64>, names: u64, force: Force) -> Result<(), HeldBack> {
    match (previous_names, force) {
        (Some(previous), Force::No)
            if u128::from(names) * 100 < u128::from(previous) * PERCENT_MIN =>
        {
            Err(HeldBack { previous, names })
        }
        (Some(_) | None, Force::No | Force::Yes) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(previous: Option<u64>, names: u64, passes: bool) {
        assert_eq!(
            guard(previous, names, Force::No).is_ok(),
            passes,
            "{previous:?} {names}"
        );
        assert_eq!(guard(previous, names, Force::Yes), Ok(()));
    }

    #[test]
    fn a_dump_below_seventy_percent_is_held_back_until_forced() {
        check(None, 0, true);
        check(Some(0), 0, true);
        check(Some(1), 0, false);
        check(Some(1), 1, true);
        check(Some(10), 7, true);
        check(Some(10), 6, false);
        check(Some(1000), 700, true);
        check(Some(1000), 699, false);
        check(Some(1000), 5000, true);
        check(Some(u64::MAX), u64::MAX, true);
        check(Some(u64::MAX), u64::MAX / 2, false);
    }

    #[test]
    fn it_says_what_to_do() {
        let text = guard(Some(1000), 12, Force::No).unwrap_err().to_string();
        assert!(text.contains("12 names"), "{text}");
        assert!(text.contains("dump --force"), "{text}");
    }
}

//! The answers of a host give the hosts of a walk: none that they don't name, the same for the same
//! seed, and none after the walk's end.

use checker::walk::fuzzing::{Dialect, walk};
use protocol::limits::REQUESTS_MAX;

/// Separates answers: no JSON has this byte.
const BETWEEN: u8 = 0xff;

/// The first byte is the seed, whose lowest bit chooses the dialect.
pub fn check(data: &[u8]) {
    let Some((&seed, answers)) = data.split_first() else {
        return;
    };
    let dialect = match seed & 1 {
        0 => Dialect::Mastodon,
        _ => Dialect::Misskey,
    };
    let answers: Vec<&[u8]> = answers
        .split(|byte| *byte == BETWEEN)
        .take(REQUESTS_MAX as usize)
        .collect();
    let found = walk(dialect, u64::from(seed), &answers);
    assert_eq!(found, walk(dialect, u64::from(seed), &answers));
    assert!(found.answers <= answers.len());
    assert!(found.hosts.is_sorted());
    // Each host name takes at least four bytes and is in the text.
    let bytes: usize = answers.iter().map(|answer| answer.len()).sum();
    assert!(found.hosts.len() <= bytes / 4);
    assert!(found.posts as usize <= bytes);
}

//! A bounded number of the list's first lines in some order.

use std::collections::BTreeSet;

/// The lines with the smallest keys; among equal keys, the first lines.
#[derive(Debug)]
pub(crate) struct Least<K> {
    lines_max: usize,
    kept: BTreeSet<(K, String)>,
}

impl<K: Ord> Least<K> {
    pub(crate) fn new(lines_max: usize) -> Self {
        Self {
            lines_max,
            kept: BTreeSet::new(),
        }
    }

    pub(crate) fn push(&mut self, key: K, line: &str) {
        if self.kept.len() >= self.lines_max
            && self.kept.last().is_none_or(|(last, _)| *last <= key)
        {
            // Lines arrive in their own order, so a line with an equal key comes later.
            return;
        }
        self.kept.insert((key, line.to_owned()));
        if self.kept.len() > self.lines_max {
            self.kept.pop_last();
        }
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.kept.into_iter().map(|(_, line)| line).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_the_first_of_all_lines_sorted(
            lines in prop::collection::btree_map("[a-d]{1,3}", 0_u8..4, 0..40),
            max in 0_usize..12,
        ) {
            let mut least = Least::new(max);
            for (line, key) in &lines {
                least.push(Reverse(*key), line);
            }
            let mut all: Vec<_> = lines.iter().map(|(line, key)| (Reverse(*key), line)).collect();
            all.sort();
            all.truncate(max);
            let expect: Vec<_> = all.into_iter().map(|(_, line)| line.clone()).collect();
            prop_assert_eq!(least.into_lines(), expect);
        }
    }
}

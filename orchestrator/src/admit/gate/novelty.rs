//! Whether peers lists still bring new names.
//!
//! On a first day ten thousands of lists hold the same names, gigabytes of them. Once of a hundred
//! thousand listed names fewer than one in a hundred came in, one list in ten is read at a host's
//! first response. The others are read at their ordinary turn, the fourth response, some four days
//! later: a name that only they hold comes in by then.

use census::time::Jitter;

/// Listed names by which novelty is judged: some ten lists.
const JUDGED_BY: u64 = 100_000;

/// Of this number of listed names, one has to come in for every list to be read.
const NEW_ONE_IN: u64 = 100;

/// While few are new, one list in this number is read.
const SAMPLE_ONE_IN: u64 = 10;

/// Names of the last lists, and how many of them came in.
#[derive(Debug, Default)]
pub(super) struct Novelty {
    listed: u64,
    came_in: u64,
}

impl Novelty {
    pub(super) fn listed(&mut self, names: usize) {
        self.listed = self
            .listed
            .saturating_add(u64::try_from(names).unwrap_or(0));
        // The older half counts half.
        if self.listed >= 2 * JUDGED_BY {
            self.listed /= 2;
            self.came_in /= 2;
        }
    }

    pub(super) fn came_in(&mut self, names: usize) {
        self.came_in = self
            .came_in
            .saturating_add(u64::try_from(names).unwrap_or(0));
    }

    /// Whether a host's first list is read, by chance.
    pub(super) fn reads(&self, chance: Jitter) -> bool {
        let is_judged = self.listed >= JUDGED_BY;
        let is_new = self.came_in.saturating_mul(NEW_ONE_IN) >= self.listed;
        !is_judged || is_new || u64::from(chance.0) < u64::from(u32::MAX) / SAMPLE_ONE_IN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLED: Jitter = Jitter(0);
    const NOT_SAMPLED: Jitter = Jitter(u32::MAX);

    #[test]
    fn lists_are_sampled_only_while_they_bring_nothing_new() {
        let mut novelty = Novelty::default();
        novelty.listed(50_000);
        assert!(novelty.reads(NOT_SAMPLED), "too few to judge");
        novelty.listed(60_000);
        assert!(!novelty.reads(NOT_SAMPLED) && novelty.reads(SAMPLED));
        novelty.came_in(1100);
        assert!(novelty.reads(NOT_SAMPLED));
        (0..20).for_each(|_| novelty.listed(50_000));
        assert!(!novelty.reads(NOT_SAMPLED), "that was long ago");
    }
}

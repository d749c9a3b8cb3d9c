//! Entry point for the fuzz target `walks`: what a walk reads from a host's answers. Compiled only
//! for fuzzing.

use protocol::Host;

use super::mastodon;
use super::misskey::Misskey;
use super::plan::Plan;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    pub hosts: Vec<Host>,
    pub posts: u32,
    pub answers: usize,
}

/// The API that the host speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Mastodon,
    Misskey,
}

/// Gives these answers to the steps of a walk, one after the other.
pub fn walk(dialect: Dialect, seed: u64, answers: &[&[u8]]) -> Walk {
    let mut plan = Plan::new(seed);
    let mut misskey = Misskey::default();
    let mut read = 0;
    for answer in answers {
        let Some(step) = plan.next() else { break };
        let reading = match dialect {
            Dialect::Mastodon => mastodon::read(answer, &step),
            Dialect::Misskey => misskey.read(answer, &step),
        };
        plan.learn(&step, reading.unwrap_or_default());
        read = usize::saturating_add(read, 1);
    }
    Walk {
        hosts: plan.hosts().cloned().collect(),
        posts: plan.posts(),
        answers: read,
    }
}

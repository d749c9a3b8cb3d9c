//! Whatever of ours fails or is killed harms no host and loses no verdict (invariants I4 to I6).

mod crashes;
pub(crate) mod kills;
mod outages;
mod own_outages;

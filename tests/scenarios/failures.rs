//! Our own failures and kills harm no host and lose no verdict (invariants I4 to I6).

mod crashes;
pub(crate) mod kills;
mod outages;
mod own_outages;
mod push;

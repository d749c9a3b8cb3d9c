//! The table `hosts`: one row per host.

pub(crate) mod add;
pub(crate) mod commit;
pub(crate) mod opt_out;
pub(crate) mod proof;
pub(crate) mod recovery;
pub(crate) mod take;

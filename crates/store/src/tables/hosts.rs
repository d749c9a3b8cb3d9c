//! The table `hosts`: one row a host.

pub(crate) mod add;
pub(crate) mod check;
pub(crate) mod mend;
pub(crate) mod row;
pub(crate) mod word;

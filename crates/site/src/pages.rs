//! The pages. Each is a function from facts to a whole document. The templates escape what
//! strangers wrote.

pub(crate) mod assets;
mod data;
mod errors;
mod layout;
mod owners;
mod plots;
mod push;
mod rows;
mod software;
mod start;
mod why;

pub(crate) use data::data;
pub(crate) use errors::{missing, too_often};
pub(crate) use owners::owners;
pub(crate) use plots::plot_files;
pub(crate) use software::{all_software, fixes, software};
pub(crate) use start::start;
pub(crate) use why::{hosts, peers, why};

#[cfg(test)]
mod tests;

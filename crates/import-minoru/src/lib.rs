//! Imports the database of Minoru's crawler (minoru-fediverse-crawler): reads its file, and makes
//! records of the census from it.
//!
//! The crate can be deleted once no operator migrates from that crawler any more, together with
//! `orchestrator/src/cli/minoru.rs` and `orchestrator/src/serve/control/import.rs`. It reads
//! another program's database and none of the census, so its SQL is not in `crates/store`.
#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        reason = "tests reckon with numbers of their own"
    )
)]

mod file;
mod host;

pub use file::{Found, HOSTS_MAX, MinoruError, MinoruFile, PAGE_MAX};
pub use host::{MinoruHost, MinoruState, imported};

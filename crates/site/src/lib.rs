//! Rows to static pages, plots, and answers to "is my instance listed, and why not?".
//!
//! In: [`Facts`], then each listed host, sorted by name, and an answer for each host that the census knows. Out: pages, scripts, one style, a compact
//! list and shards of answers in the public folder, each file whole; nothing of ours answers a visitor. Refused: rows out of order. Memory doesn't
//! grow with the rows: what is needed again lies in unnamed files meanwhile.
//!
//! Software names and versions come from strangers: they are cut and rid of control characters by [`text`], and escaped by the templates.
#![warn(clippy::as_conversions, clippy::arithmetic_side_effects)]
#![cfg_attr(
    test,
    allow(
        clippy::as_conversions,
        clippy::arithmetic_side_effects,
        reason = "tests reckon with numbers of their own"
    )
)]

mod answers;
mod error;
pub mod facts;
pub mod history;
mod list;
mod pages;
pub mod robots;
mod software;
mod staging;
pub mod text;
mod write;

pub use answers::answer::{Answer, Salt};
pub use answers::why::{Found, Place, Why};
pub use answers::{answer, why, words};
pub use error::{SiteError, Skipped};
pub use facts::Facts;
pub use history::Day;
pub use pages::assets::CONTENT_SECURITY_POLICY;
pub use write::{Site, Staged, clear_stale};

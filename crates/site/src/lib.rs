//! Builds the static pages, plots, and answers to "is my instance listed, and why not?".
//!
//! Takes [`Facts`], each listed host, sorted by name, and an answer for each known host. Writes
//! pages, scripts, one style sheet, a compact list and shards of answers into a [`publish::Tree`].
//! No program of ours answers visitors. Rejects rows out of order. Memory does not grow with the
//! rows: data that is read again is kept in unnamed files.
//!
//! Software names and versions come from strangers. [`text`] shortens them and removes control
//! characters; the templates escape them.
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
pub mod fixes;
pub mod history;
mod keep;
mod list;
mod pages;
pub mod robots;
mod software;
pub mod text;
mod write;

pub use answers::all::Age;
pub use answers::answer::{Answer, Salt};
pub use answers::why::{Found, Place, Why};
pub use answers::{answer, why, words};
pub use error::SiteError;
pub use facts::Facts;
pub use history::Day;
pub use keep::keep;
pub use pages::assets::CONTENT_SECURITY_POLICY;
pub use write::{Site, Written};

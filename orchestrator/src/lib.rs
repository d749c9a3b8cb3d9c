//! The trusted part of Fedicensus, with one folder per subject. A check passes through these steps:
//!
//! ```text
//! due ─▶ egress ─▶ launch ─▶ lines ─▶ report ─▶ doubt ─▶ commit ─▶ publish
//!  ①               ②          ③         ④                 ⑤ ⑥       ⑦
//! ```
//!
//! `daemon` runs the loop (①), `check` contains ② to ④ on one screen and commits its verdict (⑤ ⑥),
//! `publish` writes the files (⑦). ARCHITECTURE.md has the whole table. All of them use
//! `ground`, which imports none of them.

pub mod cli;
pub mod config;
pub mod roles;

pub mod daemon;

pub mod check;
pub mod publish;

pub mod admit;
pub mod discover;
pub mod groups;

pub mod inspect;
pub mod serve;

pub mod ground;

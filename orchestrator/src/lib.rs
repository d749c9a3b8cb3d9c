//! The trusted part of Fedicensus: one module a step of the data path, in reading order.
//!
//! ```text
//! due ─▶ egress ─▶ launch ─▶ lines ─▶ report ─▶ confirm ─▶ settle ─▶ publish
//!  ①               ②          ③         ④                    ⑤ ⑥       ⑦
//! ```
//!
//! `check` is ② to ④ on one screen; `daemon` is the loop around all of it.

pub mod config;

pub mod clock;
pub mod door;
pub mod groups;
pub mod input_file;
pub mod open_files;
pub mod policy;
pub mod pressure;
pub mod slots;
pub mod tools;

pub mod daemon;

pub mod check;
pub mod egress;
pub mod lines;
pub mod report;

pub mod fault;
pub mod settle;

pub mod publish;

pub mod source;

pub mod control;
pub mod explain;
pub mod intake;
pub mod metrics;
pub mod status;

pub mod cli;

//! Answers to "is my instance listed, and why not?": files with one shard of hashed names each, and
//! the text for each answer.

pub(crate) mod all;
pub mod answer;
pub(crate) mod badge;
pub(crate) mod shards;
mod sorted;
pub mod why;
pub mod words;

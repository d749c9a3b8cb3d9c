//! Answers to "is my instance listed, and why not?": a shard of hashed names a file, and the words
//! for each answer.

pub mod answer;
pub(crate) mod shards;
mod sorted;
pub mod why;
pub mod words;

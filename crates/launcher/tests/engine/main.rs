//! The launcher on a real engine, whose socket `FEDICENSUS_TEST_ENGINE` names. Without that
//! variable these tests do nothing.
//!
//! They build an image from `tests/fixtures/victim.rs`, and remove it and all its containers
//! afterwards.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod disturbed;
#[cfg(test)]
mod images;
#[cfg(test)]
mod stories;

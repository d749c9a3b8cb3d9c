//! The launcher on a real engine, whose socket `FEDICENSUS_TEST_ENGINE` names; without it nothing is tested here.
//!
//! It builds an image of its own from `tests/fixtures/victim.rs`, and removes it and all its containers afterwards.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod disturbed;
#[cfg(test)]
mod images;
#[cfg(test)]
mod slots;
#[cfg(test)]
mod stories;

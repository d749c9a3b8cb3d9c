//! A checker that its server has taken over, tried against happened (invariants I1, I3, I4, I9).
//!
//! `fixtures/adversary` is the attacker: a program in place of the checker's, started exactly as a
//! checker is, through gateway, gate and engine. `confinement` lets it try to get out of its
//! container, `wire` lets it misuse the one thing it has, its stdout, against the whole census.
//! Both write what they saw to `target/tables/adversary.md`.

mod confinement;
mod deliveries;
mod expected;
mod guests;
mod standin;
mod targets;
mod walks;
mod wire;

pub(crate) use confinement::fit;

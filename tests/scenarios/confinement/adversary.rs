//! A checker that its server has taken over: attempts compared with results (invariants I1, I3, I4,
//! I9).
//!
//! The attacker, `fixtures/adversary`, is a program in place of the checker's, started exactly as a
//! checker is, through gateway, gate and engine. In `confinement`, it tries to get out of its
//! container. In `wire`, it misuses the only thing it has, its stdout, against the whole census.
//! Both write their results to `target/tables/adversary.md`.

mod confinement;
mod deliveries;
mod expected;
mod standin;
mod targets;
mod walks;
mod wire;

pub(crate) use confinement::fit;

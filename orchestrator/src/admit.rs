//! Which names enter the census, and when: one gate, which applies the operator's rules, for names
//! from peers, lists, walks and submissions.

pub mod gate;
pub mod policy;

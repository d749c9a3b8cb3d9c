//! What owners of instances ask for: opting out, by the operator or by a proof on their own host.

mod optout;
mod proofs;

//! What owners of instances ask for: opting out, by the operator or by a proof on their own host.

mod buttons;
mod optout;
mod proofs;

//! Requests of instances' owners: opting out, through the operator or by a proof on their own host.

mod buttons;
mod optout;
mod proofs;
mod secrets;

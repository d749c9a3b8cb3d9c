//! A checker or gateway that was taken over gets nowhere: containers, and the firewall behind the
//! gateway.

pub(crate) mod adversary;
pub(crate) mod containers;

mod firewall;

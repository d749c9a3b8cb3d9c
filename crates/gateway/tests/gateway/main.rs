//! The gateway from the outside: control socket, egress sockets, hosts.

#[cfg(test)]
mod budgets;
#[cfg(test)]
mod firewall;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod names;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod texts;
#[cfg(test)]
mod way;

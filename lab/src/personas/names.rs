//! Names that lead nowhere: DNS and the dial decide, without a container.

use protocol::DeadReason;

use super::table::Table;
use crate::play::{Dns, Play};

pub(super) fn add(table: &mut Table) {
    for (name, plays, dns, reason) in [
        (
            "dns-nxdomain",
            "Doesn't exist",
            Dns::Nxdomain,
            DeadReason::NoSuchName,
        ),
        (
            "dns-nodata",
            "Exists and has no address",
            Dns::Nodata,
            DeadReason::NoAddress,
        ),
        (
            "dns-servfail",
            "Has broken name servers",
            Dns::Servfail,
            DeadReason::DnsBroken,
        ),
        (
            "dns-timeout",
            "Has silent name servers",
            Dns::Timeout,
            DeadReason::DnsBroken,
        ),
        (
            "port-closed",
            "Has nobody listening on its port",
            Dns::ClosedPort,
            DeadReason::Unreachable,
        ),
    ] {
        let note = match reason {
            DeadReason::DnsBroken => {
                "Deferred twice, and its own failure only at the third time in a row."
            }
            _ => "Ends at the gateway: no container is started.",
        };
        table
            .add(name, plays, &[25])
            .dead(&[reason])
            .noting(note)
            .acting(Play::dns_only(dns));
    }
}

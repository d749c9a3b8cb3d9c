//! Imports hosts from another crawler.
//!
//! New hosts become rows. Names that the census does not admit, or that the operator denies, are
//! refused and reported.

use std::collections::BTreeMap;

use census::time::Jitter;
use import_minoru::imported;

use super::wire::{ImportReport, ImportedHost};
use super::{Handler, in_words};
use crate::daemon::Order;
use crate::names::gate::Brought;

/// Hosts in one request. It stays below [`super::REQUEST_BYTES_MAX`] in the worst case: two names
/// of 253 bytes for each host, of which JSON writes each byte as six, and all numbers of the
/// greatest length.
pub const IMPORTED_PER_REQUEST_MAX: usize = 64;

impl Handler {
    pub(super) async fn import(&self, hosts: &[ImportedHost]) -> Result<ImportReport, String> {
        let (rule, now) = (self.services.gate.names(), self.services.clock.now());
        let mut report = ImportReport::default();
        let (mut records, mut states) = (Vec::new(), BTreeMap::new());
        for ImportedHost {
            name,
            known,
            jitter,
        } in hosts.iter().take(IMPORTED_PER_REQUEST_MAX)
        {
            let host = match rule.admit(name.trim()) {
                Ok(host) => host,
                Err(refusal) => {
                    let name = protocol::escaped(name.as_bytes(), 200);
                    report.refused.push((name, refusal.to_string()));
                    continue;
                }
            };
            let target = known.target.as_ref();
            let target = target.and_then(|target| rule.admit(target.trim()).ok());
            let (jitter, calendar) = (Jitter(*jitter), self.services.calendar);
            let record = imported(host, known, target, now, jitter, calendar);
            // Two names may have the same canonical form: the first counts.
            states
                .entry(record.host.clone())
                .or_insert(record.state.name().as_str());
            records.push(record);
        }
        let brought = self
            .services
            .gate
            .imported(records)
            .await
            .map_err(in_words)?;
        for (host, brought) in brought {
            match brought {
                Brought::New => {
                    let state = states.get(&host).copied().unwrap_or_default();
                    let count = report.taken.entry(state.to_owned()).or_default();
                    *count = count.saturating_add(1);
                }
                Brought::Known => report.known = report.known.saturating_add(1),
                Brought::Refused(refusal) => {
                    report.refused.push((host.into(), refusal.to_string()));
                }
            }
        }
        if let Some((orders, _)) = &self.daemon {
            // Without this, the loop looks within a second.
            orders.try_send(Order::Look).ok();
        }
        Ok(report)
    }
}

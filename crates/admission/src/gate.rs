//! The single gate for new names: decides whether a name that is not known yet may enter.
//!
//! It takes the name, where it comes from, and the time. It returns a [`Pass`] after incrementing
//! all counters involved, or a [`Refusal`] and changes no counter.
//!
//! Where the name comes from decides which counters need room:
//!
//! - From a server that named it, or a public list: the rules for the name itself, unless the
//!   operator's allow-list contains it, or the list of hosters and no rule by name; the source; the
//!   shared suffix that the name lies below; the total.
//! - From a submitter: the rule for its key or domain; with the `public` line also the shared
//!   suffix and the total.
//! - From a server or list that the operator named, while the census is young: as from any other,
//!   but neither the source's room nor the total.
//! - From the operator: none.
//!
//! The operator's deny-list and `domain X 0` refuse a name from any of them.

use thiserror::Error;

use crate::counters::{Charge, Counters, Receipt, Row, TOTAL, Table};
use crate::decision::{Policy, Reason, Rule};
use crate::domain::DomainName;
use crate::list::{DomainList, Listed};
use crate::rules::{KeyHash, Limit};

/// The settings in force: rules, lists, limits.
#[derive(Debug)]
pub struct Terms {
    /// The rules, for names and for submitters.
    pub policy: Policy,
    /// Names that are never admitted.
    pub deny: DomainList,
    /// Names that need no room by the rules for names.
    pub allow: DomainList,
    /// Domains that give names to many owners. The rule for any registered domain does not limit
    /// them.
    pub hosters: DomainList,
    /// Limits in addition to the rules.
    pub limits: Limits,
}

/// Most admissions in a window, in addition to the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From one source: the registered domain of the server that named the name.
    pub source: Limit,
    pub shared_suffix: Limit,
    pub total: Limit,
}

impl Limits {
    /// The default limits.
    pub const ORDINARY: Self = Self {
        // The largest instances know about 30 000 names, most of them known to the census.
        source: Limit::new(2000).unwrap(),
        // Names below a shared suffix cost their owners nothing. A fiftieth of the total, so that
        // filling one suffix leaves room for all others.
        shared_suffix: Limit::new(1000).unwrap(),
        // Two days' worth of checks at the ordinary paces.
        total: Limit::new(50_000).unwrap(),
    };
}

#[derive(Debug, Clone, Copy)]
pub struct Candidate<'name> {
    pub name: &'name DomainName,
    /// See [`crate::Suffixes::shared_suffix`], by the census's own list.
    pub shared_suffix: Option<&'name str>,
}

#[derive(Debug, Clone, Copy)]
pub enum Subject<'name> {
    /// A server that named it, or a public list.
    Source(SourceId),
    /// One of the operator's own, while the census is young. Its names are counted for their order.
    Operators(SourceId),
    /// A submitter who proved a key or a domain. The caller checks that the name lies below the
    /// domain.
    Submitter {
        key: Option<&'name KeyHash>,
        domain: Option<&'name DomainName>,
        shared_suffix: Option<&'name str>,
    },
    Operator,
}

/// Identifies a source: the id of its counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u64);

/// An admission. Its receipts can give it back once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pass(Vec<Receipt>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Room {
    /// The rules for the name, or for its submitter.
    Rule,
    Source,
    SharedSuffix,
    Total,
}

/// Why a name may not enter. The text is a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("{}", denied(.0))]
    Denied(Listed),
    /// A line `domain X 0`, or `key HEX 0` for its submitter, forbids it.
    #[error("the rules admit nobody by `{name}`")]
    Banned {
        /// The name or key in the line.
        name: String,
    },
    /// No rule has a counter for it. This does not change in a later window.
    #[error("{0}")]
    NoRule(Reason),
    #[error("there is no room for it before the next window: {0}")]
    NoRoom(Room),
}

impl Terms {
    /// Decides on a new name at `now_s`, and counts it if it is admitted.
    /// Returns the reason if the name may not enter. No counter changes then.
    pub fn decide(
        &self,
        counters: &mut Counters,
        candidate: Candidate<'_>,
        subject: Subject<'_>,
        now_s: u64,
    ) -> Result<Pass, Refusal> {
        // Also for names that are refused, so that time passes for all.
        counters.enter(now_s);
        let claims = self.claims(counters, candidate, subject)?;
        let mut pass = Pass(Vec::with_capacity(claims.len()));
        for claim in claims {
            match counters.charge_id(claim.table, claim.id, claim.limit, now_s) {
                Charge::Admitted { receipt, .. } => pass.0.push(receipt),
                // Room was checked before, so this happens only if two claims share a counter.
                Charge::Refused { .. } | Charge::Full => {
                    counters.take_back(pass);
                    return Err(Refusal::NoRoom(claim.room));
                }
            }
        }
        Ok(pass)
    }

    /// Whether [`Terms::decide`] would admit the name within the current window. Counts nothing.
    pub fn look(
        &self,
        counters: &Counters,
        candidate: Candidate<'_>,
        subject: Subject<'_>,
    ) -> Result<(), Refusal> {
        self.claims(counters, candidate, subject).map(drop)
    }

    /// Checks that neither the deny-list nor a rule with the limit 0 bans a name.
    pub fn bans(&self, name: &DomainName) -> Result<(), Refusal> {
        if let Some(listed) = self.deny.covers(name) {
            return Err(Refusal::Denied(listed));
        }
        match self.policy.domain_line(name) {
            Some((line, Limit::ZERO)) => Err(Refusal::Banned {
                name: line.to_string(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// All counters that an admission increments, each with room left.
    fn claims(
        &self,
        counters: &Counters,
        candidate: Candidate<'_>,
        subject: Subject<'_>,
    ) -> Result<Vec<Claim>, Refusal> {
        self.bans(candidate.name)?;
        let mut claims = Vec::with_capacity(CLAIMS_MAX);
        let limits = self.limits;
        let of = |table, item: &[u8], limit, room| Claim {
            table,
            id: counters.id(item),
            limit,
            room,
        };
        let shared = |suffix: &str| {
            let (table, room) = (Table::SharedSuffix, Room::SharedSuffix);
            of(table, suffix.as_bytes(), limits.shared_suffix, room)
        };
        let total = of(Table::Total, TOTAL, limits.total, Room::Total);
        let by_rule = |rule: &Rule<'_>| of(rule.table, rule.item, rule.limit, Room::Rule);
        match subject {
            Subject::Operator => {}
            Subject::Source(source) | Subject::Operators(source) => {
                let is_bounded = matches!(subject, Subject::Source(_));
                claims.extend(self.rule_for(candidate.name)?.as_ref().map(by_rule));
                let limit = if is_bounded {
                    limits.source
                } else {
                    Limit::MAX
                };
                claims.push(Claim {
                    table: Table::Source,
                    id: source.0,
                    limit,
                    room: Room::Source,
                });
                claims.extend(candidate.shared_suffix.map(shared));
                claims.extend(is_bounded.then_some(total));
            }
            Subject::Submitter {
                key,
                domain,
                shared_suffix,
            } => {
                let rule = self.policy.rule(key, domain).map_err(Refusal::NoRule)?;
                if rule.limit == Limit::ZERO {
                    let name = rule.name.into_owned();
                    return Err(Refusal::Banned { name });
                }
                claims.push(by_rule(&rule));
                // The operator lists all others by name, so a flood of other names must not reduce
                // their room.
                if rule.table == Table::Public {
                    claims.extend(shared_suffix.map(shared));
                    claims.push(total);
                }
            }
        }
        match claims.iter().find(|claim| !claim.has_room(counters)) {
            Some(claim) => Err(Refusal::NoRoom(claim.room)),
            None => Ok(claims),
        }
    }
}

impl Terms {
    /// The rule that limits a name; `None` if a list of the operator's lifts it.
    fn rule_for<'name>(
        &'name self,
        name: &'name DomainName,
    ) -> Result<Option<Rule<'name>>, Refusal> {
        if self.allow.covers(name).is_some() {
            return Ok(None);
        }
        let rule = self.policy.domain_rule(name).map_err(Refusal::NoRule)?;
        let is_for_any = rule.table == Table::Public;
        let is_lifted = is_for_any && self.hosters.covers(name).is_some();
        Ok((!is_lifted).then_some(rule))
    }
}

/// Most counters that one admission increments.
const CLAIMS_MAX: usize = 4;

/// One counter that an admission increments.
struct Claim {
    table: Table,
    id: u64,
    limit: Limit,
    room: Room,
}

impl Claim {
    fn has_room(&self, counters: &Counters) -> bool {
        counters.has_room(self.table, self.id, self.limit)
    }
}

impl Pass {
    /// The current state of the counters that it incremented.
    pub fn rows<'pass>(&'pass self, counters: &'pass Counters) -> impl Iterator<Item = Row> {
        self.0.iter().map(|receipt| counters.row(receipt))
    }

    /// How many names its source has brought in this window, this one included; 0 without a source.
    pub fn of_source(&self, counters: &Counters) -> u32 {
        let rows = self.rows(counters);
        rows.filter(|row| row.table == Table::Source)
            .map(|row| row.count)
            .sum()
    }
}

impl Counters {
    pub fn source(&self, registered_domain: &str) -> SourceId {
        SourceId(self.id(registered_domain.as_bytes()))
    }

    /// Gives a whole admission back. Returns the new state of its counters, without those of a
    /// window that is over.
    pub fn take_back(&mut self, pass: Pass) -> Vec<Row> {
        pass.0
            .into_iter()
            .filter_map(|receipt| self.give_back(receipt))
            .collect()
    }
}

impl Room {
    const ALL: [Self; 4] = [Self::Rule, Self::Source, Self::SharedSuffix, Self::Total];

    /// The value in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Source => "source",
            Self::SharedSuffix => "shared_suffix",
            Self::Total => "total",
        }
    }

    /// The kind of room for this value. `None` if the value is unknown.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|room| room.as_str() == word)
    }
}

impl std::fmt::Display for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Rule => "its domain, or a rule for it, has reached its number of names",
            Self::Source => "its source has reached its number of names",
            Self::SharedSuffix => "its shared suffix has reached its number of names",
            Self::Total => "the census has reached its number of names",
        })
    }
}

fn denied(listed: &Listed) -> String {
    if listed.reason.is_empty() {
        format!("the operator's deny-list has `{}`", listed.domain)
    } else {
        format!(
            "the operator's deny-list has `{}`: {}",
            listed.domain, listed.reason
        )
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

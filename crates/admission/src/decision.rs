//! Decides by the rules whether a new name may enter.
//!
//! It takes the proved key and domain of a submitter, and the time, and returns a [`Decision`]. An
//! admission increments one counter. Submitters that no rule covers, or that have used up their
//! limit, are refused. The first of these steps that applies decides:
//!
//! 1. A `key` line for the key.
//! 2. Without a domain: refused.
//! 3. The `domain` line with the longest name that is the domain or lies above it. All names below
//!    it share its counter.
//! 4. A `public` line with a limit above 0: each registered domain has its own counter. A name
//!    without a registered domain is refused.
//! 5. Otherwise refused.

use std::borrow::Cow;

use thiserror::Error;

use crate::counters::{Charge, Counters, Receipt, Table};
use crate::domain::DomainName;
use crate::rules::{KeyHash, Limit, Rules};
use crate::suffixes::{NoRegisteredDomain, Suffixes};

/// A domain whose private key is published (sigsum/log-go, `doc/rate-limit.md`), so that anyone can
/// prove it.
pub const TEST_DOMAIN: &str = "test.sigsum.org";

/// How [`TEST_DOMAIN`] and all names below it are treated, unless a `key` line decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestDomain {
    /// Refused, whatever the rules contain.
    Refuse,
    /// Treated like any other domain.
    Allow,
}

/// Rules, with everything needed to decide by them.
#[derive(Debug)]
pub struct Policy {
    pub rules: Rules,
    /// The public suffixes for the `public` line. Unused if that line is off.
    pub suffixes: Suffixes,
    /// How the test domain is treated.
    pub test_domain: TestDomain,
}

/// Whether a name may enter.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    /// The counter that decided. `None` if no rule with a counter was reached.
    pub counter: Option<CounterState>,
    pub reason: Reason,
    /// Gives the admission back. `None` unless the name is admitted.
    pub receipt: Option<Receipt>,
}

/// A counter at the time of the decision. The name may enter exactly if `count` is below `limit`,
/// except for [`Reason::Full`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterState {
    pub table: Table,
    /// The counted item: the key's hash in lower case, the configured name, or the registered
    /// domain.
    pub name: String,
    /// Admissions in this window before this one.
    pub count: u32,
    /// Admissions that the window has room for.
    pub limit: Limit,
}

/// The reason for a decision. The text is a sentence about the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Reason {
    #[error("its counter has room")]
    Room,
    #[error("its counter has no room before the next window")]
    Exhausted,
    #[error("its rule admits nobody")]
    Banned,
    #[error("its key has no rule, and no domain was proved")]
    NoDomain,
    #[error("it is in {TEST_DOMAIN}, whose private key is published")]
    TestDomain,
    /// No `domain` line covers it, and it has no registered domain.
    #[error(transparent)]
    NoRegisteredDomain(#[from] NoRegisteredDomain),
    /// No `key` and no `domain` line covers it, and the `public` line is off or missing.
    #[error("no rule covers it")]
    NoRule,
    #[error("no further counter can be kept before the next window")]
    Full,
}

impl Policy {
    /// Decides on a new name at `now_s`. `key` and `domain` are those that its submitter proved.
    /// Counts an admission.
    pub fn decide(
        &self,
        counters: &mut Counters,
        key: Option<&KeyHash>,
        domain: Option<&DomainName>,
        now_s: u64,
    ) -> Decision {
        // Also for names that no rule covers, so that time passes for all.
        counters.enter(now_s);
        match self.rule(key, domain) {
            Ok(rule) => charge(counters, rule, now_s),
            Err(reason) => Decision {
                counter: None,
                reason,
                receipt: None,
            },
        }
    }

    /// The rule that applies to a submitter.
    pub(crate) fn rule<'name>(
        &'name self,
        key: Option<&'name KeyHash>,
        domain: Option<&'name DomainName>,
    ) -> Result<Rule<'name>, Reason> {
        if let Some((key, &limit)) = key.and_then(|key| self.rules.keys.get_key_value(key)) {
            return Ok(Rule {
                table: Table::Key,
                item: &key.0,
                name: Cow::Owned(key.to_string()),
                limit,
            });
        }
        let domain = domain.ok_or(Reason::NoDomain)?;
        if self.test_domain == TestDomain::Refuse && domain.is_within(TEST_DOMAIN) {
            return Err(Reason::TestDomain);
        }
        self.domain_rule(domain)
    }

    /// The rule that applies to a name without a submitter.
    pub(crate) fn domain_rule<'name>(
        &'name self,
        domain: &'name DomainName,
    ) -> Result<Rule<'name>, Reason> {
        let rule = |table, name: &'name str, limit| Rule {
            table,
            item: name.as_bytes(),
            name: Cow::Borrowed(name),
            limit,
        };
        if let Some((name, limit)) = self.domain_line(domain) {
            return Ok(rule(Table::Domain, name.as_str(), limit));
        }
        match &self.rules.public {
            Some(public) if public.limit > Limit::ZERO => {
                let registered = self.suffixes.registered_domain(domain)?;
                Ok(rule(Table::Public, registered, public.limit))
            }
            Some(_) | None => Err(Reason::NoRule),
        }
    }

    /// The `domain` line for a name: the longest that is the name or lies above it.
    pub(crate) fn domain_line(&self, domain: &DomainName) -> Option<(&DomainName, Limit)> {
        domain
            .tails()
            .find_map(|tail| self.rules.domains.get_key_value(tail))
            .map(|(name, &limit)| (name, limit))
    }
}

/// A rule that applies, with the counted item.
#[derive(Debug)]
pub(crate) struct Rule<'name> {
    pub(crate) table: Table,
    pub(crate) item: &'name [u8],
    pub(crate) name: Cow<'name, str>,
    pub(crate) limit: Limit,
}

impl Decision {
    /// Whether the name may enter.
    pub fn is_admitted(&self) -> bool {
        self.receipt.is_some()
    }
}

fn charge(counters: &mut Counters, rule: Rule<'_>, now_s: u64) -> Decision {
    let Rule {
        table,
        item,
        name,
        limit,
    } = rule;
    let (count, reason, receipt) = match counters.charge(table, item, limit, now_s) {
        Charge::Admitted { count, receipt } => (count, Reason::Room, Some(receipt)),
        Charge::Refused { count } if limit == Limit::ZERO => (count, Reason::Banned, None),
        Charge::Refused { count } => (count, Reason::Exhausted, None),
        Charge::Full => (0, Reason::Full, None),
    };
    Decision {
        counter: Some(CounterState {
            table,
            name: name.into_owned(),
            count,
            limit,
        }),
        reason,
        receipt,
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
pub(crate) mod tests;

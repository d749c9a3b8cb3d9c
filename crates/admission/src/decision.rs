//! Whether a new name may enter, by the rules.
//!
//! In: the key and the domain that a submitter proved, the time. Out: a [`Decision`], and with an admission one counter that moved. Refused: whoever
//! no rule covers, and who has used its limit up. In this order, and nothing falls through from one to the next:
//!
//! 1. A `key` line for the key decides.
//! 2. Without a domain: refused.
//! 3. The `domain` line with the longest name that is the domain or lies above it decides; all names below it share its counter.
//! 4. A `public` line above 0: each registered domain has a counter. What has no registered domain is refused.
//! 5. Otherwise refused.

use std::borrow::Cow;

use thiserror::Error;

use crate::counters::{Charge, Counters, Receipt, Table};
use crate::domain::DomainName;
use crate::rules::{KeyHash, Limit, Rules};
use crate::suffixes::{NoRegisteredDomain, Suffixes};

/// The domain whose private key is published (sigsum/log-go, `doc/rate-limit.md`): anybody can prove it.
pub const TEST_DOMAIN: &str = "test.sigsum.org";

/// What becomes of [`TEST_DOMAIN`] and all below it, where no `key` line decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestDomain {
    /// Refused, whatever the rules say.
    Refuse,
    /// A domain like any other.
    Allow,
}

/// Rules with all that it takes to decide by them.
#[derive(Debug)]
pub struct Policy {
    /// The rules.
    pub rules: Rules,
    /// The public suffixes that the `public` line counts by; not asked when that is off.
    pub suffixes: Suffixes,
    /// What becomes of the test domain.
    pub test_domain: TestDomain,
}

/// Whether a name may enter.
#[derive(Debug, PartialEq, Eq)]
pub struct Decision {
    /// The counter that decided; none when no rule was reached that has one.
    pub counter: Option<CounterState>,
    /// Why.
    pub reason: Reason,
    /// With an admission, and only then: by which it can be given back.
    pub receipt: Option<Receipt>,
}

/// A counter when it decided: the name may enter exactly when `count` is below `limit`, save for [`Reason::Full`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterState {
    /// Which rule's it is.
    pub table: Table,
    /// What it counts: the key's hash in lower case, the configured name, or the registered domain.
    pub name: String,
    /// Admissions in this window before this one.
    pub count: u32,
    /// How many it has room for.
    pub limit: Limit,
}

/// Why a decision is as it is. The text is a sentence about the name that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Reason {
    /// Its counter had room.
    #[error("its counter has room")]
    Room,
    /// Its counter had none.
    #[error("its counter has no room before the next window")]
    Exhausted,
    /// Its rule has the limit 0.
    #[error("its rule admits nobody")]
    Banned,
    /// No `key` line, and nothing else to go by.
    #[error("its key has no rule, and no domain was proved")]
    NoDomain,
    /// See [`TestDomain::Refuse`].
    #[error("it lies in {TEST_DOMAIN}, whose private key is published")]
    TestDomain,
    /// No `domain` line, and it is nobody's.
    #[error(transparent)]
    NoRegisteredDomain(#[from] NoRegisteredDomain),
    /// No `key` and no `domain` line, and the `public` line is off or missing.
    #[error("no rule covers it")]
    NoRule,
    /// There are as many counters of its kind as can be kept.
    #[error("no further counter can be kept before the next window")]
    Full,
}

impl Policy {
    /// Decides on a new name that asks at `now_s`: `key` and `domain` are those that its submitter proved. An admission is counted.
    pub fn decide(
        &self,
        counters: &mut Counters,
        key: Option<&KeyHash>,
        domain: Option<&DomainName>,
        now_s: u64,
    ) -> Decision {
        // Also for those who get no further: time goes on for all.
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

    /// The rule that decides on a submitter.
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

    /// The rule that a name falls under which nobody vouches for.
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

    /// The `domain` line that a name falls under: the longest that is the name or lies above it.
    pub(crate) fn domain_line(&self, domain: &DomainName) -> Option<(&DomainName, Limit)> {
        domain
            .tails()
            .find_map(|tail| self.rules.domains.get_key_value(tail))
            .map(|(name, &limit)| (name, limit))
    }
}

/// A rule that decides, and what it counts.
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

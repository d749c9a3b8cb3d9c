//! What a run in list mode reads: names, the text of a suffix list or proof, or the reason why
//! there is none.
//!
//! Its order is `peers` or `suffix_lines` depending on the format, then `listed` or `unlisted`.
//! Events of a check are a breach here, and these are a breach in a check.

use std::collections::BTreeSet;

use protocol::container::{End, Killed};
use protocol::egress::{Account, Budget};
use protocol::limits::{
    EGRESS_BYTES_DOWN_MAX, PEERS_MAX, PROOF_TEXT_BYTES_MAX, SUFFIX_TEXT_BYTES_MAX,
};
use protocol::{Event, Host, ListFormat, ListOrder, ListOutcome, UnlistedReason};
use thiserror::Error;

use crate::check::{Breach, harmless};
use crate::run::{Failure, Reading};

/// The events of a reading.
#[derive(Debug)]
pub struct ListReport {
    format: ListFormat,
    names_max: u64,
    names_told: u64,
    /// The different names. The wire bounds them: [`PEERS_MAX`] names in 16 MiB of lines.
    names: BTreeSet<Host>,
    text: String,
    finding: Option<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    Listed {
        outcome: ListOutcome,
        dropped: u64,
    },
    Unlisted {
        reason: UnlistedReason,
        status: Option<u16>,
        to: Option<String>,
    },
}

/// The result of a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Names, at least one.
    Names(NamesRead),
    /// The whole text of a list of public suffixes, not yet examined.
    Suffixes(String),
    /// The whole text of a host's proof, perhaps empty, not yet examined.
    Proof(String),
    /// Nothing, because of the source.
    Unread(Unread),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamesRead {
    pub names: BTreeSet<Host>,
    /// Elements that were no name, as the checker counted them.
    pub dropped: u64,
    /// Whether it was read to its end.
    pub outcome: ListOutcome,
}

/// Why a source was not read this time. This proves nothing about the host as an instance.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unread {
    #[error("{}", words(*.reason, *.status, .to.as_deref()))]
    Unlisted {
        reason: UnlistedReason,
        /// HTTP status, if that was the reason.
        status: Option<u16>,
        to: Option<String>,
    },
    #[error("it has no names ({dropped} other elements); is its format right?")]
    Empty { dropped: u64 },
    #[error("it was not read to its end: it has more than {bytes_max} bytes, or is too slow")]
    Truncated {
        /// Most bytes of such a text.
        bytes_max: usize,
    },
    #[error(
        "it takes more than {EGRESS_BYTES_DOWN_MAX} bytes on the wire; ask its owner for compression"
    )]
    TooLarge,
    #[error("the checker broke the rules of list mode: {0}")]
    Breach(Breach),
    /// The container printed too little, or did not use its egress socket as a checker does.
    #[error("the checker ended before the end of the list: {0}")]
    Ended(&'static str),
}

fn words(reason: UnlistedReason, status: Option<u16>, to: Option<&str>) -> String {
    let to = to.unwrap_or("nowhere");
    match (reason, status) {
        (UnlistedReason::Disallowed, _) => "robots.txt asks us not to read it".to_owned(),
        (UnlistedReason::RobotsUnavailable, Some(status)) => {
            format!("robots.txt answers {status}, so nothing else is requested this time")
        }
        (UnlistedReason::RobotsUnavailable, None) => {
            "robots.txt broke off, so nothing else is requested this time".to_owned()
        }
        (UnlistedReason::Status, status) => {
            format!("its host answers {}", status.unwrap_or_default())
        }
        (UnlistedReason::Elsewhere, _) => {
            format!("it redirects to {to}, which is not followed; enter the new address")
        }
        (UnlistedReason::BadRedirect, _) => format!("it redirects to {to}"),
        (UnlistedReason::RedirectLoop, _) => "it redirects in a loop".to_owned(),
        (UnlistedReason::Tls, _) => "the TLS handshake failed".to_owned(),
        (UnlistedReason::Http, _) => "the answer was not HTTP, or broke off".to_owned(),
        (UnlistedReason::Timeout, _) => "there was no answer in time".to_owned(),
        (UnlistedReason::Encoding, _) => {
            "the answer has an encoding that we did not offer".to_owned()
        }
        (UnlistedReason::NotAList, _) => "the answer is not a list of that format".to_owned(),
    }
}

impl Reading for ListReport {
    type Outcome = Outcome;

    fn take(&mut self, event: Event) -> Result<bool, Breach> {
        let text_bytes_max = text_bytes_max(self.format);
        match event {
            Event::Peers { hosts } if text_bytes_max == 0 => self.take_names(hosts)?,
            Event::SuffixLines { lines } if text_bytes_max > 0 => {
                self.take_lines(&lines, text_bytes_max)?;
            }
            Event::Listed { outcome, dropped } => {
                self.finding = Some(Finding::Listed { outcome, dropped });
            }
            Event::Unlisted { reason, status, to } => {
                let to = to.map(harmless);
                self.finding = Some(Finding::Unlisted { reason, status, to });
            }
            _ => return Err(Breach::OutOfOrder),
        }
        Ok(self.finding.is_some())
    }

    fn is_answered(&self) -> bool {
        matches!(self.finding, Some(Finding::Listed { .. }))
    }

    fn read(self, account: &Account) -> Outcome {
        let (outcome, dropped) = match self.finding {
            Some(Finding::Listed { outcome, dropped }) => (outcome, dropped),
            Some(Finding::Unlisted { .. }) if account.budget_hit == Some(Budget::Bytes) => {
                return Outcome::Unread(Unread::TooLarge);
            }
            Some(Finding::Unlisted { reason, status, to }) => {
                return Outcome::Unread(Unread::Unlisted { reason, status, to });
            }
            None => return Self::failed(Failure::Ended(None)),
        };
        match (self.format, outcome) {
            (ListFormat::Suffixes, ListOutcome::Complete) => Outcome::Suffixes(self.text),
            (ListFormat::Proof, ListOutcome::Complete) => Outcome::Proof(self.text),
            (ListFormat::Suffixes | ListFormat::Proof, ListOutcome::Truncated) => {
                Outcome::Unread(Unread::Truncated {
                    bytes_max: text_bytes_max(self.format),
                })
            }
            (_, _) if self.names.is_empty() => Outcome::Unread(Unread::Empty { dropped }),
            (
                ListFormat::Lines | ListFormat::Json | ListFormat::Ndjson | ListFormat::Csv,
                outcome,
            ) => Outcome::Names(NamesRead {
                names: self.names,
                dropped,
                outcome,
            }),
        }
    }

    fn failed(why: Failure) -> Outcome {
        Outcome::Unread(match why {
            Failure::Breach(Some(breach)) => Unread::Breach(breach),
            Failure::Breach(None) => Unread::Ended("it asked for another host, or without TLS"),
            Failure::Ended(end) => Unread::Ended(how(end)),
        })
    }
}

impl ListReport {
    /// An empty report of a run for this order.
    pub fn new(order: &ListOrder) -> Self {
        Self {
            format: order.format,
            names_max: u64::from(order.names_max).min(PEERS_MAX),
            names_told: 0,
            names: BTreeSet::new(),
            text: String::new(),
            finding: None,
        }
    }

    fn take_names(&mut self, hosts: Vec<Host>) -> Result<(), Breach> {
        let told = u64::try_from(hosts.len()).unwrap_or(u64::MAX);
        self.names_told = self.names_told.saturating_add(told);
        if self.names_told > self.names_max {
            return Err(Breach::OutOfBounds);
        }
        self.names.extend(hosts);
        Ok(())
    }

    fn take_lines(&mut self, lines: &[String], bytes_max: usize) -> Result<(), Breach> {
        for line in lines {
            let bytes = self.text.len().saturating_add(line.len());
            if bytes.saturating_add(1) > bytes_max {
                return Err(Breach::OutOfBounds);
            }
            self.text.push_str(line);
            self.text.push('\n');
        }
        Ok(())
    }
}

/// Most bytes of the text that a run passes on, line ends included; 0 for formats that hold names.
fn text_bytes_max(format: ListFormat) -> usize {
    match format {
        ListFormat::Suffixes => SUFFIX_TEXT_BYTES_MAX,
        ListFormat::Proof => PROOF_TEXT_BYTES_MAX,
        ListFormat::Lines | ListFormat::Json | ListFormat::Ndjson | ListFormat::Csv => 0,
    }
}

fn how(end: Option<End>) -> &'static str {
    match end {
        Some(End {
            out_of_memory: true,
            ..
        }) => "out of memory",
        Some(End {
            killed: Some(Killed::Deadline),
            ..
        }) => "at its deadline",
        Some(_) | None => "it crashed",
    }
}

#[cfg(test)]
mod tests;

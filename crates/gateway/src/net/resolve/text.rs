//! TXT records, from DNS or the lab's names file, with a cache.
//!
//! It takes a [`TextName`] and returns bounded [`Texts`]. A failure is never cached, so the next
//! look-up in turn queries DNS.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{RData, RecordType};

use super::{
    Answer, NEGATIVE_TTL_MAX, Resolver, Source, TTL_MAX, TTL_MIN, ask, error_text, judge, now,
};
use crate::wire::control::Texts;
use crate::wire::text_name::{RECORD_BYTES_MAX, RECORDS_MAX, TextName};

/// Most names in the cache: at most 8 MiB, for more owners than use TXT records in an hour.
pub const CACHE_TEXTS_MAX: usize = 4096;

/// The result of a look-up of TXT records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextSource {
    Answered(Texts),
    /// There is no route to the resolver.
    Offline,
    /// This machine could not send the query.
    OwnFailure,
}

/// Cached TXT records, each until it expires.
#[derive(Debug, Default)]
pub(super) struct Memory(HashMap<TextName, (Texts, Instant)>);

impl Memory {
    fn remember(&mut self, name: &TextName, texts: &Texts, ttl: Duration, now: Instant) {
        if self.0.len() >= CACHE_TEXTS_MAX {
            self.0.retain(|_, (_, until)| *until > now);
        }
        if self.0.len() >= CACHE_TEXTS_MAX {
            let next = self.0.iter().min_by_key(|(_, (_, until))| *until);
            if let Some(name) = next.map(|(name, _)| name.clone()) {
                self.0.remove(&name);
            }
        }
        let until = now.checked_add(ttl).unwrap_or(now);
        self.0.insert(name.clone(), (texts.clone(), until));
    }
}

impl Resolver {
    /// The cached TXT records of a name.
    pub fn remembered_texts(&self, name: &TextName) -> Option<Texts> {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let (texts, until) = texts.0.get(name)?;
        (*until > now()).then(|| texts.clone())
    }

    /// Looks up a name's TXT records within the configured timeout, and caches them.
    pub async fn ask_texts(&self, name: &TextName) -> TextSource {
        let resolver = match &self.source {
            Source::Dns(resolver, _) => resolver,
            Source::File(file) => {
                let found = file
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .texts(name);
                return match found {
                    Ok(texts) => TextSource::Answered(texts),
                    Err(error) => {
                        tracing::error!(%name, error = error_text(&error), "names file");
                        TextSource::OwnFailure
                    }
                };
            }
        };
        let whole = name.to_string();
        let texts = ask(resolver, &whole, RecordType::TXT);
        let Ok(answer) = tokio::time::timeout(self.timeout, texts).await else {
            return TextSource::Answered(Texts::TimedOut {});
        };
        let (texts, ttl) = match answer {
            Ok(lookup) => found(&lookup),
            Err(NetError::Dns(DnsError::NoRecordsFound(none))) => {
                let ttl = Duration::from_secs(none.negative_ttl.unwrap_or(0).into());
                let texts = if none.response_code == ResponseCode::NXDomain {
                    Texts::NoSuchName {}
                } else if none.response_code == ResponseCode::NoError {
                    Texts::NoData {}
                } else {
                    return TextSource::Answered(Texts::ServerFailed {});
                };
                (texts, ttl.min(NEGATIVE_TTL_MAX))
            }
            Err(NetError::Timeout) => return TextSource::Answered(Texts::TimedOut {}),
            Err(error) => {
                return match judge(&error) {
                    Answer::NoRoute => TextSource::Offline,
                    Answer::OwnFailure(_) => TextSource::OwnFailure,
                    Answer::Failure(_) | Answer::Known(..) => {
                        TextSource::Answered(Texts::ServerFailed {})
                    }
                };
            }
        };
        self.texts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remember(name, &texts, ttl.clamp(TTL_MIN, TTL_MAX), now());
        TextSource::Answered(texts)
    }
}

fn found(lookup: &Lookup) -> (Texts, Duration) {
    let ttl = lookup
        .valid_until()
        .saturating_duration_since(Instant::now());
    let records: Vec<_> = lookup
        .answers()
        .iter()
        // Skips aliases (CNAME records).
        .filter_map(|record| {
            let RData::TXT(txt) = &record.data else {
                return None;
            };
            Some(text(txt.txt_data.iter().flatten()))
        })
        .take(RECORDS_MAX)
        .collect();
    if records.is_empty() {
        (Texts::NoData {}, ttl)
    } else {
        (Texts::Records { records }, ttl)
    }
}

/// The strings of a record, joined and cut off.
pub(super) fn text<'a>(bytes: impl Iterator<Item = &'a u8>) -> String {
    bytes
        .take(RECORD_BYTES_MAX)
        .map(|byte| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => char::REPLACEMENT_CHARACTER,
        })
        .collect()
}

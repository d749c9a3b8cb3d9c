//! Proofs without a token: a host publishes a wish in a place that only its owner can write.
//!
//! It takes a host and a purpose, and returns whether the host publishes that wish. The texts are
//! `fedicensus-proof=submit`, `=opt-out` and `=opt-in`. They are public and stay published, and
//! anyone may point the census to them: a proof is not a secret but the owner's standing wish.
//! Therefore a place with two different wishes proves nothing, and the wish published now counts.
//! No wish can undo an opt-out, because an old wish would undo a later opt-out: `opt-in` only ends
//! an opt-out that was published in the same place. A record with a hash can ([`crate::secret`]),
//! because only the sender of its secret acts, and only for a day.
//!
//! Each place is a [`ProofSource`]. One is the TXT records at `_fedicensus.HOST` ([`TxtProof`]).
//! Another is a file at [`FILE_PATH`] with the same texts, one per line ([`FileProof`]). Reading it
//! requires a visit to the host, so it is read only if DNS has no wish. A different wish in DNS
//! takes precedence; otherwise a forgotten file could be used against an owner who has changed
//! their mind.

mod file;

use std::fmt;
use std::pin::Pin;

use protocol::Host;
use token::{Failure, Form, NotFound, Purpose};

use crate::problem::Problem;
use crate::texts::{Found, Texts, dns_is_down};

pub use crate::secret::PREFIX;
pub use file::{FileProof, PATH as FILE_PATH};

/// Most records or lines that are examined, in the order received: the same number as for keys.
pub const PROOFS_TRIED_MAX: usize = token::record::RECORDS_TRIED_MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub host: Host,
    pub purpose: Purpose,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    Given,
    /// No wish. Describes what to do there, as a part of a sentence.
    Missing(String),
    /// A different wish, which also overrides all later places. Describes what to do there, as a
    /// part of a sentence.
    Against(String),
}

/// The future returned by a [`ProofSource`].
pub type Looking<'a> = Pin<Box<dyn Future<Output = Result<Proof, Problem>> + Send + 'a>>;

/// A place where a host's owner can publish a wish.
pub trait ProofSource: fmt::Debug + Send + Sync {
    /// Reads the place. Fails if that is not possible now.
    fn look<'a>(&'a self, wanted: &'a Wanted) -> Looking<'a>;
}

/// TXT records at `_fedicensus.HOST`.
#[derive(Debug)]
pub struct TxtProof(pub Texts);

impl ProofSource for TxtProof {
    fn look<'a>(&'a self, wanted: &'a Wanted) -> Looking<'a> {
        Box::pin(async move {
            let name = format!("{}.{}", Form::Own.label(), wanted.host);
            let said = match self.0.at(&name, &wanted.host).await? {
                Found::Records(records) => wish(records.iter().map(String::as_str)),
                Found::None(NotFound::NoSuchName | NotFound::NoData) => Ok(None),
                Found::Failed(how) => {
                    let how = match how {
                        Failure::ServerFailed => "the server failed",
                        Failure::TimedOut => "no name server answered in time",
                    };
                    return Err(dns_is_down(&format!(
                        "{name} could not be looked up ({how})"
                    )));
                }
            };
            let record = format!("{PREFIX}{}", wanted.purpose.as_str());
            Ok(match said {
                Ok(Some(purpose)) if purpose == wanted.purpose => Proof::Given,
                Ok(None) => Proof::Missing(format!(
                    "publish the TXT record `{record}` at {name}, and wait until DNS has it"
                )),
                Ok(Some(_)) => Proof::Against(format!(
                    "publish the TXT record `{record}` at {name}, instead of the other wish there, and wait until DNS has it"
                )),
                Err(Contradiction) => Proof::Against(format!(
                    "leave `{record}` alone at {name}, whose TXT records have different wishes, and wait until DNS has it"
                )),
            })
        })
    }
}

/// Several different wishes in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction;

/// The only wish among these records or lines. Others, such as keys, are ignored.
pub fn wish<'a>(records: impl Iterator<Item = &'a str>) -> Result<Option<Purpose>, Contradiction> {
    let mut wish = None;
    let wishes = records
        .take(PROOFS_TRIED_MAX)
        .filter_map(|record| record.strip_prefix(PREFIX))
        .filter_map(Purpose::parse);
    for purpose in wishes {
        if *wish.get_or_insert(purpose) != purpose {
            return Err(Contradiction);
        }
    }
    Ok(wish)
}

/// Checks that one of these places publishes this wish. They are read in order, up to the first
/// that has a wish.
///
/// # Errors
/// Returns 403 with what to publish if none of them has the wish, or the problem of a place that
/// could not be read.
pub async fn require(sources: &[Box<dyn ProofSource>], wanted: &Wanted) -> Result<(), Problem> {
    let mut missing = Vec::new();
    let mut unknown = None;
    for source in sources {
        match source.look(wanted).await {
            Ok(Proof::Given) => return Ok(()),
            Ok(Proof::Missing(what)) => missing.push(what),
            Ok(Proof::Against(what)) => {
                missing.push(what);
                break;
            }
            Err(problem) => unknown = unknown.or(Some(problem)),
        }
    }
    Err(unknown.unwrap_or_else(|| {
        Problem::forbidden(
            "no_proof",
            format!(
                "nothing shows that {} wants this: send a token, or {}",
                wanted.host,
                missing.join(", or ")
            ),
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(records: &[&str], expect: Result<Option<Purpose>, Contradiction>) {
        assert_eq!(wish(records.iter().copied()), expect, "{records:?}");
    }

    #[test]
    fn a_wish_is_one_whole_record_and_says_one_thing() {
        let key = "4cb5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aedf0a5ba29";
        check(&[], Ok(None));
        check(&[key, "v=spf1 -all"], Ok(None));
        check(
            &[key, "fedicensus-proof=opt-out"],
            Ok(Some(Purpose::OptOut)),
        );
        check(
            &["fedicensus-proof=submit", "fedicensus-proof=submit"],
            Ok(Some(Purpose::Submit)),
        );
        check(
            &["fedicensus-proof=opt-out", "fedicensus-proof=opt-in"],
            Err(Contradiction),
        );
        for no_wish in [
            "fedicensus-proof=opt-out ",
            " fedicensus-proof=opt-out",
            "\"fedicensus-proof=opt-out\"",
            "fedicensus-proof=OPT-OUT",
            "Fedicensus-proof=opt-out",
            "fedicensus-proof=",
            "fedicensus-proof=opt-out\u{fffd}",
        ] {
            check(&[no_wish], Ok(None));
        }
    }

    #[test]
    fn a_wish_after_the_first_ten_records_is_not_heard() {
        let mut records = vec!["padding"; PROOFS_TRIED_MAX];
        records.push("fedicensus-proof=opt-out");
        check(&records, Ok(None));
        records.swap(PROOFS_TRIED_MAX - 1, PROOFS_TRIED_MAX);
        check(&records, Ok(Some(Purpose::OptOut)));
    }

    #[derive(Debug)]
    struct Says(Result<Proof, Problem>);

    impl ProofSource for Says {
        fn look<'a>(&'a self, _: &'a Wanted) -> Looking<'a> {
            Box::pin(std::future::ready(self.0.clone()))
        }
    }

    #[tokio::test]
    async fn a_place_that_could_not_be_looked_at_is_never_taken_for_one_that_says_no() {
        let wanted = Wanted {
            host: Host::parse("a.example").unwrap(),
            purpose: Purpose::OptOut,
        };
        let status = async |sources: &[fn() -> Says]| {
            let sources: Vec<_> = sources
                .iter()
                .map(|source| Box::new(source()) as Box<dyn ProofSource>)
                .collect();
            require(&sources, &wanted)
                .await
                .err()
                .map(|problem| problem.status.as_u16())
        };
        let yes = || Says(Ok(Proof::Given));
        let no = || Says(Ok(Proof::Missing("publish it".to_owned())));
        let down = || Says(Err(dns_is_down("no answer")));
        assert_eq!(status(&[no]).await, Some(403));
        assert_eq!(status(&[no, down]).await, Some(503));
        assert_eq!(status(&[down, no]).await, Some(503));
        assert_eq!(status(&[down, yes]).await, None);
        assert_eq!(status(&[]).await, Some(403));
        let against = || Says(Ok(Proof::Against("replace it".to_owned())));
        assert_eq!(status(&[against, yes]).await, Some(403), "a former wish");
        assert_eq!(status(&[down, against]).await, Some(503));
        assert_eq!(status(&[yes, against]).await, None);
    }
}

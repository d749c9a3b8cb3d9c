//! How a host proves, without a token, that it wants something: it says so in a place that only its owner can write.
//!
//! In: a host and what is wanted of the census. Out: whether the host says the same. The words are
//! `fedicensus-proof=submit`, `=opt-out` and `=opt-in`. What is published so is public and stays,
//! and anybody may point the census to it: it is no secret but the owner's standing wish. So a
//! place that says two different things says nothing, and the wish that stands there now is the one
//! that counts. No place takes an opt-out back, since an old wish would undo a later opt-out:
//! `opt-in` there only ends an opt-out that stood there.
//!
//! A place is a [`ProofSource`]. TXT records at `_fedicensus.HOST` are one ([`TxtProof`]). A file at [`FILE_PATH`] is another ([`FileProof`]), of the
//! same words, a line each: it takes a visit to the host to read it, so it is asked only where DNS is silent. Where DNS has another wish, that one
//! counts, or a file that was forgotten could be used against who has changed their mind since.

mod file;

use std::fmt;
use std::pin::Pin;

use protocol::Host;
use token::{Failure, Form, NotFound, Purpose};

use crate::problem::Problem;
use crate::texts::{Found, Texts, dns_is_down};

pub use file::{FileProof, PATH as FILE_PATH};

/// What a proof begins with; the purpose follows.
pub const PREFIX: &str = "fedicensus-proof=";

/// Records, or lines, that are looked at, in the order in which they came: as many as are tried for keys.
pub const PROOFS_TRIED_MAX: usize = token::record::RECORDS_TRIED_MAX;

/// What is to be proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Whose wish it is.
    pub host: Host,
    /// What it wishes.
    pub purpose: Purpose,
}

/// What a place says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// The host wants it.
    Given,
    /// It does not say so; what to do there, as a part of a sentence.
    Missing(String),
    /// It says something else, which goes for all places after it; what to do there, as a part of a sentence.
    Against(String),
}

/// What a [`ProofSource`] gives.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Result<Proof, Problem>> + Send + 'a>>;

/// A place where a host's owner can say what they want.
pub trait ProofSource: fmt::Debug + Send + Sync {
    /// Looks there. It is an error when nobody can know now.
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
                        Failure::TimedOut => "nobody answered in time",
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
                    "publish the TXT record `{record}` at {name}, in place of the other wish there, and wait until DNS has it"
                )),
                Err(Contradiction) => Proof::Against(format!(
                    "leave `{record}` alone at {name}, whose TXT records have different wishes, and wait until DNS has it"
                )),
            })
        })
    }
}

/// Several different wishes at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction;

/// The one wish among these records or lines; others, such as keys, may stand beside it.
///
/// # Errors
/// There are different ones.
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

/// Whether the host says in any of these places that it wants this. They are looked at in their order, up to the first that says so or has another
/// wish.
///
/// # Errors
/// It says so nowhere: 403, with what to publish. When one of the places could not be looked at, that one's problem.
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

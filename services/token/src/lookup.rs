//! The names to look up for a domain's keys, one after the other: a state machine that receives the
//! answers.
//!
//! It takes the token's form, its domain, and the DNS answer for the last name. It returns the next
//! name, the records, or the error. `_sigsum_v0` is the label of Sigsum's former version. It is
//! looked up only if `_sigsum_v1` *does not exist*: a server that fails to answer may have the
//! record, and an attacker who can make it fail must not choose which of two keys counts.

use protocol::Host;
use thiserror::Error;

use crate::record::TxtRecord;

/// The label of the census's own form.
const OWN_LABEL: &str = "_fedicensus";

const SIGSUM_LABEL: &str = "_sigsum_v1";

/// The label of Sigsum's form in its former version. It is as long as the present label, so a name
/// that fits one also fits the other.
const SIGSUM_OLD_LABEL: &str = "_sigsum_v0";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Own,
    Sigsum,
}

impl Form {
    /// The label below which a domain publishes its keys.
    pub fn label(self) -> &'static str {
        match self {
            Self::Own => OWN_LABEL,
            Self::Sigsum => SIGSUM_LABEL,
        }
    }
}

/// The DNS answer for one name's TXT records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TxtAnswer {
    /// The records in the order received. An empty list counts as [`NotFound::NoData`].
    Records(Vec<TxtRecord>),
    NotFound(NotFound),
    Failed(Failure),
}

/// Why a name has no TXT records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFound {
    /// NXDOMAIN: the name does not exist.
    NoSuchName,
    /// The name has records, but none of this type.
    NoData,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// SERVFAIL, or another error code.
    ServerFailed,
    /// No server answered in time.
    TimedOut,
}

/// Why there are no keys.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LookupError {
    #[error(
        "{name} has no TXT record ({}): publish the public key there, 64 hex digits, and wait until DNS has it",
        how.in_words()
    )]
    NotFound { name: String, how: NotFound },
    #[error("{name} could not be looked up ({}): try again later", how.in_words())]
    Failed { name: String, how: Failure },
}

/// The step after an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Ask(Lookup),
    /// The records, which include a domain's keys ([`crate::Candidates`]).
    Found(Vec<TxtRecord>),
    Ended(LookupError),
}

/// A look-up that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    domain: Host,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Own,
    Sigsum,
    /// After Sigsum's present label was not found for this reason.
    SigsumOld(NotFound),
}

impl Lookup {
    /// Begins the look-up of the keys of `domain` for a token of this form.
    pub fn begin(form: Form, domain: Host) -> Self {
        let stage = match form {
            Form::Own => Stage::Own,
            Form::Sigsum => Stage::Sigsum,
        };
        Self { domain, stage }
    }

    /// The name whose TXT records are needed. It is fully qualified: a resolver must not append a
    /// search domain. It is never too long, because a token's domain leaves room for the label.
    pub fn name(&self) -> String {
        self.name_at(self.stage)
    }

    /// Continues with the DNS answer for [`Lookup::name`].
    pub fn answer(self, answer: TxtAnswer) -> Step {
        match answer {
            TxtAnswer::Records(records) if records.is_empty() => self.not_found(NotFound::NoData),
            TxtAnswer::Records(records) => Step::Found(records),
            TxtAnswer::NotFound(how) => self.not_found(how),
            TxtAnswer::Failed(how) => match self.stage {
                Stage::Own | Stage::Sigsum => Step::Ended(LookupError::Failed {
                    name: self.name(),
                    how,
                }),
                Stage::SigsumOld(first) => self.sigsum_not_found(first),
            },
        }
    }

    fn not_found(self, how: NotFound) -> Step {
        match self.stage {
            Stage::Own => Step::Ended(LookupError::NotFound {
                name: self.name(),
                how,
            }),
            Stage::Sigsum => Step::Ask(Self {
                stage: Stage::SigsumOld(how),
                ..self
            }),
            Stage::SigsumOld(first) => self.sigsum_not_found(first),
        }
    }

    /// The error does not mention the former label: a domain without a key should publish it under
    /// the present one.
    fn sigsum_not_found(self, how: NotFound) -> Step {
        Step::Ended(LookupError::NotFound {
            name: self.name_at(Stage::Sigsum),
            how,
        })
    }

    fn name_at(&self, stage: Stage) -> String {
        let label = match stage {
            Stage::Own => Form::Own.label(),
            Stage::Sigsum => Form::Sigsum.label(),
            Stage::SigsumOld(_) => SIGSUM_OLD_LABEL,
        };
        format!("{label}.{}", self.domain)
    }
}

impl NotFound {
    fn in_words(self) -> &'static str {
        match self {
            Self::NoSuchName => "there is no such name",
            Self::NoData => "the name exists, but has no such record",
        }
    }
}

impl Failure {
    fn in_words(self) -> &'static str {
        match self {
            Self::ServerFailed => "the server failed",
            Self::TimedOut => "no name server answered in time",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_SUCH_NAME: TxtAnswer = TxtAnswer::NotFound(NotFound::NoSuchName);
    const NO_DATA: TxtAnswer = TxtAnswer::NotFound(NotFound::NoData);
    const EMPTY: TxtAnswer = TxtAnswer::Records(Vec::new());
    const SERVFAIL: TxtAnswer = TxtAnswer::Failed(Failure::ServerFailed);
    const TIMED_OUT: TxtAnswer = TxtAnswer::Failed(Failure::TimedOut);

    fn records() -> TxtAnswer {
        TxtAnswer::Records(vec![TxtRecord::from_strings(["not even a key"])])
    }

    /// Answers until the look-up ends. Returns the names that were looked up, and the result.
    fn ask(form: Form, answers: &[TxtAnswer]) -> (Vec<String>, Result<(), LookupError>) {
        let mut lookup = Lookup::begin(form, Host::parse("a.example").unwrap());
        let mut asked = Vec::new();
        for answer in answers {
            asked.push(lookup.name());
            match lookup.answer(answer.clone()) {
                Step::Ask(next) => lookup = next,
                Step::Found(_) => return (asked, Ok(())),
                Step::Ended(error) => return (asked, Err(error)),
            }
        }
        panic!("it goes on after {asked:?}: {lookup:?}");
    }

    fn check(form: Form, answers: &[TxtAnswer], names: &[&str], expect: Result<(), (&str, &str)>) {
        let (asked, ended) = ask(form, answers);
        assert_eq!(asked, names, "{answers:?}");
        match (ended, expect) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err((name, what))) => {
                let said = error.to_string();
                assert!(said.starts_with(name) && said.contains(what), "{said}");
            }
            (ended, expect) => panic!("{answers:?}: {ended:?}, not {expect:?}"),
        }
    }

    const NEW: &str = "_sigsum_v1.a.example";
    const OLD: &str = "_sigsum_v0.a.example";
    const OWN: &str = "_fedicensus.a.example";

    #[test]
    fn records_under_the_present_label_end_it_whatever_they_hold() {
        check(Form::Sigsum, &[records()], &[NEW], Ok(()));
        check(Form::Own, &[records()], &[OWN], Ok(()));
    }

    #[test]
    fn the_former_label_is_asked_when_the_present_one_is_not_found() {
        for not_found in [NO_SUCH_NAME, NO_DATA, EMPTY] {
            check(Form::Sigsum, &[not_found, records()], &[NEW, OLD], Ok(()));
        }
    }

    #[test]
    fn the_former_label_is_never_asked_after_a_failure() {
        let error = Err((NEW, "try again later"));
        check(Form::Sigsum, &[SERVFAIL], &[NEW], error);
        check(Form::Sigsum, &[TIMED_OUT], &[NEW], error);
    }

    #[test]
    fn when_both_labels_fail_the_present_ones_error_is_told() {
        for second in [NO_SUCH_NAME, NO_DATA, EMPTY, SERVFAIL, TIMED_OUT] {
            for (first, what) in [
                (NO_SUCH_NAME, "no such name"),
                (NO_DATA, "has no such record"),
                (EMPTY, "has no such record"),
            ] {
                let answers = [first, second.clone()];
                check(Form::Sigsum, &answers, &[NEW, OLD], Err((NEW, what)));
            }
        }
    }

    #[test]
    fn the_own_form_has_one_label() {
        check(
            Form::Own,
            &[NO_SUCH_NAME],
            &[OWN],
            Err((OWN, "no such name")),
        );
        check(
            Form::Own,
            &[EMPTY],
            &[OWN],
            Err((OWN, "has no such record")),
        );
        check(Form::Own, &[SERVFAIL], &[OWN], Err((OWN, "try again")));
    }

    #[test]
    fn the_former_label_needs_no_more_room_than_the_present_one() {
        assert_eq!(SIGSUM_OLD_LABEL.len(), SIGSUM_LABEL.len());
    }
}

//! The file at [`PATH`] on a host: the same texts as in DNS, one per line.
//!
//! It takes a host and a purpose, and returns whether the host's file has that wish. The intake has
//! no network: the daemon lets a container read the file, within its own limits on the frequency.

use std::time::Duration;

use super::{Contradiction, Looking, PREFIX, Proof, ProofSource, Wanted, wish};
use crate::daemon;
use crate::problem::Problem;
use crate::wire::{Answer, Census, Request};

pub const PATH: &str = "/.well-known/fedicensus";

/// Reads a file at [`PATH`] of the host through the daemon.
#[derive(Debug)]
pub struct FileProof(pub Census);

impl ProofSource for FileProof {
    fn look<'a>(&'a self, wanted: &'a Wanted) -> Looking<'a> {
        Box::pin(async move {
            let request = Request::ReadProof {
                host: wanted.host.clone(),
            };
            judge(daemon::ask(&self.0, &request).await?, wanted)
        })
    }
}

fn judge(answer: Answer, wanted: &Wanted) -> Result<Proof, Problem> {
    let missing = |why: &str| {
        let (purpose, host) = (wanted.purpose.as_str(), &wanted.host);
        Proof::Missing(format!(
            "put the line `{PREFIX}{purpose}` in https://{host}{PATH}, instead of any other wish there ({why})"
        ))
    };
    match answer {
        Answer::Proof { lines } => Ok(match wish(lines.iter().map(String::as_str)) {
            Ok(Some(purpose)) if purpose == wanted.purpose => Proof::Given,
            Ok(Some(purpose)) => missing(&format!("now it says `{PREFIX}{}`", purpose.as_str())),
            Ok(None) => missing("its first ten lines do not have it"),
            Err(Contradiction) => missing("it has contradictory lines now"),
        }),
        Answer::NoProof { why } => Ok(missing(&why)),
        Answer::NotAdmitted { why } => Ok(missing(&format!("it is not read: {why}"))),
        Answer::NotNow { why, retry_after_s } => {
            let wait = Duration::from_secs(retry_after_s);
            Err(Problem::too_soon("read_lately", why, wait))
        }
        Answer::CannotTell { why, retry_after_s } => {
            let wait = Duration::from_secs(retry_after_s);
            Err(Problem::unavailable("file_not_read", why, wait))
        }
        Answer::Accepted {}
        | Answer::Known {}
        | Answer::Unknown {}
        | Answer::Refused { .. }
        | Answer::Done { .. }
        | Answer::Shown { .. }
        | Answer::NotTheirs { .. }
        | Answer::Failed { .. } => {
            tracing::error!(host = %wanted.host, ?answer, "the daemon could not read a proof");
            Err(daemon::is_away())
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::Host;
    use token::Purpose;

    use super::*;

    /// Checks the result of a daemon's answer for a client that wants to opt out.
    fn check(answer: Answer, expect: Result<&str, (u16, Option<u64>)>) {
        let wanted = Wanted {
            host: Host::parse("a.example").unwrap(),
            purpose: Purpose::OptOut,
        };
        let shown = format!("{answer:?}");
        match (judge(answer, &wanted), expect) {
            (Ok(Proof::Given), Ok("given")) => {}
            (Ok(Proof::Missing(what)), Ok(why)) => {
                let put = "put the line `fedicensus-proof=opt-out` in https://a.example/.well-known/fedicensus";
                assert!(
                    what.starts_with(put) && what.contains(why),
                    "{shown}: {what}"
                );
            }
            (Err(problem), Err(expect)) => {
                let wait = problem.retry_after.map(|wait| wait.as_secs());
                assert_eq!((problem.status.as_u16(), wait), expect, "{shown}");
            }
            (judged, expect) => panic!("{shown}: {judged:?}, not {expect:?}"),
        }
    }

    #[test]
    fn a_file_proves_the_one_wish_that_stands_there_now() {
        let says = |lines: &[&str]| Answer::Proof {
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
        };
        check(
            says(&["4cb5abf6", "", "fedicensus-proof=opt-out"]),
            Ok("given"),
        );
        check(says(&[]), Ok("first ten lines do not have it"));
        check(
            says(&["# fedicensus-proof=opt-out"]),
            Ok("first ten lines do not have it"),
        );
        check(
            says(&["fedicensus-proof=submit"]),
            Ok("it says `fedicensus-proof=submit`"),
        );
        check(
            says(&["fedicensus-proof=opt-out", "fedicensus-proof=submit"]),
            Ok("contradictory lines"),
        );
    }

    #[test]
    fn what_the_daemon_could_not_find_out_is_never_taken_for_a_no() {
        let why = || "its host answers 404".to_owned();
        check(Answer::NoProof { why: why() }, Ok("(its host answers 404)"));
        check(Answer::NotAdmitted { why: why() }, Ok("not read"));
        let retry_after_s = 59;
        let not_now = Answer::NotNow {
            why: why(),
            retry_after_s,
        };
        check(not_now, Err((429, Some(59))));
        let cannot_tell = Answer::CannotTell {
            why: why(),
            retry_after_s,
        };
        check(cannot_tell, Err((503, Some(59))));
        check(Answer::Failed { why: why() }, Err((503, Some(30))));
        check(Answer::Accepted {}, Err((503, Some(30))));
    }
}

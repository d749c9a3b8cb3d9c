//! Owners who prove a host by a secret: they see why it is listed or not, leave, and come back.
//!
//! It takes a host, a secret and an act, and looks up the record itself: a compromised intake has
//! only the secrets that owners send it. No host is visited for a proof (invariant I7). A record
//! works for a day after it was first seen, and its secret alone is enough then.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

use ::intake::secret::{self, Secret};
use ::intake::texts::{Found, RETRY_AFTER, Texts};
use ::intake::wire::{Act, Answer, PROVING_TIME_MAX};
use census::state::{OptedOutBy, State};
use gateway::TextName;
use protocol::Host;
use store::SeenProof;
use token::Form;
use tokio::time::timeout;

use super::{IntakeHandler, not_admitted};
use crate::inspect::explain::look_up;
use crate::serve::read;

/// How long a secret works after its record was first seen.
const PROOF_TIME: Duration = Duration::from_secs(24 * 60 * 60);

const USED_UP: &str = "the secret of this record no longer works, because the census first saw the record more than a day ago: publish one with another secret instead";

impl IntakeHandler {
    pub(super) async fn prove(
        &self,
        host: &Host,
        secret: &Secret,
        act: Act,
    ) -> Result<Answer, String> {
        let host = match self.handler.admit(host) {
            Ok(host) => host,
            Err(refusal) => return Ok(not_admitted(&refusal)),
        };
        let verified = timeout(PROVING_TIME_MAX, self.verify(&host, secret)).await;
        let late = |_elapsed| Ok(Err(cannot_tell("DNS did not answer in time", RETRY_AFTER)));
        if let Err(answer) = verified.unwrap_or_else(late)? {
            tracing::info!(%host, ?act, "an owner's proof was not accepted");
            return Ok(answer);
        }
        match act {
            Act::Look => self.show(host).await,
            Act::Leave => self.opt_out(host).await,
            Act::Join => self.join(host).await,
        }
    }

    /// Checks that the sender of this secret owns the host; otherwise returns what is missing.
    async fn verify(&self, host: &Host, secret: &Secret) -> Result<Result<(), Answer>, String> {
        let (services, hash, named) = (self.handler.services(), secret.hash(host), host.clone());
        let now = services.clock.now();
        let seen = read(&self.reader, move |reader| reader.proof(&named)).await?;
        if let Some(seen) = seen.filter(|seen| seen.hash == hash) {
            let works = now.since(seen.first_seen) < PROOF_TIME;
            return Ok(works.then_some(()).ok_or_else(|| no_proof(USED_UP)));
        }
        if let Err(answer) = self.find(&secret::record(&hash), host).await {
            return Ok(Err(answer));
        }
        let first_seen = now;
        let proof = SeenProof { hash, first_seen };
        let stored = services.writer.see_proof(host, proof).await;
        stored.map(Ok).map_err(|error| error.to_string())
    }

    /// Looks for the record at the host's name, and for the same one at a random name below it.
    async fn find(&self, record: &str, host: &Host) -> Result<(), Answer> {
        let label = Form::Own.label();
        let name = format!("{label}.{host}");
        let records = self.records(&name, host).await?;
        secret::check(&records, record, &name).map_err(no_proof)?;
        // Unpredictable, so that nobody can except this name from a wildcard.
        let random = RandomState::new().hash_one(&name);
        let other_name = format!("{label}.{random:016x}.{host}");
        if TextName::parse(&other_name).is_err() {
            return Err(no_proof(format!(
                "{host} is too long a name for this proof: use a token"
            )));
        }
        let records = self.records(&other_name, host).await?;
        if records.iter().any(|other| other == record) {
            return Err(no_proof(format!(
                "the record `{record}` is also at {other_name}, a random name, so it is a wildcard's, which proves nothing for the names below it: publish it at {name} alone"
            )));
        }
        Ok(())
    }

    async fn records(&self, name: &str, host: &Host) -> Result<Vec<String>, Answer> {
        let names = self.handler.services().gate.names();
        let texts = Texts::new(self.gateway.clone(), names);
        match texts.at_after_another(name, host).await {
            Ok(Found::Records(records)) => Ok(records),
            Ok(Found::None(_)) => Ok(Vec::new()),
            Ok(Found::Failed(_)) => {
                let why = format!("{name} could not be looked up: no name server answered");
                Err(cannot_tell(why, RETRY_AFTER))
            }
            Err(problem) => {
                let wait = problem.retry_after.unwrap_or(RETRY_AFTER);
                Err(cannot_tell(problem.detail, wait))
            }
        }
    }

    async fn show(&self, host: Host) -> Result<Answer, String> {
        let services = self.handler.services();
        let (now, calendar) = (services.clock.now(), services.calendar);
        let terms = services.gate.terms();
        read(&self.reader, move |reader| {
            let explained = look_up(reader, &host, &terms.deny, now, calendar)?;
            Ok(Answer::Shown {
                words: explained.for_owner(),
                state: explained.state,
            })
        })
        .await
    }

    async fn join(&self, host: Host) -> Result<Answer, String> {
        let Some(record) = self.found(&host).await? else {
            return self.submit(host, None).await;
        };
        let by = OptedOutBy::Robots;
        if record.state != (State::OptedOut { by }) {
            return self.opt_in(host).await;
        }
        let services = self.handler.services();
        let asked = services.writer.ask_again(&host, services.clock.now());
        asked.await.map_err(|error| error.to_string())?;
        tracing::info!(%host, "its robots.txt is read again for its owner");
        Ok(Answer::Done {
            words: "its robots.txt is read again soon, and decides".to_owned(),
        })
    }
}

fn no_proof(why: impl Into<String>) -> Answer {
    let why = why.into();
    Answer::NoProof { why }
}

fn cannot_tell(why: impl Into<String>, wait: Duration) -> Answer {
    Answer::CannotTell {
        why: why.into(),
        retry_after_s: wait.as_secs().saturating_add(1),
    }
}

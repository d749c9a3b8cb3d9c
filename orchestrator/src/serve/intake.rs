//! The daemon's socket for the intake: submissions and opt-outs that the intake has verified, and
//! hosts' own files for the intake to judge. Owners' secrets are verified here.
//!
//! Requests are those of [`intake::wire`]. They become rows and orders to the loop, as the same
//! requests on the control socket do, or visits to hosts for one file. All other requests are
//! rejected. The intake may be taken over, so its requests have no more power than an owner's. The
//! daemon admits names again itself, asks no host that must be left alone, and counts here what
//! creates rows of unknown names or visits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::intake::wire::{Answer, Request, Vouched};
use admission::KeyHash;
use census::state::{OptedOutBy, Record};
use gateway::GatewayClient;
use protocol::Host;
use store::{OptIn, OptOut, Reader};
use tokio::net::UnixStream;

use self::opt_out_limit::OptOutLimit;
use self::proofs::{ReadsProofs, Seen};
use crate::admit::gate::Submitted;
use crate::serve::control::Handler;
use crate::serve::read;
use crate::serve::socket::{Server, Talk};

mod opt_out_limit;
mod owner;
mod proof_limit;
pub mod proofs;

/// Time limit for a line: the intake writes its request at once, and waits for the answer.
const LINE_WITHIN: Duration = Duration::from_secs(5);

pub type IntakeServer = Server<IntakeHandler>;

#[derive(Debug, Clone)]
pub struct IntakeHandler {
    handler: Handler,
    reader: Arc<Mutex<Reader>>,
    opt_out_limit: Arc<Mutex<OptOutLimit>>,
    proofs: Arc<dyn ReadsProofs>,
    gateway: GatewayClient,
}

impl Talk for IntakeHandler {
    /// As many as the intake serves requests.
    const CONNECTIONS_MAX: usize = 64;

    async fn talk(self, stream: UnixStream) -> anyhow::Result<()> {
        let answer = |request| self.answer(request);
        Ok(local_socket::answer_one(stream, LINE_WITHIN, answer).await?)
    }
}

impl IntakeHandler {
    /// Uses the handler that serves commands, a separate reader, a reader of proofs, and the
    /// gateway for the records of secrets.
    pub fn new(
        handler: Handler,
        reader: Reader,
        proofs: Arc<dyn ReadsProofs>,
        gateway: GatewayClient,
    ) -> Self {
        Self {
            handler,
            reader: Arc::new(Mutex::new(reader)),
            opt_out_limit: Arc::default(),
            proofs,
            gateway,
        }
    }

    pub async fn answer(&self, request: Request) -> Answer {
        let answered = match request {
            Request::Submit { host, vouched } => self.submit(host, vouched).await,
            Request::OptOut { host, undo, domain } => match self.refuse_suffix(&host, domain) {
                Some(refused) => Ok(refused),
                None if undo => self.opt_in(host).await,
                None => self.opt_out(host).await,
            },
            Request::SubmissionState { host } => self.state(&host).await,
            Request::ReadProof { host } => self.read_proof(&host).await,
            Request::Prove { host, secret, act } => self.prove(&host, &secret, act).await,
        };
        answered.unwrap_or_else(|why| Answer::Failed { why })
    }

    async fn submit(&self, host: Host, vouched: Option<Vouched>) -> Result<Answer, String> {
        if self.found(&host).await?.is_some() {
            return Ok(Answer::Known {});
        }
        let host = match self.handler.admit(&host) {
            Ok(host) => host,
            Err(refusal) => return Ok(not_admitted(&refusal)),
        };
        let answer = self.hand_to_the_gate(&host, vouched.as_ref()).await?;
        tracing::info!(%host, domain = vouched.map(|by| by.domain.to_string()), ?answer, "submitted");
        Ok(answer)
    }

    /// Makes a verified submission a candidate. A domain's key vouches for it (subject a), or the
    /// host itself. Only this function decides whether there is room; without room it returns
    /// [`Answer::NotNow`] or [`Answer::Refused`].
    async fn hand_to_the_gate(
        &self,
        host: &Host,
        vouched: Option<&Vouched>,
    ) -> Result<Answer, String> {
        let by = vouched.map(|by| (KeyHash(by.key_hash.0), &by.domain));
        Ok(match self.handler.submit(host, by).await? {
            Submitted::New => Answer::Accepted {},
            Submitted::Known => Answer::Known {},
            Submitted::Refused(refusal) => Answer::Refused {
                why: refusal.to_string(),
            },
            Submitted::NoRoom {
                refusal,
                retry_after_s,
            } => Answer::NotNow {
                why: refusal.to_string(),
                retry_after_s,
            },
        })
    }

    async fn opt_out(&self, host: Host) -> Result<Answer, String> {
        if self.found(&host).await?.is_none()
            && let Some(answer) = self.refuse_stranger(&host)
        {
            return Ok(answer);
        }
        let outcome = self.handler.leave_alone(&host).await?;
        tracing::info!(%host, ?outcome, "opted out by its owner through the intake");
        Ok(match outcome {
            OptOut::Done | OptOut::DoneListed => Answer::Done {
                words:
                    "it leaves the list within a quarter of an hour, and is not checked from now on"
                        .to_owned(),
            },
            OptOut::Stands { .. } | OptOut::Joins { .. } => Answer::Done {
                words: "opted out already: it is not listed and not checked".to_owned(),
            },
        })
    }

    /// Names below a public suffix have different owners, so none of them decides for all.
    fn refuse_suffix(&self, host: &Host, signed_by: Option<Host>) -> Option<Answer> {
        let domain = signed_by?;
        let registered = self.handler.registered_domain(host);
        (!domain.is_within(&registered)).then(|| Answer::NotTheirs {
            words: format!(
                "{domain} can't decide for {host}: sign with a key of {registered} or of {host}"
            ),
        })
    }

    /// The row of an unknown name takes room forever, and one key can vouch for any number of names
    /// below its domain.
    fn refuse_stranger(&self, host: &Host) -> Option<Answer> {
        if let Err(refusal) = self.handler.admit(host) {
            return Some(not_admitted(&refusal));
        }
        let domain = self.handler.registered_domain(host);
        let now = tokio::time::Instant::now().into_std();
        let mut opt_out_limit = self
            .opt_out_limit
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let wait = opt_out_limit.admit(&domain, now).err()?;
        Some(Answer::NotNow {
            why: "the census does not know this host, and too many others that it does not know opted out today: it is not listed anyway".to_owned(),
            retry_after_s: wait.as_secs().saturating_add(1),
        })
    }

    async fn opt_in(&self, host: Host) -> Result<Answer, String> {
        let outcome = self.handler.take_back(&host).await?;
        tracing::info!(%host, ?outcome, "opted in by its owner through the intake");
        Ok(match outcome {
            OptIn::Done => Answer::Done {
                words: "opted in again: the census will look at this host soon".to_owned(),
            },
            // The host stays opted out in both cases.
            OptIn::NotTheirs { by } | OptIn::StillOut { by } => Answer::NotTheirs {
                words: match by {
                    OptedOutBy::Robots => "this host's own robots.txt asks the census to stay away: allow `Fedicensus` there, and it is checked again within a month".to_owned(),
                    OptedOutBy::Moderator => "a moderator of this census removed this host, and only they can revoke that".to_owned(),
                    OptedOutBy::Owner => "another owner of this host opted it out".to_owned(),
                },
            },
            OptIn::NotOptedOut => Answer::Known {},
            OptIn::Unknown => Answer::Unknown {},
        })
    }

    /// Hosts that are refused here are not visited.
    async fn read_proof(&self, host: &Host) -> Result<Answer, String> {
        let host = match self.handler.admit(host) {
            Ok(host) => host,
            Err(refusal) => return Ok(not_admitted(&refusal)),
        };
        if self.handler.denies(&host).is_err() || !self.handler.may_be_asked(&host).await? {
            // The same answer for each of these cases, because anyone can ask.
            return Ok(Answer::NoProof {
                why: "this census requests nothing from this host".to_owned(),
            });
        }
        let was_alive = self
            .found(&host)
            .await?
            .is_some_and(|record| record.last_alive.is_some());
        let seen = if was_alive { Seen::Alive } else { Seen::Never };
        Ok(self.proofs.read(&host, seen).await)
    }

    async fn state(&self, host: &Host) -> Result<Answer, String> {
        Ok(match self.found(host).await? {
            Some(_) => Answer::Known {},
            None => Answer::Unknown {},
        })
    }

    async fn found(&self, host: &Host) -> Result<Option<Record>, String> {
        let host = host.clone();
        let stored = read(&self.reader, move |reader| reader.record(&host)).await?;
        Ok(stored.map(|stored| stored.record))
    }
}

fn not_admitted(refusal: &admission::Refusal) -> Answer {
    Answer::NotAdmitted {
        why: refusal.to_string(),
    }
}

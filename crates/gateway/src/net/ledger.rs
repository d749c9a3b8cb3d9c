//! Grants turns from this gateway's [`Pace`], or asks another gateway for them over a Unix socket,
//! so that all ways out together keep the paces (invariant I8).
//!
//! A connection carries one request and its answer. Without an answer nothing is resolved or
//! dialled, and no host is judged (invariant I5).

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use local_socket::{Ask, Client};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::net::pace::{Charged, Late, Pace, Turn};
use crate::settings::Settings;
use crate::wire::control::Deferral;

/// Longest wait for another gateway's answer. It answers from memory, on the same machine: one that
/// takes longer hangs.
pub const GRANT_TIME_MAX: Duration = Duration::from_secs(2);

/// The answer if no dial is in turn and no time is promised.
pub const NO_TURN: Late = Late {
    why: Deferral::DialPace,
    retry_after: Duration::ZERO,
};

/// A turn or its refusal. Outside: why nobody grants turns, for the operator.
pub type Granted = Result<Result<Turn, Late>, String>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LedgerRequest {
    /// Charges a look-up below this registered domain.
    Group { group: String },
    /// Charges a dial of the first target in turn. `charged` are this open's addresses so far.
    Dial {
        targets: Vec<SocketAddr>,
        charged: Vec<IpAddr>,
    },
    /// Promises when one open can dial `at_once` of the targets; grants nothing.
    Promise {
        targets: Vec<SocketAddr>,
        at_once: usize,
    },
    /// Records that an instance responded at this address.
    Proven { address: IpAddr },
}

impl Ask for LedgerRequest {
    type Answer = Granted;

    /// The longest request has 16 targets. A table full of such groups still fits into memory.
    const BYTES_MAX: usize = 2048;

    const ANSWER_BYTES_MAX: usize = 2048;

    fn answer_time_max(&self) -> Duration {
        GRANT_TIME_MAX
    }

    fn parse<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
        serde_json::from_slice(line)
    }

    fn failed(why: String) -> Granted {
        Err(why)
    }
}

/// Who grants this gateway's turns.
#[derive(Debug)]
pub struct PaceLedger {
    own: Mutex<Pace>,
    /// The socket of the gateway that grants them instead.
    other: Option<PathBuf>,
    /// Whether that gateway did not answer the last request.
    is_silent: AtomicBool,
}

impl PaceLedger {
    pub fn new(settings: &Settings) -> Self {
        Self {
            own: Mutex::new(Pace::new(settings.paces, settings.pace_divisor)),
            other: settings.other_ledger.clone(),
            is_silent: AtomicBool::new(false),
        }
    }

    /// This gateway's own table. `None` if another gateway grants the turns.
    pub fn own(&self) -> Option<MutexGuard<'_, Pace>> {
        let is_own = self.other.is_none();
        is_own.then(|| self.own.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub async fn ask(&self, request: LedgerRequest) -> Granted {
        let Some(path) = &self.other else {
            return self.answer(request, Duration::ZERO);
        };
        let asked = Instant::now();
        let answer = Client::new(path.clone()).ask(&request).await;
        let granted = match answer {
            // A process that was stopped and continued finds an answer from before.
            Ok(_) if asked.elapsed() > GRANT_TIME_MAX => Err("it answered too late".to_owned()),
            Ok(granted) => granted,
            Err(error) => Err(error.to_string()),
        };
        self.is_silent.store(granted.is_err(), Ordering::Relaxed);
        let path = path.display();
        granted.map_err(|why| format!("the first gateway grants no turns at {path}: {why}. Start it with `second_gateway` set; its log says why it ended"))
    }

    /// Why nobody grants turns. After a request without an answer, this asks again.
    pub async fn trouble(&self) -> Option<String> {
        if !self.is_silent.load(Ordering::Relaxed) {
            return None;
        }
        // Without targets, nothing is promised.
        let (targets, at_once) = (Vec::new(), 1);
        let promise = LedgerRequest::Promise { targets, at_once };
        self.ask(promise).await.err()
    }

    /// Grants from the own table. The visit may begin `delay` after its slot, while the answer is
    /// on its way, and the next one keeps its distance from that. Dials together are spaced by
    /// their slots alone: that pace bounds their rate, and protects no host.
    pub fn answer(&self, request: LedgerRequest, delay: Duration) -> Granted {
        let now = Instant::now().into_std();
        let mut pace = self.own().ok_or("this gateway keeps no ledger")?;
        Ok(match request {
            LedgerRequest::Group { group } => pace.charge_group(&group, now).map(|()| {
                pace.put_off_group(&group, now.checked_add(delay).unwrap_or(now));
                Turn::default()
            }),
            LedgerRequest::Dial { targets, charged } => {
                let mut charged = Charged::new(charged, delay);
                pace.charge_dial(&targets, &mut charged, now).ok_or(NO_TURN)
            }
            LedgerRequest::Promise { targets, at_once } => {
                Err(pace.promise_dial(&targets, at_once, now))
            }
            LedgerRequest::Proven { address } => {
                pace.prove(address, now);
                Ok(Turn::default())
            }
        })
    }
}

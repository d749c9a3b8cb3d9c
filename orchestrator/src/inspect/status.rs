//! The content of `status`: the census, the daemon, its sockets.

mod lines;

use std::collections::BTreeMap;
use std::time::Duration;

use census::source::Memory;
use census::time::{Timestamp, rfc3339};
use gateway::GatewayClient;
use launcher::LauncherClient;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::{Reader, StoreError};

use crate::daemon::LiveState;
use crate::discover::lists::keep::pause_words;
use crate::publish::progress;

/// A part that does not answer within this time is unhealthy.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    /// Hosts by state, all states.
    pub hosts: BTreeMap<String, u64>,
    pub hosts_total: u64,
    /// Hosts that ask not to be listed.
    pub hidden: u64,
    /// Hosts that are due now.
    pub due: u64,
    pub in_flight: u64,
    /// The first round of checks in a sentence, while it is under way.
    pub progress: Option<String>,
    /// Groups over the threshold that no one has decided about.
    pub groups_held: u64,
    /// Hosts held back in these groups.
    pub hosts_held_back: u64,
    pub groups_denied: u64,
    /// Public lists that were read at least once.
    pub sources: Vec<SourceShown>,
    /// Hosts by how their last peers list ended.
    pub peers_lists: BTreeMap<String, u64>,
    /// Hosts by how the last walk through their public conversations ended.
    pub walks: BTreeMap<String, u64>,
    /// The last dump: when (RFC 3339) and how many names.
    pub last_dump: Option<(String, u64)>,
    /// The daemon's state; `None` if it does not run.
    pub daemon: Option<LiveState>,
    /// The gateway's state, or why there is none.
    pub gateway: Option<PartStatus<gateway::control::Status>>,
    /// The same of the second one, if there is one.
    pub second_gateway: Option<PartStatus<gateway::control::Status>>,
    /// The launcher's state, or why there is none.
    pub launcher: Option<PartStatus<launcher::wire::Status>>,
}

/// What the census remembers of a public list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceShown {
    /// Its name in the operator's file.
    pub name: String,
    /// When it was last read, successfully or not (RFC 3339).
    pub tried: Option<String>,
    /// When names were last taken from it (RFC 3339).
    pub taken: Option<String>,
    /// Distinct names it held then.
    pub names: Option<u64>,
    /// Why it is not read until the operator resumes it.
    pub paused: Option<String>,
    /// What was wrong at the last reading.
    pub trouble: Option<String>,
}

impl SourceShown {
    /// The source as `status` shows it.
    pub fn new(name: &str, memory: &Memory) -> Self {
        Self {
            name: name.to_owned(),
            tried: memory.tried.map(rfc3339),
            taken: memory.taken.map(|taken| rfc3339(taken.at)),
            names: memory.taken.map(|taken| taken.names),
            paused: memory.paused.map(|pause| {
                let since = rfc3339(pause.since);
                format!("since {since}: {}", pause_words(pause))
            }),
            trouble: memory.trouble.clone(),
        }
    }

    /// The source in one line, without its name.
    pub fn text(&self) -> String {
        let taken = match (&self.taken, self.names) {
            (Some(taken), Some(names)) => format!("{names} names taken {taken}"),
            (_, _) => "nothing taken yet".to_owned(),
        };
        let paused = self.paused.as_ref().map(|why| {
            format!(
                "; PAUSED {why}: inspect it, then `fedicensus sources resume {}`",
                self.name
            )
        });
        let trouble = self.trouble.as_ref().map(|trouble| {
            let tried = self.tried.as_deref().unwrap_or_default();
            format!("; not read {tried}: {trouble}")
        });
        format!(
            "{taken}{}{}",
            paused.unwrap_or_default(),
            trouble.unwrap_or_default()
        )
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartStatus<T> {
    Open(T),
    /// The part did not answer, and why.
    Closed(String),
}

/// Reads the figures from the database. Blocks.
pub fn read(reader: &Reader, now: Timestamp) -> Result<Status, StoreError> {
    let counts = reader.counts()?;
    let held = reader.held()?;
    Ok(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hosts: counts
            .by_state
            .iter()
            .map(|(state, count)| (state.as_str().to_owned(), *count))
            .collect(),
        hosts_total: counts.hosts,
        hidden: counts.hidden,
        due: reader.due(now)?,
        in_flight: counts.in_flight,
        progress: progress::read(reader, &counts, now)?,
        groups_held: held.groups,
        hosts_held_back: held.hosts,
        groups_denied: held.denied,
        sources: reader
            .sources()?
            .iter()
            .map(|(name, memory)| SourceShown::new(name, memory))
            .collect(),
        peers_lists: reader.peers_outcomes()?,
        walks: reader.walk_outcomes()?,
        last_dump: reader
            .last_dump()?
            .map(|dump| (rfc3339(dump.at), dump.names)),
        daemon: None,
        gateway: None,
        second_gateway: None,
        launcher: None,
    })
}

impl Status {
    /// Parts that do not answer.
    pub fn missing(&self) -> Vec<&'static str> {
        let gateway = matches!(self.gateway, Some(PartStatus::Closed(_)));
        let second_gateway = matches!(self.second_gateway, Some(PartStatus::Closed(_)));
        let launcher = matches!(self.launcher, Some(PartStatus::Closed(_)));
        [
            (self.daemon.is_none(), "daemon"),
            (gateway, "gateway"),
            (second_gateway, "second gateway"),
            (launcher, "launcher"),
        ]
        .into_iter()
        .filter_map(|(is_missing, part)| is_missing.then_some(part))
        .collect()
    }

    /// For programs: as [`Status`] serialises, with all times as RFC 3339.
    pub fn json(&self) -> serde_json::Result<Value> {
        let mut json = serde_json::to_value(self)?;
        if let Some(Value::Object(daemon)) = json.get_mut("daemon") {
            for key in ["started", "now", "last_round", "resumed", "listed"] {
                take_time(daemon, key);
            }
            if let Some(Value::Object(blackout)) = daemon.get_mut("blackout") {
                take_time(blackout, "since");
            }
            let outage = self
                .daemon
                .as_ref()
                .and_then(|daemon| daemon.outage.as_ref());
            let outage = outage
                .map(|(what, since)| json!({"what": what, "since": rfc3339(Timestamp(*since))}));
            daemon.insert("outage".to_owned(), outage.into());
            let ways = self.daemon.iter().flat_map(|daemon| &daemon.ill_ways);
            let ways = ways.map(|(way, what, since)| {
                json!({"way": way, "what": what, "since": rfc3339(Timestamp(*since))})
            });
            daemon.insert("ill_ways".to_owned(), ways.collect());
        }
        if let Some(status) = json.as_object_mut() {
            let dump = self.last_dump.as_ref();
            let dump = dump.map(|(at, names)| json!({"at": at, "names": names}));
            status.insert("last_dump".to_owned(), dump.into());
        }
        Ok(json)
    }

    /// Asks the gateways and the launcher for their status.
    pub async fn ask_parts(
        &mut self,
        gateway: &GatewayClient,
        second_gateway: Option<&GatewayClient>,
        launcher: &LauncherClient,
    ) {
        let second = async {
            match second_gateway {
                Some(gateway) => Some(ask_at(gateway.status()).await),
                None => None,
            }
        };
        let (gateway, second, launcher) =
            tokio::join!(ask_at(gateway.status()), second, ask_at(launcher.status()));
        self.gateway = Some(gateway);
        self.second_gateway = second;
        self.launcher = Some(launcher);
    }
}

/// Replaces `KEY_ms`, in ms since 1970, with `KEY` as RFC 3339.
fn take_time(object: &mut Map<String, Value>, key: &str) {
    let ms = object.remove(&format!("{key}_ms"));
    if let Some(ms) = ms.as_ref().and_then(Value::as_i64) {
        object.insert(key.to_owned(), rfc3339(Timestamp(ms)).into());
    }
}

/// A part that hangs must not hold up the status.
async fn ask_at<T, E: std::fmt::Display>(
    asking: impl Future<Output = Result<T, E>>,
) -> PartStatus<T> {
    match tokio::time::timeout(ANSWER_WITHIN, asking).await {
        Ok(Ok(answer)) => PartStatus::Open(answer),
        Ok(Err(error)) => PartStatus::Closed(error.to_string()),
        Err(_elapsed) => PartStatus::Closed(format!(
            "no answer within {ANSWER_WITHIN:?}: if it hangs, restart it"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use protocol::egress::Family;
    use scheduler::blame::blackout::Blackout;

    use super::*;
    use crate::daemon::Pace;

    fn paused() -> Memory {
        let (memory, _) = Memory::default().after_reading(3, Timestamp(0));
        memory.after_reading(30, Timestamp(1000)).0
    }

    fn silent() -> Status {
        let mut silence = Blackout::default();
        for second in 0..37 {
            let kind = if second % 5 == 0 {
                "unreachable"
            } else {
                "tls"
            };
            silence.fail(kind, &[Family::V4], Timestamp(second * 1000));
        }
        silence.look(Timestamp(60_000));
        Status {
            version: "0.1.0".to_owned(),
            hosts: [("alive", 37), ("dead", 0), ("opted_out", 2), ("parked", 1)]
                .map(|(state, hosts)| (state.to_owned(), hosts))
                .into(),
            hosts_total: 40,
            hidden: 0,
            due: 3,
            in_flight: 37,
            progress: Some("1 of 3 known names checked".to_owned()),
            groups_held: 2,
            hosts_held_back: 300,
            groups_denied: 1,
            sources: vec![SourceShown::new("a-list", &paused())],
            peers_lists: [("complete", 30), ("refused", 10)]
                .map(|(outcome, count)| (outcome.to_owned(), count))
                .into(),
            walks: BTreeMap::new(),
            last_dump: None,
            daemon: Some(LiveState {
                waiting: 37,
                pace: Box::new(Pace {
                    checks_allowed: 3,
                    checks_min: 2,
                    checks_max: 4,
                    checks_running: 3,
                    limited_by: "processor".to_owned(),
                    starts_per_second: 10.2,
                    under_way: [("dead", 2), ("living", 9), ("new", 0)]
                        .map(|(class, count)| (class.to_owned(), count))
                        .into(),
                }),
                blackout: silence.describe(),
                ..LiveState::default()
            }),
            second_gateway: None,
            gateway: Some(PartStatus::Open(gateway::control::Status {
                version: "0.1.0".to_owned(),
                families: vec![Family::V6],
                open: 0,
                opens_total: 37,
                dials_total: 37,
                lab: false,
                trouble: None,
            })),
            launcher: None,
        }
    }

    #[test]
    fn a_blackout_is_in_plain_words() {
        let expect = "\
fedicensus 0.1.0, database in /data
hosts      40: 37 up, 2 withheld (opted out), 1 withheld (parked); 0 hidden
checks     3 due, 37 in flight
progress   1 of 3 known names checked
groups     2 held with 300 hosts held back, 1 denied
peers      30 complete, 10 refused
source     a-list: 3 names taken 1970-01-01T00:00:00Z; PAUSED since 1970-01-01T00:00:01Z: it held 30 names, and 3 at the reading before: \
inspect it, then `fedicensus sources resume a-list`
daemon     since 1970-01-01T00:00:00Z, 0.00 checks/s, 37 wait for confirmation
pace       3 of 3 containers at once (2 to 4), limited by processor; 10 starts/s at most; in progress: 2 dead, 9 living
NO CHECK SUCCEEDS since 1970-01-01T00:00:00Z: 37 checks in a row failed, none counts against its host; most often: tls ×29, unreachable ×8. \
Is this machine's clock right? Does its resolver return the right addresses? Does a proxy alter TLS? Are the checker's \
trust roots outdated?
last dump  never
gateway    IPv6 only; NO IPv4: hosts with IPv4 addresses only are deferred, and no failure counts, 0 open, 37 dials";
        assert_eq!(silent().text(Path::new("/data")), expect);
    }

    #[test]
    fn a_terminal_gets_the_same_words_in_at_most_100_columns() {
        let status = silent();
        let (plain, shown) = (
            status.text(Path::new("/data")),
            status.terminal(Path::new("/data"), false),
        );
        assert!(
            shown.lines().all(|line| line.chars().count() <= 100),
            "{shown}"
        );
        assert!(plain.lines().any(|line| line.chars().count() > 100));
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        assert_eq!(words(&shown), words(&plain));
    }

    #[test]
    fn colour_marks_alarms_and_nothing_without_it() {
        let status = silent();
        let shown = |has_colour| status.terminal(Path::new("/data"), has_colour);
        assert!(!shown(false).contains('\x1b'));
        let coloured = shown(true);
        let red: Vec<_> = coloured
            .lines()
            .filter(|line| line.starts_with("\x1b[1;31m"))
            .collect();
        assert_eq!(red.len(), 2, "{coloured:?}");
        assert!(red[0].contains("NO CHECK SUCCEEDS"), "{red:?}");
        assert!(red[1].contains("NO IPv4"), "{red:?}");
    }

    #[test]
    fn json_has_the_same_and_times_in_one_form() {
        let json = silent().json().unwrap();
        let blackout = &json["daemon"]["blackout"];
        assert_eq!(blackout["failures"], 37);
        assert_eq!(blackout["most_often"][0][0], "tls");
        assert_eq!(blackout["scope"], "anywhere");
        assert_eq!(blackout["since"], "1970-01-01T00:00:00Z");
        assert_eq!(json["daemon"]["started"], "1970-01-01T00:00:00Z");
        assert!(!json.to_string().contains("_ms\""), "{json}");
    }

    #[test]
    fn status_warns_while_the_test_domain_is_taken() {
        let mut status = silent();
        status.daemon.as_mut().unwrap().admission = Some(Box::default());
        let warns = |status: &Status| status.text(Path::new("/data")).contains("\nWARNING ");
        assert!(!warns(&status));
        let admission = status.daemon.as_mut().unwrap().admission.as_mut();
        admission.unwrap().takes_test_domain = true;
        assert!(warns(&status));
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!(json["daemon"]["admission"]["takes_test_domain"], true);
    }
}

//! An intake over real sockets: handler and store are the real ones, the gateway plays DNS, and
//! time stops unless a test moves it.

pub(crate) use kit::host;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admission::{Limit, Limits, Names, Reserved, Suffixes, TestDomain};
use census::state::{OptedOutBy, State};
use census::time::{Calendar, Jitter, Timestamp};
use census::transition::transition;
use gateway::GatewayClient;
use gateway::control::{Answer, Request, Texts};
use intake::Settings;
use intake::wire::Answer as Told;
use orchestrator::admit::gate::NameGate;
use orchestrator::admit::policy::Files as PolicyFiles;
use orchestrator::ground::clock::Clock;
use orchestrator::serve::control::Handler;
use orchestrator::serve::intake::proofs::{Reading, ReadsProofs, Seen};
use orchestrator::serve::intake::{IntakeHandler, IntakeServer};
use protocol::{Host, Private};
use store::{Store, StoreError};
use token::{Claim, LogKey, OwnToken, Purpose, SecretKey, SigsumToken, UnixSeconds};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::{CancellationToken, DropGuard};

/// 2026-10-01, an arbitrary day.
pub(crate) const NOW: u64 = 1_790_812_800;

/// Key of the census in the known Sigsum token.
pub(crate) const LOG_KEY: &str = "cda2517e17dcba133eb0e71bf77473f94a77d7e61b1de4e1e64adfd0938d6182";

/// The content of hosts' files, and which hosts were asked for theirs.
#[derive(Debug, Default)]
pub(crate) struct Files {
    there: Mutex<HashMap<String, Told>>,
    asked: Mutex<Vec<(String, Seen)>>,
}

impl ReadsProofs for Files {
    fn read<'a>(&'a self, host: &'a Host, seen: Seen) -> Reading<'a> {
        self.asked.lock().unwrap().push((host.to_string(), seen));
        let there = self.there.lock().unwrap().get(host.as_str()).cloned();
        let none = || Told::NoProof {
            why: "its host answers 404".to_owned(),
        };
        Box::pin(std::future::ready(there.unwrap_or_else(none)))
    }
}

/// The name of a wildcard, which answers for all names without answers.
pub(crate) const ANY: &str = "*";

/// DNS answers by name; of several answers, each but the last is given once.
type Zone = Arc<Mutex<HashMap<String, Vec<Answer>>>>;

pub(crate) struct Stage {
    pub(crate) store: Store,
    pub(crate) http: PathBuf,
    pub(crate) census: PathBuf,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    now: Arc<AtomicU64>,
    zone: Zone,
    files: Arc<Files>,
    _end: DropGuard,
    _directory: tempfile::TempDir,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) json: serde_json::Value,
}

#[derive(Debug)]
pub(crate) struct Standing;

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        Timestamp(i64::try_from(NOW).unwrap() * 1000)
    }
}

pub(crate) fn key() -> SecretKey {
    SecretKey::from_seed(&[7; 32])
}

/// The header of a token that is valid for an hour.
pub(crate) fn token(purpose: Purpose, domain: &str, of: &str) -> String {
    let claim = Claim {
        purpose,
        domain: host(domain),
        host: host(of),
        expires: UnixSeconds(NOW + 3600),
    };
    format!("Fedicensus-Token: {}\r\n", OwnToken::sign(claim, &key()))
}

pub(crate) fn sigsum_token(domain: &str) -> String {
    let log_key = LogKey::from_hex(LOG_KEY.as_bytes()).unwrap();
    let token = SigsumToken::sign(host(domain), log_key, &key());
    format!("Sigsum-Token: {token}\r\n")
}

pub(crate) fn records(records: &[&str]) -> Answer {
    Answer::Txt(Texts::Records {
        records: records.iter().map(|record| (*record).to_owned()).collect(),
    })
}

fn in_tokens(rules: TestDomain) -> token::TestDomain {
    match rules {
        TestDomain::Refuse => token::TestDomain::Refuse,
        TestDomain::Allow => token::TestDomain::Allow,
    }
}

fn alone(store: &Store, gate: NameGate) -> Handler {
    Handler::alone(store.writer(), gate, Arc::new(Standing), Calendar::REAL)
}

impl Reply {
    #[track_caller]
    pub(crate) fn has_code(&self, status: u16, code: &str) {
        self.has_code_for("", status, code);
    }

    /// As [`has_code`](Self::has_code), with words about the case.
    #[track_caller]
    pub(crate) fn has_code_for(&self, case: &str, status: u16, code: &str) {
        let found = (self.status, &self.json["code"]);
        assert_eq!(found, (status, &code.into()), "{case}: {self:?}");
    }

    #[track_caller]
    pub(crate) fn has_state(&self, status: u16, state: &str) {
        let found = (self.status, &self.json["state"]);
        assert_eq!(found, (status, &state.into()), "{self:?}");
    }

    /// The seconds after which the client may try again.
    pub(crate) fn retry_after(&self) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix("retry-after: "))
    }

    #[track_caller]
    pub(crate) fn is_problem(&self) {
        let kind = "content-type: application/problem+json";
        assert!(self.head.contains(kind), "{}", self.head);
    }

    /// The whole reply, without its date.
    pub(crate) fn bytes(&self) -> String {
        let head = self.head.lines().filter(|line| !line.starts_with("date: "));
        head.chain(["", &self.body]).collect::<Vec<_>>().join("\n")
    }
}

impl Stage {
    pub(crate) async fn start() -> Self {
        Self::start_with(None, alone).await
    }

    pub(crate) async fn with_rules(rules: &str) -> Self {
        Self::start_with(Some(rules), alone).await
    }

    pub(crate) async fn start_with(
        rules: Option<&str>,
        handler: impl FnOnce(&Store, NameGate) -> Handler,
    ) -> Self {
        let refuse = [TestDomain::Refuse; 2];
        Self::begin(rules, None, refuse, handler).await
    }

    /// With these lines on the operator's deny-list.
    pub(crate) async fn that_denies(names: &str) -> Self {
        let refuse = [TestDomain::Refuse; 2];
        Self::begin(None, Some(names), refuse, alone).await
    }

    /// With these settings for the test domain, of the daemon and of the intake.
    pub(crate) async fn with_test_domain(rules: &str, settings: [TestDomain; 2]) -> Self {
        Self::begin(Some(rules), None, settings, alone).await
    }

    async fn begin(
        rules: Option<&str>,
        deny: Option<&str>,
        [of_daemon, of_intake]: [TestDomain; 2],
        handler: impl FnOnce(&Store, NameGate) -> Handler,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let file = |name: &str, text: &str| {
            std::fs::write(at(name), text).unwrap();
            at(name)
        };
        let store = store::open(&at("census.db")).unwrap();
        let names = Names {
            suffixes: Suffixes::compiled(),
            reserved: Reserved::AllowInLab,
        };
        let files = PolicyFiles {
            rules: rules.map(|rules| file("rules", rules)),
            deny: deny.map(|names| file("deny", names)),
            reserved: names.reserved,
            limits: Limits {
                source: Limit::MAX,
                shared_suffix: Limit::MAX,
                total: Limit::MAX,
            },
            test_domain: of_daemon,
            ..PolicyFiles::default()
        };
        let gate = NameGate::open(store.writer(), names, files).await.unwrap();
        let names = gate.names();
        let handler = handler(&store, gate);
        let end = CancellationToken::new();
        let (reader, files) = (store.reader().unwrap(), Arc::new(Files::default()));
        let gateway = GatewayClient::new(at("texts.sock"));
        let answers = IntakeHandler::new(handler, reader, Arc::clone(&files) as _, gateway);
        let server = IntakeServer::open(&at("intake.sock"), answers).unwrap();
        tokio::spawn(server.serve(end.clone()));
        let (zone, asked) = (Zone::default(), Arc::default());
        let listener = UnixListener::bind(at("texts.sock")).unwrap();
        tokio::spawn(play_gateway(
            listener,
            Arc::clone(&zone),
            Arc::clone(&asked),
        ));
        let now = Arc::new(AtomicU64::new(NOW));
        let settings = Settings {
            socket: at("http.sock"),
            text_socket: at("texts.sock"),
            census_socket: at("intake.sock"),
            posts_per_hour: 20,
            log_key: Some(LogKey::from_hex(LOG_KEY.as_bytes()).unwrap()),
            test_domain: in_tokens(of_intake),
        };
        let clock = Arc::clone(&now);
        let time = Arc::new(move || UnixSeconds(clock.load(Ordering::Relaxed)));
        tokio::spawn(intake::serve(settings, names, time, end.clone()));
        let socket = at("http.sock");
        while local_socket::http::health(&socket).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Self {
            store,
            http: at("http.sock"),
            census: at("intake.sock"),
            asked,
            now,
            zone,
            files,
            _end: end.drop_guard(),
            _directory: directory,
        }
    }

    pub(crate) fn publish(&self, name: &str, answer: Answer) {
        self.publish_in_turn(name, &[answer]);
    }

    /// Sets the first DNS answer for a name, the second and so on; the last one stays.
    pub(crate) fn publish_in_turn(&self, name: &str, answers: &[Answer]) {
        let mut zone = self.zone.lock().unwrap();
        zone.insert(name.to_owned(), answers.to_vec());
    }

    /// Sets the result of asking a host for its file.
    pub(crate) fn file(&self, name: &str, told: Told) {
        let mut there = self.files.there.lock().unwrap();
        there.insert(name.to_owned(), told);
    }

    pub(crate) fn file_says(&self, name: &str, lines: &[&str]) {
        let lines = lines.iter().map(|&line| line.to_owned()).collect();
        self.file(name, Told::Proof { lines });
    }

    /// The hosts that were asked for a file.
    pub(crate) fn visited(&self) -> Vec<String> {
        let asked = self.files.asked.lock().unwrap();
        asked.iter().map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        let asked = self.files.asked.lock().unwrap();
        asked.iter().map(|(_, seen)| *seen).collect()
    }

    /// Publishes the proof of a wish in the host's own zone.
    pub(crate) fn prove(&self, host: &str, wish: &str) {
        let record = format!("fedicensus-proof={wish}");
        self.publish(&format!("_fedicensus.{host}"), records(&[&record]));
    }

    pub(crate) async fn opt_out(&self, name: &str, by: OptedOutBy) {
        let (writer, host) = (self.store.writer(), host(name));
        writer.opt_out(&host, by, Standing.now()).await.unwrap();
    }

    pub(crate) fn publish_key(&self, label: &str, domain: &str) {
        let digits = key().public().to_string();
        self.publish(&format!("{label}.{domain}"), records(&[&digits]));
    }

    pub(crate) fn time_is(&self, now: u64) {
        self.now.store(now, Ordering::Relaxed);
    }

    pub(crate) fn lookups(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    pub(crate) async fn post(&self, path: &str, headers: &str, body: &str) -> Reply {
        self.post_from("192.0.2.1", path, headers, body).await
    }

    pub(crate) async fn post_from(
        &self,
        client: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Reply {
        let length = body.len();
        self.raw(format!(
            "POST {path} HTTP/1.1\r\nhost: census.example\r\nx-real-ip: {client}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        ))
        .await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        let head = "host: census.example\r\nx-real-ip: 192.0.2.1\r\n";
        self.raw(format!("GET {path} HTTP/1.1\r\n{head}\r\n")).await
    }

    pub(crate) async fn raw(&self, request: impl AsRef<[u8]>) -> Reply {
        let mut stream = UnixStream::connect(&self.http).await.unwrap();
        // A request that is refused early is not read to its end.
        stream.write_all(request.as_ref()).await.ok();
        read_reply(stream).await
    }

    /// Admits a host that was just found alive.
    pub(crate) async fn bring_in(&self, name: &str) {
        self.bring_in_that_is(Private::No, name).await;
    }

    /// Admits a host that was just found alive and allows or forbids statistics about it.
    pub(crate) async fn bring_in_that_is(&self, private: Private, name: &str) {
        let (writer, now) = (self.store.writer(), Standing.now());
        writer.add_now(vec![host(name)], now).await.unwrap();
        let host = host(name);
        let taken = writer.take_one(&host, now, Jitter(0), Calendar::REAL).await;
        let taken = taken.unwrap().unwrap();
        let alive = kit::alive_with(private);
        let change = transition(&taken.record, &alive, now, Jitter(0), Calendar::REAL);
        writer.commit(change).await.unwrap();
    }

    /// The names in the next dump.
    pub(crate) fn listed(&self) -> Vec<String> {
        let mut listed = Vec::new();
        let reader = self.store.reader().unwrap();
        reader
            .listed(Standing.now(), Calendar::REAL, |row| {
                listed.push(row.host.to_owned());
                Ok::<(), StoreError>(())
            })
            .unwrap();
        listed
    }

    pub(crate) fn state(&self, name: &str) -> Option<State> {
        let stored = self.store.reader().unwrap().record(&host(name)).unwrap();
        stored.map(|stored| stored.record.state)
    }
}

pub(crate) async fn read_reply(mut stream: UnixStream) -> Reply {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.ok();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1);
    Reply {
        status: status.and_then(|status| status.parse().ok()).unwrap_or(0),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
        json: serde_json::from_str(body).unwrap_or_default(),
    }
}

async fn play_gateway(listener: UnixListener, zone: Zone, asked: Arc<Mutex<Vec<String>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (from, mut to) = stream.into_split();
        let mut line = String::new();
        BufReader::new(from).read_line(&mut line).await.unwrap();
        let Ok(Request::Txt { name, group }) = serde_json::from_str(&line) else {
            panic!("the intake asked for more than texts: {line}");
        };
        assert!(name.domain().is_within(&group), "{name} in {group}");
        let name = name.to_string();
        let is_there = zone.lock().unwrap().contains_key(&name);
        let key = if is_there { name.as_str() } else { ANY };
        let known = zone.lock().unwrap().get_mut(key).map(|answers| {
            if answers.len() > 1 {
                answers.remove(0)
            } else {
                answers[0].clone()
            }
        });
        asked.lock().unwrap().push(name);
        let answer = known.unwrap_or(Answer::Txt(Texts::NoSuchName {}));
        let mut line = serde_json::to_vec(&answer).unwrap();
        line.push(b'\n');
        to.write_all(&line).await.ok();
    }
}

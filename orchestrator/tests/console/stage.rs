//! A console over real sockets: accounts, handler and store are the real ones, the test plays the
//! loop, and the console's time stops unless a test moves it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use accounts::{Accounts, Password};
use console::LogAddresses;
use console::wire::{Answer, Census, Request};
use limiter::login::record::Timestamp;
use orchestrator::admit::gate::NameGate;
use orchestrator::check::services::Services;
use orchestrator::check::slot_queue::SlotQueue;
use orchestrator::config::{Config, Values};
use orchestrator::daemon::{Live, ORDERS_MAX, Order};
use orchestrator::ground::clock::{Clock, Random, SystemClock};
use orchestrator::serve::console::{ConsoleHandler, ConsoleServer};
use orchestrator::serve::control::Handler;
use protocol::Host;
use store::Store;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// 2026-10-01, an arbitrary day, in seconds.
const NOW: u64 = 1_790_812_800;

pub(crate) const PASSWORD: &str = "correct horse";

pub(crate) struct Stage {
    pub(crate) store: Store,
    pub(crate) orders: mpsc::Receiver<Order>,
    /// Recovery codes of the account `ada`; each allows one login.
    pub(crate) codes: Vec<String>,
    pub(crate) accounts: PathBuf,
    http: PathBuf,
    census: PathBuf,
    now: Arc<AtomicU64>,
    services: Services,
    _end: DropGuard,
    _directory: tempfile::TempDir,
}

/// A browser: its cookies and its user agent.
#[derive(Debug, Clone)]
pub(crate) struct Browser {
    pub(crate) cookies: Vec<(String, String)>,
    pub(crate) agent: &'static str,
    pub(crate) address: &'static str,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Default for Browser {
    fn default() -> Self {
        Self {
            cookies: Vec::new(),
            agent: "browser 1",
            address: "192.0.2.1",
        }
    }
}

impl Browser {
    pub(crate) fn at(address: &'static str) -> Self {
        Self {
            address,
            ..Self::default()
        }
    }

    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let mut of_name = self.cookies.iter().filter(|(key, _)| key == name);
        of_name.next().map(|(_, value)| value.as_str())
    }

    fn keep(&mut self, reply: &Reply) {
        for line in reply.head.lines() {
            let Some(cookie) = line.strip_prefix("set-cookie: ") else {
                continue;
            };
            let (name, rest) = cookie.split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            self.cookies.retain(|(key, _)| key != name);
            if !cookie.contains("Max-Age=0") {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = fields.find(|(key, _)| *key == name);
        found.map(|(_, value)| value)
    }

    /// The token in the page's first form.
    pub(crate) fn form(&self) -> String {
        let form = self.body.split("name=\"form\" value=\"").nth(1);
        let token = form.and_then(|rest| rest.split('"').next());
        token.unwrap_or_default().to_owned()
    }
}

fn config(directory: &std::path::Path) -> Config {
    let flags = |key: &str| match key {
        "data_dir" | "public_dir" | "run_dir" => Some(directory.display().to_string()),
        "contact" => Some("https://example.org".to_owned()),
        _ => None,
    };
    Config::new(&Values::gather(flags, |_| None, None).unwrap()).unwrap()
}

impl Stage {
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let config = config(directory.path());
        let store = store::open(&at("census.db")).unwrap();
        let (names, files) = (config.names().unwrap(), config.admission.clone());
        let gate = NameGate::open(store.writer(), names, files).await.unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let slots = SlotQueue::unlimited();
        let services = config.services(store.writer(), gate, clock, Random::from_os(), slots);
        let live = Arc::new(Live::new(services.now(), services.meters.clone()));
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        let handler = Handler::with_daemon(&services, sender, live);
        let reader = store.reader().unwrap();
        let answers =
            ConsoleHandler::new(handler, reader, services.clone(), config.data_dir.clone());
        let end = CancellationToken::new();
        let server = ConsoleServer::open(&at("console.sock"), answers).unwrap();
        tokio::spawn(server.serve(end.clone()));

        let path = at("accounts.db");
        let mut accounts = Accounts::open(&path, &mut rand::rng()).unwrap();
        let password = Password::new(PASSWORD.to_owned());
        let added = accounts.add(
            "ada",
            &password,
            Timestamp(Duration::from_secs(NOW)),
            &mut rand::rng(),
        );
        let codes = added.unwrap().recovery_codes;
        drop(accounts);
        let now = Arc::new(AtomicU64::new(NOW));
        let settings = console::Settings {
            title: "My census".to_owned(),
            socket: at("http.sock"),
            census_socket: at("console.sock"),
            accounts: path.clone(),
            log_addresses: LogAddresses::No,
            hashes: 2,
        };
        let clock = Arc::clone(&now);
        let time = Arc::new(move || Timestamp(Duration::from_secs(clock.load(Ordering::Relaxed))));
        let console = tokio::spawn(console::serve(settings, time, end.clone()));
        let http = at("http.sock");
        while local_socket::http::health(&http).await.is_err() {
            assert!(!console.is_finished(), "the console does not start");
            tokio::task::yield_now().await;
        }
        Self {
            store,
            orders,
            codes,
            accounts: path,
            http,
            census: at("console.sock"),
            now,
            services,
            _end: end.drop_guard(),
            _directory: directory,
        }
    }

    /// Moves the console's time forward.
    pub(crate) fn passes(&self, time: Duration) {
        self.now.fetch_add(time.as_secs(), Ordering::Relaxed);
    }

    pub(crate) fn code(&mut self) -> String {
        self.codes.pop().unwrap()
    }

    /// Admits hosts and groups them.
    pub(crate) async fn bring_in(&self, names: &[&str]) {
        let hosts = names.iter().map(|name| Host::parse(name).unwrap());
        let (hosts, now) = (hosts.collect(), self.services.now());
        self.store.writer().add_now(hosts, now).await.unwrap();
        let mut after = Some(0);
        while let Some(last) = after {
            let names = self.services.gate.names();
            after = self.store.writer().group_new(names, last).await.unwrap();
        }
    }

    /// The daemon's answer to a request at the console's socket.
    pub(crate) async fn ask(&self, request: &Request) -> Answer {
        Census::new(self.census.clone()).ask(request).await.unwrap()
    }

    /// The daemon's raw answer to a line.
    pub(crate) async fn say(&self, line: &[u8]) -> String {
        let mut stream = UnixStream::connect(&self.census).await.unwrap();
        stream.write_all(line).await.ok();
        stream.write_all(b"\n").await.ok();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await.ok();
        answer
    }

    pub(crate) async fn get(&self, browser: &mut Browser, path: &str) -> Reply {
        self.send(browser, "GET", path, "").await
    }

    pub(crate) async fn post(&self, browser: &mut Browser, path: &str, body: &str) -> Reply {
        self.send(browser, "POST", path, body).await
    }

    async fn send(&self, browser: &mut Browser, method: &str, path: &str, body: &str) -> Reply {
        let Browser { agent, address, .. } = *browser;
        let cookies = browser.cookies.iter();
        let cookies: Vec<_> = cookies
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookies = cookies.join("; ");
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: console\r\nx-real-ip: {address}\r\nuser-agent: {agent}\r\ncookie: {cookies}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let mut stream = UnixStream::connect(&self.http).await.unwrap();
        stream.write_all(request.as_bytes()).await.ok();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let reply = Reply {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.replace("\r\n", "\n"),
            body: body.to_owned(),
        };
        browser.keep(&reply);
        reply
    }

    pub(crate) async fn try_login(
        &self,
        browser: &mut Browser,
        name: &str,
        password: &str,
        code: &str,
    ) -> Reply {
        let form = self.get(browser, "/login").await.form();
        let password = password.replace(' ', "+");
        let body = format!("form={form}&name={name}&password={password}&code={code}");
        self.post(browser, "/login", &body).await
    }

    /// Tries to log `ada` in with the right password.
    pub(crate) async fn log_in(&self, browser: &mut Browser, code: &str) -> Reply {
        self.try_login(browser, "ada", PASSWORD, code).await
    }

    /// A login that fails, of a browser that was never seen.
    pub(crate) async fn fail(&self, address: &'static str, name: &str) -> Reply {
        let mut browser = Browser::at(address);
        self.try_login(&mut browser, name, "wrong horse!", "0")
            .await
    }

    pub(crate) async fn logged_in(&mut self) -> Browser {
        let (mut browser, code) = (Browser::default(), self.code());
        let reply = self.log_in(&mut browser, &code).await;
        assert_eq!(reply.status, 303, "{reply:?}");
        browser
    }
}

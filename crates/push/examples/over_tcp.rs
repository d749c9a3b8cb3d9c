//! The push service over TCP, for tests of its compatibility: deployments have a web server in
//! front and Unix sockets.
//!
//! `over_tcp DATABASE ORIGIN KEYS PUBLIC INTERNAL [OPTION…]`: origin and keys of the endpoints,
//! `HOST:PORT` for clients and applications, `HOST:PORT` for other nodes. Options:
//! `ping=SECONDS`, `pong=SECONDS`, `limit=MESSAGES`, `auth=KEY`, `acks=batch`, `direct=drained`,
//! `direct=unstorable`, `broadcasts=URL`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use axum::Router;
use push::endpoint::fernet::Keys;
use push::serve::{Bounds, Now, Service, Settings, converse, internal, public};
use push::session::{Acks, Direct, Rules};
use push::storage::sqlite::{Limits, Sqlite};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What deployments have.
const MEMORY_BYTES: u64 = 768 * 1024 * 1024;

/// Interval between two reads of the broadcasts.
const BROADCASTS_EVERY: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [database, origin, keys, public_at, internal_at, options @ ..] = &arguments[..] else {
        bail!("over_tcp DATABASE ORIGIN KEYS PUBLIC INTERNAL [OPTION…]");
    };
    let mut rules = Rules::ORDINARY;
    let mut registration_keys = Vec::new();
    let mut broadcasts = None;
    for option in options {
        let (name, value) = option
            .split_once('=')
            .context("an option without a value")?;
        match (name, value) {
            ("ping", seconds) => rules.ping_every = Duration::from_secs_f64(seconds.parse()?),
            ("pong", seconds) => rules.pong_within = Duration::from_secs_f64(seconds.parse()?),
            ("limit", messages) => rules.stored_messages_max = messages.parse()?,
            ("auth", key) => registration_keys.push(key.to_owned()),
            ("acks", "batch") => rules.acks = Acks::Batch,
            ("direct", "drained") => rules.direct = Direct::WhenDrained,
            ("direct", "unstorable") => rules.direct = Direct::OnlyUnstorable,
            ("broadcasts", url) => broadcasts = Some(url.to_owned()),
            _ => bail!("no option {option}"),
        }
    }
    let storage = Sqlite::open(Path::new(database), Limits::ORDINARY)?;
    let settings = Settings {
        origin: origin.clone(),
        node: format!("http://{internal_at}"),
        keys: Keys::parse(keys)?,
        registration_keys,
        rules,
        bounds: Bounds::within(MEMORY_BYTES),
    };
    let service = Arc::new(Service::new(settings, Arc::new(storage), None, now())?);
    if let Some(url) = broadcasts {
        tokio::spawn(poll(Arc::clone(&service), url));
    }
    tokio::try_join!(
        listen(public_at, public(Arc::clone(&service))),
        listen(internal_at, internal(Arc::clone(&service))),
    )?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "this is the program's clock")]
fn now() -> Now {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
    })
}

async fn listen(at: &str, router: Router) -> anyhow::Result<()> {
    let listener = TcpListener::bind(at).await.with_context(|| at.to_owned())?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(converse(stream, router.clone()));
    }
}

/// Reads broadcasts from a URL, as autopush does.
async fn poll(service: Arc<Service>, url: String) {
    loop {
        // The tests' server may not be up yet.
        if let Ok(versions) = read(&url).await {
            service.broadcast(versions);
        }
        tokio::time::sleep(BROADCASTS_EVERY).await;
    }
}

async fn read(url: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let rest = url.strip_prefix("http://").context("not http://")?;
    let (authority, path) = rest.split_once('/').context("no path")?;
    let mut stream = TcpStream::connect(authority).await?;
    let path = path.trim_end_matches('/');
    let request = format!("GET /{path} HTTP/1.0\r\nhost: {authority}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    let mut value: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(body)?;
    Ok(value.remove("broadcasts").unwrap_or_default())
}

//! The push service with broadcasts from a URL, as autopush has them, for tests of its
//! compatibility: a deployment's only broadcast is the census's.
//!
//! `over_tcp DATABASE ORIGIN KEYS PORT PING_SECONDS [BROADCASTS_URL]`: origin and keys of the
//! endpoints, a port for clients and applications.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use push::endpoint::fernet::Keys;
use push::serve::{Bounds, Now, Service, Settings, converse, public};
use push::session::Rules;
use push::storage::sqlite::{Limits, Sqlite};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const MEMORY_BYTES: u64 = 768 * 1024 * 1024;

/// Interval between two reads of the broadcasts.
const BROADCASTS_EVERY: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [database, origin, keys, port, ping_s, broadcasts @ ..] = &arguments[..] else {
        bail!("over_tcp DATABASE ORIGIN KEYS PORT PING_SECONDS [BROADCASTS_URL]");
    };
    let database = Path::new(database);
    let storage = Sqlite::open(database, Limits::ORDINARY)?;
    let settings = Settings {
        origin: origin.clone(),
        nodes: database.with_file_name("nodes"),
        node: port.clone(),
        keys: Keys::parse(keys)?,
        registration_keys: vec!["key".to_owned()],
        rules: Rules {
            ping_every: Duration::from_secs_f64(ping_s.parse()?),
            ..Rules::ORDINARY
        },
        bounds: Bounds::within(MEMORY_BYTES),
    };
    let service = Arc::new(Service::new(settings, Arc::new(storage), None, now())?);
    if let [url] = broadcasts {
        tokio::spawn(poll(Arc::clone(&service), url.clone()));
    }
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(converse(stream, public(Arc::clone(&service))));
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the program's clock")]
fn now() -> Now {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
    })
}

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

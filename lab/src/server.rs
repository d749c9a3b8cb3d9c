//! The TLS port that serves all personas.
//!
//! It accepts connections from a gateway and sends whatever the persona in the ClientHello would
//! send. Connections, their lifetime, and the requests on each are limited. It closes connections
//! whose ClientHello has no name, or an unknown one.

mod distance;
mod http;
pub mod request_log;
mod tls;
mod wire;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::server::Acceptor;
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

pub use self::distance::ANSWER_MS_MAX;
use self::distance::Distance;
use self::http::Then;
use self::request_log::RequestLog;
use self::tls::{Authority, TlsError};
use self::wire::Wire;
use crate::crowd::Crowd;
use crate::farm::Farm;
use crate::personas::{Persona, chosen_personas};
use crate::play::{Handshake, Play, Request};
use crate::state_dir::{self, Table};

/// Connections at once. A census with 64 checks opens about this many.
const CONNECTIONS_MAX: usize = 1024;

/// Lifetime of a connection: longer than a check, so that the census and not the lab ends slow
/// ones.
const CONNECTION_SECONDS_MAX: u64 = 90;

/// Requests on one connection: more than a check may make.
const REQUESTS_MAX: usize = 64;

/// How long a stopped lab waits for its last connections.
const END_SECONDS_MAX: u64 = 2;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Address and port to listen on. Port 0 selects a free one.
    pub listen: SocketAddr,
    /// The address in the names file. `None` for the listening address or, failing that, the
    /// machine's first interface.
    pub address: Option<IpAddr>,
    /// Names of the personas to play, in addition to the seed and the personas that they lead to.
    /// Empty for all.
    pub personas: Vec<String>,
    pub crowd: Crowd,
    /// The farm of invented hosts, and the hoster, in addition to the personas.
    pub farm: Farm,
    /// The median round trip to its hosts. Zero: they answer at once.
    pub answer: Duration,
    /// The directory for files and the request log. `None` writes nothing.
    pub state: Option<PathBuf>,
    /// Additional lines for the names file. They come after all others and so take precedence.
    pub names_added: String,
    /// Additional certificates for the CA file, as PEM.
    pub ca_added: String,
}

impl Default for Settings {
    /// A free port on loopback, no crowd, no files.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            address: None,
            personas: Vec::new(),
            crowd: Crowd::default(),
            farm: Farm::default(),
            answer: Duration::ZERO,
            state: None,
            names_added: String::new(),
            ca_added: String::new(),
        }
    }
}

/// Why a lab can't start.
#[derive(Debug, Error)]
pub enum LabError {
    #[error("the lab cannot listen at {0}")]
    Listen(SocketAddr, #[source] io::Error),
    #[error("the lab found no address of its own: name one with --address")]
    NoAddress,
    #[error("the lab has no persona {0:?}: `fedicensus-lab expect` lists them")]
    NoPersona(String),
    /// The authority could not be created.
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the lab cannot write to its state directory {0}")]
    State(PathBuf, #[source] io::Error),
}

/// A running lab. Dropping it stops it.
#[derive(Debug)]
pub struct Lab {
    address: SocketAddr,
    ca_pem: String,
    names: String,
    table: Table,
    world: Arc<World>,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Stage {
    play: Play,
    /// Number of checks begun, counted by requests for robots.txt.
    checks: AtomicU64,
}

#[derive(Debug)]
struct World {
    stages: HashMap<String, Stage>,
    crowd: Crowd,
    farm: Farm,
    answer: Duration,
    authority: Authority,
    log: RequestLog,
    crowd_handshake: Mutex<Handshake>,
}

impl Lab {
    /// Starts a lab: binds, writes its files, and serves until it is stopped or dropped.
    ///
    /// # Errors
    /// Fails if it can't listen on the address, if the address is unknown, or if the files can't be
    /// written.
    pub async fn start(settings: Settings) -> Result<Self, LabError> {
        let listener = TcpListener::bind(settings.listen)
            .await
            .map_err(|source| LabError::Listen(settings.listen, source))?;
        let bound = listener
            .local_addr()
            .map_err(|source| LabError::Listen(settings.listen, source))?;
        let ip = settings
            .address
            .or_else(|| (!bound.ip().is_unspecified()).then(|| bound.ip()))
            .or_else(state_dir::own_address)
            .ok_or(LabError::NoAddress)?;
        let address = SocketAddr::new(ip, bound.port());
        let mut named = settings.crowd.entrances();
        named.extend(settings.farm.servers().chain(settings.farm.customers()));
        let personas = chosen_personas(&settings.personas, &named).map_err(LabError::NoPersona)?;
        let authority = Authority::new()?;
        let names = state_dir::names(&personas, settings.crowd, settings.farm, address)
            + &settings.names_added;
        let ca_pem = authority.pem() + &settings.ca_added;
        let (crowd, farm) = (settings.crowd, settings.farm);
        let table = Table::new(&personas, crowd, farm, &settings.names_added);
        let log_path = settings
            .state
            .as_ref()
            .map(|dir| dir.join("requests.ndjson"));
        let failed = |source| LabError::State(settings.state.clone().unwrap_or_default(), source);
        let log = RequestLog::new(log_path.as_deref()).map_err(failed)?;
        if let Some(dir) = &settings.state {
            state_dir::write(dir, &ca_pem, &table, &names).map_err(failed)?;
        }
        let world = Arc::new(World::new(personas, &settings, authority, log));
        let (end, ended) = oneshot::channel();
        Ok(Self {
            address,
            ca_pem,
            names,
            table,
            end: Some(end),
            task: tokio::spawn(serve(listener, Arc::clone(&world), ended)),
            world,
        })
    }

    /// The address and port in the names file.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The content of the gateway's names file.
    pub fn names(&self) -> &str {
        &self.names
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Changes the handshake of the whole crowd. To a census this looks like its own failure.
    pub fn play_crowd(&self, handshake: Handshake) {
        *self.world.crowd_handshake() = handshake;
    }

    /// Ends the lab and waits until its port is free.
    pub async fn stop(mut self) {
        self.end.take();
        // A task that panicked has ended too.
        (&mut self.task).await.ok();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl World {
    fn new(
        personas: Vec<Persona>,
        settings: &Settings,
        authority: Authority,
        log: RequestLog,
    ) -> Self {
        let stages = personas
            .into_iter()
            .map(|persona| {
                let stage = Stage {
                    play: persona.play,
                    checks: AtomicU64::new(0),
                };
                (persona.host.to_string(), stage)
            })
            .collect();
        Self {
            stages,
            crowd: settings.crowd,
            farm: settings.farm,
            answer: settings.answer,
            authority,
            log,
            crowd_handshake: Mutex::default(),
        }
    }

    fn crowd_handshake(&self) -> MutexGuard<'_, Handshake> {
        self.crowd_handshake
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn handshake(&self, name: &str) -> Option<Handshake> {
        match self.stages.get(name) {
            Some(stage) => {
                let checks = stage.checks.load(Ordering::Relaxed);
                Some(stage.play.during(checks + 1).handshake)
            }
            None if self.farm.play(name).is_some() => Some(Handshake::Sound),
            None => self.crowd.play(name).map(|_| *self.crowd_handshake()),
        }
    }

    fn answer(&self, request: &Request) -> crate::play::Answer {
        match self.stages.get(&request.host) {
            Some(stage) => {
                if request.path == "/robots.txt" {
                    stage.checks.fetch_add(1, Ordering::Relaxed);
                }
                let checks = stage.checks.load(Ordering::Relaxed);
                stage.play.during(checks.max(1)).answer(request)
            }
            None => {
                let of_crowd = self.crowd.play(&request.host);
                let play = of_crowd.or_else(|| self.farm.play(&request.host));
                play.map_or(crate::play::Answer::status(404), |play| {
                    play.answer(request)
                })
            }
        }
    }
}

async fn serve(listener: TcpListener, world: Arc<World>, mut ended: oneshot::Receiver<()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut ended => break,
        };
        while connections.try_join_next().is_some() {}
        let Ok((tcp, _)) = accepted else {
            // Most likely out of descriptors: existing connections have to end first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let world = Arc::clone(&world);
        connections.spawn(async move {
            let life = Duration::from_secs(CONNECTION_SECONDS_MAX);
            let outcome = timeout(life, connection(tcp, &world)).await;
            if let Ok(Err(error)) = outcome {
                tracing::debug!(%error, "a connection broke");
            }
            drop(place);
        });
    }
    drop(listener);
    let wait = async { while connections.join_next().await.is_some() {} };
    // Some connections are slow on purpose; dropping the set ends them.
    timeout(Duration::from_secs(END_SECONDS_MAX), wait)
        .await
        .ok();
}

async fn connection(tcp: TcpStream, world: &World) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let mut start = LazyConfigAcceptor::new(Acceptor::default(), Wire::new(tcp)).await?;
    let Some(name) = start
        .client_hello()
        .server_name()
        .map(str::to_ascii_lowercase)
    else {
        return Ok(());
    };
    // Before anything else, since a reset or an end comes from as far away as an answer.
    let mut distance = Distance::new(world.answer, &name);
    distance.shake_hands().await;
    let Some(handshake) = world.handshake(&name) else {
        tracing::info!(host = %protocol::escaped(name.as_bytes(), 200), "a ClientHello for a name without a persona");
        return Ok(());
    };
    world.log.add(&name, "", "", "");
    match handshake {
        Handshake::PlainHttp => {
            let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\n\r\n<html>The plain HTTP request was sent to the HTTP port</html>";
            start.io.write_all(answer).await?;
            return start.io.shutdown().await;
        }
        Handshake::Silent => return std::future::pending().await,
        Handshake::Reset => return start.io.reset_at_end(),
        Handshake::Slow(pace) => start.io.slow_down(pace),
        Handshake::Sound
        | Handshake::Expired
        | Handshake::NotYetValid
        | Handshake::SelfSigned
        | Handshake::IncompleteChain
        | Handshake::Intercepted
        | Handshake::WrongName => {}
    }
    talk(start, &name, handshake, distance, world).await
}

async fn talk(
    start: StartHandshake<Wire>,
    name: &str,
    handshake: Handshake,
    mut distance: Distance,
    world: &World,
) -> io::Result<()> {
    let config = world
        .authority
        .config(name, handshake)
        .map_err(io::Error::other)?;
    let mut stream = start.into_stream(config).await?;
    let mut buffer = Vec::new();
    for _ in 0..REQUESTS_MAX {
        let request = http::read_request(&mut stream, &mut buffer, name)
            .await
            .map_err(io::Error::other)?;
        let Some(request) = request else {
            return Ok(());
        };
        world
            .log
            .add(name, &request.method, &request.path, &request.agent);
        let answer = world.answer(&request);
        distance.answer().await;
        let close = request.close || asks_to_close(&answer);
        match http::send(&mut stream, answer, close).await? {
            Then::Keep => {}
            Then::Close => break,
            Then::Reset => return stream.get_ref().0.reset_at_end(),
        }
    }
    stream.shutdown().await
}

fn asks_to_close(answer: &crate::play::Answer) -> bool {
    match answer {
        crate::play::Answer::Reply(reply) => reply
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("connection")),
        crate::play::Answer::Chunked(..)
        | crate::play::Answer::Script(_)
        | crate::play::Answer::Make(_) => false,
    }
}

#[cfg(test)]
mod tests;

//! A gateway on loopback, with hosts that it may reach.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gateway::family::{Routes, SystemRoutes};
use gateway::serve_over;
use gateway::{ClientError, Egress, GatewayClient, GatewayError, Opened, Settings};
use protocol::egress::Wish;
use protocol::order::AskPeers;
use protocol::{CheckId, CheckOrder, Host};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::task::JoinHandle;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::sync::CancellationToken;

/// A gateway in lab mode. Its file contains the names; nothing is paced unless a test wants it.
pub(crate) struct Rig {
    pub(crate) client: GatewayClient,
    pub(crate) control: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) names: PathBuf,
    pub(crate) shutdown: CancellationToken,
    pub(crate) served: JoinHandle<Result<(), GatewayError>>,
    _directory: tempfile::TempDir,
}

impl Rig {
    pub(crate) async fn start(names: &str, change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_over(names, Box::new(SystemRoutes), change).await
    }

    pub(crate) async fn start_over(
        names: &str,
        routes: Box<dyn Routes>,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let control = directory.path().join("gateway.sock");
        let root = directory.path().join("egress");
        let names_file = directory.path().join("names");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(&names_file, names).unwrap();
        let mut settings = Settings {
            control_socket: control.clone(),
            egress_root: root.clone(),
            names_file: Some(names_file.clone()),
            allow_private: true,
            pace_divisor: u32::MAX,
            dns_timeout: Duration::from_millis(50),
            ..Settings::default()
        };
        change(&mut settings);
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(serve_over(settings, routes, shutdown.clone()));
        let client = GatewayClient::new(control.clone());
        eventually(|| {
            let client = client.clone();
            async move { client.status().await.is_ok() }
        })
        .await;
        Self {
            client,
            control,
            root,
            names: names_file,
            shutdown,
            served,
            _directory: directory,
        }
    }

    pub(crate) async fn open(&self, id: u128, name: &str) -> Result<Opened, ClientError> {
        self.open_in_group(id, name, name).await
    }

    pub(crate) async fn open_in_group(
        &self,
        id: u128,
        name: &str,
        group: &str,
    ) -> Result<Opened, ClientError> {
        self.open_wishing(id, name, group, Wish::default()).await
    }

    pub(crate) async fn open_wishing(
        &self,
        id: u128,
        name: &str,
        group: &str,
        wish: Wish,
    ) -> Result<Opened, ClientError> {
        let host = Host::parse(name).unwrap();
        let check = CheckId::from_random(id);
        self.client
            .open(check, host, group.to_owned(), order(), wish)
            .await
    }

    pub(crate) async fn ready(&self, id: u128, name: &str) -> Egress {
        match self.open(id, name).await {
            Ok(Opened::Ready(egress)) => egress,
            other => panic!("{name}: {other:?}"),
        }
    }

    pub(crate) fn directory(&self, id: u128) -> PathBuf {
        self.root.join(CheckId::from_random(id).as_str())
    }

    /// Connects to a check's socket, as a checker does.
    pub(crate) async fn checker(&self, id: u128) -> UnixStream {
        UnixStream::connect(self.directory(id).join("https.sock"))
            .await
            .unwrap()
    }
}

pub(crate) fn order() -> CheckOrder {
    CheckOrder::check("https://census.example/", AskPeers::Ask)
}

/// Longest wait on a busy machine. It only ends a failed test.
const PATIENCE: Duration = Duration::from_mins(10);

/// Waits until `happened`, at most [`PATIENCE`].
pub(crate) async fn eventually<F, T>(mut happened: F)
where
    F: FnMut() -> T,
    T: Future<Output = bool>,
{
    let wait = async {
        while !happened().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .expect("it never happened");
}

/// A TLS host: it answers `big` with a MiB, and echoes everything else.
pub(crate) struct FakeHost {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) handshakes: Arc<AtomicUsize>,
    certificate: CertificateDer<'static>,
    _task: JoinHandle<()>,
}

pub(crate) const BIG_BYTES: usize = 1024 * 1024;

impl FakeHost {
    pub(crate) async fn start(listen: &str) -> Self {
        let listener = TcpListener::bind(listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        let made =
            rcgen::generate_simple_self_signed(["a.lab.test".to_owned(), "b.lab.test".to_owned()])
                .unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let connections = Arc::new(AtomicUsize::new(0));
        let handshakes = Arc::new(AtomicUsize::new(0));
        let (seen, shaken) = (Arc::clone(&connections), Arc::clone(&handshakes));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                seen.fetch_add(1, Ordering::SeqCst);
                let (acceptor, shaken) = (acceptor.clone(), Arc::clone(&shaken));
                tokio::spawn(async move {
                    let Ok(mut tls) = acceptor.accept(stream).await else {
                        return;
                    };
                    shaken.fetch_add(1, Ordering::SeqCst);
                    let mut buffer = [0; 64];
                    while let Ok(read @ 1..) = tls.read(&mut buffer).await {
                        let said = &buffer[..read];
                        let big = vec![b'x'; BIG_BYTES];
                        let answer = if said == b"big" { &big } else { said };
                        if tls.write_all(answer).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self {
            address,
            connections,
            handshakes,
            certificate,
            _task: task,
        }
    }

    pub(crate) fn line(&self, name: &str) -> String {
        format!("{name} {} {}\n", self.address.ip(), self.address.port())
    }

    pub(crate) fn seen(&self) -> (usize, usize) {
        (
            self.connections.load(Ordering::SeqCst),
            self.handshakes.load(Ordering::SeqCst),
        )
    }

    /// TLS over a check's socket, as a checker does it.
    pub(crate) async fn tls(
        &self,
        stream: UnixStream,
        sni: &str,
    ) -> std::io::Result<TlsStream<UnixStream>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let config = rustls::ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(sni.to_owned()).unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }

    /// Sends `text` over a new connection of check `id` and reads the same text back.
    pub(crate) async fn echo(&self, rig: &Rig, id: u128, sni: &str, text: &str) {
        let mut tls = self.tls(rig.checker(id).await, sni).await.unwrap();
        tls.write_all(text.as_bytes()).await.unwrap();
        let mut back = vec![0; text.len()];
        tls.read_exact(&mut back).await.unwrap();
        assert_eq!(back, text.as_bytes());
        tls.shutdown().await.unwrap();
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

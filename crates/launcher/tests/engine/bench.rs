//! The engine, the image and the folders of a test.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    BuildImageOptionsBuilder, CreateContainerOptions, ListImagesOptionsBuilder,
    RemoveImageOptionsBuilder, RemoveVolumeOptions, StartContainerOptions,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use futures_util::StreamExt as _;
use launcher::engine::EngineKind;
use launcher::spec::{Confinement, SeccompProfile};
use launcher::{
    BollardEngine, Container, EgressSource, Engine as _, Frame, Launcher, LauncherClient, Settings,
};
use protocol::container::{End, FaultKind, LaunchFault};
use protocol::{CheckId, Host};
use tokio_util::sync::CancellationToken;

/// This run's own names: another run on the same engine must not remove its containers and image.
pub(crate) static IMAGE: LazyLock<String> =
    LazyLock::new(|| format!("localhost/fedicensus-test-victim:{}", std::process::id()));

/// An image whose program every user may read, as is common.
pub(crate) static READABLE_IMAGE: LazyLock<String> =
    LazyLock::new(|| format!("localhost/fedicensus-test-readable:{}", std::process::id()));

/// A name that moves from one image to another.
pub(crate) static MOVING_IMAGE: LazyLock<String> =
    LazyLock::new(|| format!("{MOVING_REPOSITORY}:{}", std::process::id()));

pub(crate) const MOVING_REPOSITORY: &str = "localhost/fedicensus-test-moving";

pub(crate) static VOLUME: LazyLock<String> =
    LazyLock::new(|| format!("fedicensus-test-egress-{}", std::process::id()));

pub(crate) fn installation(name: &str) -> String {
    format!("test-{}-{name}", std::process::id())
}

/// The label of everything that belongs to this installation.
pub(crate) fn of_installation(name: &str) -> String {
    format!("org.fedicensus={}", installation(name))
}

pub(crate) struct Bench {
    pub(crate) docker: Docker,
    engine: BollardEngine,
    pub(crate) kind: EngineKind,
    pub(crate) socket: PathBuf,
    pub(crate) folder: tempfile::TempDir,
    /// How long the engine takes for a container that ends at once: the measure of its speed.
    pub(crate) hello: Duration,
}

/// Longest wait for what an idle machine does within seconds. It only ends a failed test, and
/// promises no speed.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// A limit, multiplied by the whole number in `FEDICENSUS_TEST_PATIENCE`, for example on an
/// emulated machine. Only for waits that end a failed test, not for anything that is promised.
pub(crate) fn patient(limit: Duration) -> Duration {
    let factor = std::env::var_os("FEDICENSUS_TEST_PATIENCE")
        .and_then(|text| text.to_str()?.parse().ok())
        .unwrap_or(1);
    limit.saturating_mul(factor)
}

pub(crate) struct Running {
    pub(crate) client: LauncherClient,
    pub(crate) egress: PathBuf,
    shutdown: CancellationToken,
    keeping: tokio::task::JoinHandle<Result<(), LaunchFault>>,
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) end: Option<End>,
    pub(crate) fault: Option<LaunchFault>,
}

impl Bench {
    pub(crate) async fn new(socket: PathBuf) -> Self {
        let path = socket.to_str().unwrap();
        let docker = Docker::connect_with_unix(path, 60, API_DEFAULT_VERSION)
            .unwrap()
            .negotiate_version()
            .await
            .unwrap();
        let engine = BollardEngine::new(&socket);
        let kind = engine.identify().await.unwrap().kind;
        let mut bench = Self {
            docker,
            engine,
            kind,
            socket,
            folder: tempfile::tempdir().unwrap(),
            hello: Duration::ZERO,
        };
        bench.make_image().await;
        let running = bench.launcher("hello", |_| {});
        // The first launch waits for the probe.
        assert_eq!(running.report("hello").await.ended().exit_code, 0);
        let start = Instant::now();
        assert_eq!(running.report("hello").await.ended().exit_code, 0);
        bench.hello = start.elapsed();
        println!(
            "{kind}: a container that ends at once takes {:?}",
            bench.hello
        );
        running.shut_down().await;
        bench
    }

    /// The program may be executed and not read, like the checker's. `FEDICENSUS_TEST_VICTIM` names
    /// it if there is no compiler.
    async fn make_image(&self) {
        let binary = self.folder.path().join("victim");
        if let Some(built) = std::env::var_os("FEDICENSUS_TEST_VICTIM") {
            std::fs::copy(built, &binary).unwrap();
            return self.import(&IMAGE, "0111").await;
        }
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/victim.rs");
        let compiled = Command::new("rustc")
            .args([
                "--edition=2024",
                "-O",
                "-Cpanic=abort",
                "-Ctarget-feature=+crt-static",
                "-o",
            ])
            .arg(&binary)
            .arg(source)
            .status()
            .unwrap();
        assert!(compiled.success());
        self.import(&IMAGE, "0111").await;
    }

    /// Builds an image of the compiled program with this mode. It is built and not imported,
    /// because the engines handle an import's changes differently.
    pub(crate) async fn import(&self, image: &str, mode: &str) {
        let containerfile = format!(
            "FROM scratch\nADD victim.tar /\nENTRYPOINT [\"/victim\"]\nLABEL {}\n",
            of_installation("image")
        );
        std::fs::write(self.folder.path().join("Containerfile"), containerfile).unwrap();
        let program = self.archive(mode, &["victim"]);
        std::fs::write(self.folder.path().join("victim.tar"), program).unwrap();
        let context = self.archive("0644", &["Containerfile", "victim.tar"]);
        let options = BuildImageOptionsBuilder::default()
            .dockerfile("Containerfile")
            .t(image)
            .rm(true)
            .build();
        let body = bollard::body_full(context.into());
        let mut made = Box::pin(self.docker.build_image(options, None, Some(body)));
        while let Some(progress) = made.next().await {
            let progress = progress.unwrap();
            assert!(progress.error_detail.is_none(), "{progress:?}");
        }
    }

    fn archive(&self, mode: &str, files: &[&str]) -> Vec<u8> {
        let tar = Command::new("tar")
            .args(["--create", "--owner=0", "--group=0"])
            .arg(format!("--mode={mode}"))
            .arg("--directory")
            .arg(self.folder.path())
            .args(files)
            .output()
            .unwrap();
        assert!(tar.status.success());
        tar.stdout
    }

    /// A profile in both forms: Docker gets the JSON, Podman gets a file name.
    pub(crate) fn profile(&self, name: &str, json: &str) -> SeccompProfile {
        let path = self.folder.path().join(format!("{name}.json"));
        std::fs::write(&path, json).unwrap();
        SeccompProfile {
            json: json.to_owned(),
            path_on_engine: Some(path.display().to_string()),
        }
    }

    /// Settings with an installation's name, and its own folder for egress directories and
    /// deadline.
    pub(crate) fn settings(&self, name: &str) -> Settings {
        let egress = self.folder.path().join(name);
        std::fs::create_dir_all(&egress).unwrap();
        Settings {
            image: IMAGE.clone(),
            egress: EgressSource::Directory(egress),
            instance: installation(name),
            deadline: Duration::from_secs(30),
            grace: Duration::ZERO,
            confinement: Confinement {
                seccomp: Some(self.profile(name, &SeccompProfile::ours(None).json)),
                ..Confinement::default()
            },
            ..Settings::default()
        }
    }

    pub(crate) fn launcher(&self, name: &str, change: impl FnOnce(&mut Settings)) -> Running {
        let mut settings = self.settings(name);
        change(&mut settings);
        self.launcher_at(&self.socket, settings, self.folder.path().join(name))
    }

    pub(crate) fn launcher_at(
        &self,
        socket: &std::path::Path,
        settings: Settings,
        egress: PathBuf,
    ) -> Running {
        let launcher = Launcher::new(settings, BollardEngine::new(socket));
        let door = egress.with_extension("launcher");
        // An earlier launcher of this name has left its socket.
        std::fs::remove_file(&door).ok();
        let listener = tokio::net::UnixListener::bind(&door).unwrap();
        let client = LauncherClient::socket(door);
        let shutdown = CancellationToken::new();
        tokio::spawn({
            let (launcher, shutdown) = (launcher.clone(), shutdown.clone());
            let serve = async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let launcher = launcher.clone();
                    tokio::spawn(async move { launcher.serve_connection(stream).await });
                }
            };
            async move { shutdown.run_until_cancelled(serve).await }
        });
        let keeping = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { launcher.keep(shutdown).await }
        });
        Running {
            client,
            egress,
            shutdown,
            keeping,
        }
    }

    /// The containers that carry all these labels, running or not.
    pub(crate) async fn containers(&self, labels: &[&str]) -> Vec<String> {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let listed = self.engine.list(&labels).await.unwrap();
        listed.into_iter().map(|found| found.id.0).collect()
    }

    pub(crate) async fn until_gone(&self, labels: &[&str]) {
        let start = Instant::now();
        while !self.containers(labels).await.is_empty() {
            assert!(start.elapsed() < patient(PATIENCE), "{labels:?} stay");
            tokio::time::sleep(patient(Duration::from_millis(50))).await;
        }
    }

    /// Waits until no check is left of an installation whose launcher runs.
    pub(crate) async fn until_no_check(&self, name: &str) {
        self.until_gone(&[&of_installation(name), "org.fedicensus.host"])
            .await;
    }

    /// Creates a container that an earlier launcher might have left behind.
    pub(crate) async fn leave_behind(&self, labels: &[(&str, &str)]) {
        let body = ContainerCreateBody {
            image: Some(IMAGE.clone()),
            cmd: Some(vec!["--".to_owned(), "stay.example".to_owned()]),
            labels: Some(
                labels
                    .iter()
                    .map(|(k, v)| ((*k).into(), (*v).into()))
                    .collect(),
            ),
            network_disabled: Some(true),
            ..ContainerCreateBody::default()
        };
        let options = None::<CreateContainerOptions>;
        let made = self.docker.create_container(options, body).await.unwrap();
        let options = None::<StartContainerOptions>;
        self.docker
            .start_container(&made.id, options)
            .await
            .unwrap();
    }

    pub(crate) async fn clean_up(&self) {
        let ours = installation("");
        let labels = ["org.fedicensus".to_owned()];
        for found in self.engine.list(&labels).await.unwrap() {
            if found.labels["org.fedicensus"].starts_with(&ours) {
                self.engine.remove(&found.id).await.ok();
            }
        }
        let options = None::<RemoveVolumeOptions>;
        self.docker.remove_volume(&VOLUME, options).await.ok();
        // Whatever names they have now, or none: some were the launcher's own.
        let by_label = HashMap::from([("label", vec![of_installation("image")])]);
        let options = ListImagesOptionsBuilder::default()
            .filters(&by_label)
            .build();
        for image in self.docker.list_images(Some(options)).await.unwrap() {
            let force = RemoveImageOptionsBuilder::default().force(true).build();
            let removed = self.docker.remove_image(&image.id, Some(force), None).await;
            assert!(removed.is_ok(), "{removed:?}");
        }
    }
}

impl Running {
    /// Launches a container with this behaviour and its own egress directory.
    pub(crate) async fn launch(&self, behaviour: &str) -> (CheckId, Container) {
        let check = check();
        std::fs::create_dir(self.egress.join(check.as_str())).unwrap();
        (check.clone(), self.launch_as(&check, behaviour).await)
    }

    pub(crate) async fn launch_as(&self, check: &CheckId, behaviour: &str) -> Container {
        self.until_known().await;
        let host = Host::parse(&format!("{behaviour}.victim.example")).unwrap();
        self.client.launch(check, &host).await.unwrap()
    }

    /// Waits until the launcher knows whether the engine is fit. On a slow engine, the first probe
    /// takes longer than a check's wait for it.
    async fn until_known(&self) {
        let start = Instant::now();
        while start.elapsed() < patient(PATIENCE) {
            let trouble = self.client.status().await.unwrap().trouble;
            if !trouble.is_some_and(|trouble| trouble.contains("has not been probed yet")) {
                break;
            }
            tokio::time::sleep(patient(Duration::from_millis(50))).await;
        }
    }

    pub(crate) async fn report(&self, behaviour: &str) -> Report {
        read(self.launch(behaviour).await.1).await
    }

    pub(crate) async fn shut_down(self) {
        self.shutdown.cancel();
        self.keeping.await.unwrap().unwrap();
    }
}

impl Report {
    pub(crate) fn ended(&self) -> End {
        self.end.unwrap_or_else(|| panic!("{self:?}"))
    }

    pub(crate) fn fault(&self) -> FaultKind {
        self.fault
            .as_ref()
            .unwrap_or_else(|| panic!("{self:?}"))
            .kind
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }
}

pub(crate) async fn read(mut container: Container) -> Report {
    let mut report = Report::default();
    loop {
        match container.next().await.unwrap() {
            Frame::Stdout(bytes) => report.stdout.extend_from_slice(&bytes),
            Frame::Stderr(bytes) => report.stderr.extend_from_slice(&bytes),
            Frame::End(end) => {
                report.end = Some(end);
                return report;
            }
            Frame::Fault(fault) => {
                report.fault = Some(fault);
                return report;
            }
        }
    }
}

pub(crate) fn check() -> CheckId {
    CheckId::from_random(rand::random())
}

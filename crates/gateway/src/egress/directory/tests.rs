use std::net::Ipv4Addr;

use protocol::order::AskPeers;
use protocol::{CheckOrder, Host};
use tokio::net::TcpListener;

use super::*;
use crate::net::family::SystemRoutes;
use crate::service::open::{Opened, Wanted, open};
use crate::settings::Settings;
use crate::state::Shared;
use crate::wire::control::{Answer, Wish};

/// ENOSPC, EIO, EACCES, EROFS, EDQUOT, EMFILE: errors that Linux may return for any of the calls.
const TROUBLES: [i32; 6] = [28, 5, 13, 30, 122, 24];

#[derive(Debug, Clone, Copy)]
enum Fails {
    Never,
    Once(u32, i32),
    FromThenOn(u32, i32),
}

#[derive(Debug)]
struct Plan {
    calls: u32,
    fails: Fails,
}

/// The real file system, up to the call that fails. That one does half of its work.
#[derive(Debug, Clone)]
struct FailingDisk(Arc<Mutex<Plan>>);

impl FailingDisk {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Plan {
            calls: 0,
            fails: Fails::Never,
        })))
    }

    fn set(&self, fails: Fails) {
        *self.0.lock().unwrap() = Plan { calls: 0, fails };
    }

    fn calls(&self) -> u32 {
        self.0.lock().unwrap().calls
    }

    fn call<T>(
        &self,
        half: impl FnOnce() -> io::Result<()>,
        whole: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut plan = self.0.lock().unwrap();
        plan.calls += 1;
        let number = match plan.fails {
            Fails::Once(at, number) if plan.calls == at => number,
            Fails::FromThenOn(at, number) if plan.calls >= at => number,
            Fails::Never | Fails::Once(..) | Fails::FromThenOn(..) => return whole(),
        };
        half()?;
        Err(io::Error::from_raw_os_error(number))
    }
}

impl Disk for FailingDisk {
    fn make_directory(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.call(|| Ok(()), || SystemDisk.make_directory(path, mode))
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.call(
            || SystemDisk.write(path, &content[..content.len() / 2]),
            || SystemDisk.write(path, content),
        )
    }

    fn listen(&self, path: &Path) -> io::Result<UnixListener> {
        self.call(
            || SystemDisk.listen(path).map(drop),
            || SystemDisk.listen(path),
        )
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.call(|| Ok(()), || SystemDisk.set_mode(path, mode))
    }

    fn remove_all(&self, path: &Path) -> io::Result<()> {
        self.call(
            || std::fs::remove_file(path.join("order.json")).or(Ok(())),
            || SystemDisk.remove_all(path),
        )
    }
}

/// A gateway's state on a failing file system, and a host that it can dial.
struct Bench {
    shared: Arc<Shared>,
    disk: FailingDisk,
    root: PathBuf,
    next: u128,
    _directory: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("egress");
        std::fs::create_dir(&root).unwrap();
        let host = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = host.local_addr().unwrap().port();
        // Without accepts, the queue would be full after about a hundred connections.
        tokio::spawn(async move { while host.accept().await.is_ok() {} });
        let (names, ca) = (directory.path().join("names"), directory.path().join("ca"));
        std::fs::write(&names, format!("a.lab.test 127.0.0.1 {port}\n")).unwrap();
        std::fs::write(&ca, "a certificate").unwrap();
        let settings = Settings {
            egress_root: root.clone(),
            names_file: Some(names),
            extra_ca: Some(ca),
            allow_private: true,
            pace_divisor: u32::MAX,
            ..Settings::default()
        };
        let disk = FailingDisk::new();
        let mut shared = Shared::prepare(settings, Box::new(SystemRoutes)).unwrap();
        shared.egresses = Root::over(&root, Box::new(disk.clone()));
        Self {
            shared: Arc::new(shared),
            disk,
            root,
            next: 0,
            _directory: directory,
        }
    }

    async fn open(&mut self) -> Opened {
        self.next += 1;
        let wanted = Wanted {
            check: CheckId::from_random(self.next),
            host: Host::parse("a.lab.test").unwrap(),
            group: "lab.test".to_owned(),
            order: CheckOrder::check("https://census.example/", AskPeers::Ask),
            wish: Wish::default(),
        };
        open(&self.shared, &wanted).await
    }

    /// Opens and closes an egress on a sound file system.
    async fn is_sound(&mut self, when: &str) {
        self.disk.set(Fails::Never);
        match self.open().await {
            Opened::Ready(egress, _) => {
                assert_eq!(
                    self.files(),
                    ["ca.pem", "https.sock", "order.json"],
                    "{when}"
                );
                drop(egress);
            }
            Opened::Not(answer) => panic!("{when}: {answer:?}"),
        }
        assert_eq!(self.directories(), 0, "{when}");
    }

    fn directories(&self) -> usize {
        std::fs::read_dir(&self.root).unwrap().count()
    }

    fn files(&self) -> Vec<String> {
        let path = self.root.join(CheckId::from_random(self.next).as_str());
        let mut names: Vec<_> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Whether it was opened. An answer that blames the host would be wrong (invariant I5).
fn is_open_or_our_own_fault(opened: &Opened, bench: &Bench, when: &str) -> bool {
    match opened {
        Opened::Ready(..) => true,
        Opened::Not(Answer::Refused { message }) => {
            let root = bench.root.display().to_string();
            assert!(message.contains(&root), "{when}: {message}");
            assert!(
                message.contains("check its free space"),
                "{when}: {message}"
            );
            false
        }
        Opened::Not(answer) => panic!("{when}: {answer:?}"),
    }
}

#[tokio::test] // S63
async fn failing_disk_is_a_fault_and_leaves_nothing_behind() {
    let mut bench = Bench::new().await;
    bench.is_sound("before").await;
    let calls = bench.disk.calls();
    assert!(calls >= 9, "{calls}");
    let mut refused = 0;
    for number in TROUBLES {
        for at in 1..=calls {
            let when = format!("error {number} at call {at} of {calls}");
            bench.disk.set(Fails::Once(at, number));
            let opened = bench.open().await;
            let is_open = is_open_or_our_own_fault(&opened, &bench, &when);
            refused += u32::from(!is_open);
            drop(opened);
            // The last call is the removal itself; the next opening repeats it.
            assert_eq!(bench.directories(), usize::from(at == calls), "{when}");
            bench.is_sound(&when).await;
        }
    }
    assert_eq!(refused, (calls - 1) * 6);
}

#[tokio::test]
async fn a_disk_that_fails_for_long_is_tidied_when_it_is_sound_again() {
    let mut bench = Bench::new().await;
    bench.is_sound("before").await;
    let calls = bench.disk.calls();
    for number in TROUBLES {
        for at in 1..=calls {
            let when = format!("error {number} from call {at} on");
            bench.disk.set(Fails::FromThenOn(at, number));
            for _ in 0..3 {
                let opened = bench.open().await;
                is_open_or_our_own_fault(&opened, &bench, &when);
            }
            bench.is_sound(&when).await;
        }
    }
}

/// Every check has the root mounted: a check that could list it would find the others' sockets
/// (invariant I1).
#[test]
fn the_root_can_be_listed_by_its_owner_alone_whoever_made_it() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::new(directory.path());
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    root.sweep().unwrap();
    let mode = std::fs::metadata(directory.path()).unwrap().permissions();
    assert_eq!(mode.mode() & 0o7777, 0o711);
    let disk = FailingDisk::new();
    disk.set(Fails::Once(1, 1));
    let root = Root::over(directory.path(), Box::new(disk));
    assert!(root.sweep().is_err(), "a root of somebody else's");
}

#[test]
fn what_cannot_be_removed_is_remembered_within_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let disk = FailingDisk::new();
    let root = Root::over(directory.path(), Box::new(disk.clone()));
    disk.set(Fails::FromThenOn(1, 5));
    for number in 0..STUCK_MAX + 10 {
        assert!(!root.remove(&directory.path().join(number.to_string())));
    }
    assert_eq!(root.stuck().len(), STUCK_MAX);
    disk.set(Fails::Never);
    root.remove_stuck();
    assert_eq!(root.stuck().len(), 0);
}

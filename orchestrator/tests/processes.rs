//! Parts as processes: a second start of each, and commands next to a running one.
#![expect(
    clippy::unwrap_used,
    reason = "a test that can't start the program fails"
)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

use tempfile::TempDir;

const SOCKETS: &str = "gateway launcher egress texts intake intake-http metrics console \
    console-http push push-http";

/// The data and run directories of the process that serves.
const FOLDERS: [&str; 2] = ["data", "run"];

/// Role, what it logs once it serves, its socket, commands that work beside it, and those that
/// don't. A role with the latter is alone by its database too, any other by its socket.
const ROLES: &str = "\
run|the census runs|data/control.sock|backup a.db,key show,key rotate|restore a.db
gateway|gateway serves|run/gateway/gateway.sock||
launcher|no check can start|run/launcher/launcher.sock||
intake|the intake serves|run/intake-http/http.sock||
console|the console serves|run/console-http/http.sock|moderator list|
push|the push service runs|run/push-http/http.sock|backup --push b.db,key rotate --push|\
restore --push b.db";

struct Census(TempDir);

impl Census {
    fn new() -> Self {
        let census = Self(tempfile::tempdir().unwrap());
        for folder in SOCKETS.split(' ') {
            fs::create_dir_all(census.path("run").join(folder)).unwrap();
            fs::create_dir_all(census.path("other").join(folder)).unwrap();
        }
        for folder in ["data", "public", "copy"] {
            fs::create_dir(census.path(folder)).unwrap();
        }
        census
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &str, data: &str, run: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fedicensus"));
        command
            .args(arguments.split(' '))
            .env_clear()
            .env("FEDICENSUS_DATA_DIR", self.path(data))
            .env("FEDICENSUS_PUBLIC_DIR", self.path("public"))
            .env("FEDICENSUS_RUN_DIR", self.path(run))
            .env("FEDICENSUS_CONTACT", "https://example.org/")
            .env("FEDICENSUS_PUSH_ADDRESS", "https://push.example")
            .env("FEDICENSUS_ENGINE_SOCKET", self.path("no-engine"))
            .env("FEDICENSUS_RESOLVERS", "127.0.0.1")
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end. Returns its output.
    #[track_caller]
    fn run(&self, arguments: &str, [data, run]: [&str; 2], code: i32) -> String {
        let output = self.command(arguments, data, run).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
        said
    }

    fn start(&self, role: &str, says: &str, data: &str) -> Running {
        let mut command = self.command(role, data, "run");
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains(says) {
            assert!(log.read_line(&mut said).unwrap() > 0, "{role}: {said}");
        }
        Running { child, _log: log }
    }
}

/// A part of the census, which is killed when this is dropped.
struct Running {
    child: Child,
    /// The process logs into it.
    _log: BufReader<ChildStderr>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_second_start_says_who_serves_and_changes_nothing() {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for row in ROLES.lines() {
        let mut row = row.split('|');
        let [role, says, socket, beside, refused] = [(); 5].map(|()| row.next().unwrap());
        let commands = |list: &'static str| list.split(',').filter(|command| !command.is_empty());
        let census = Census::new();
        let mut first = census.start(role, says, "data");
        let serves = [
            format!("is in use by `fedicensus {role}` since 20"),
            format!("process {} of", first.child.id()),
            format!("{}): stop that first", host.trim_end()),
        ];
        let is_refused = |command: &str, folders| {
            let said = census.run(command, folders, 1);
            let all = serves.iter().all(|part| said.contains(part));
            assert!(all, "{command}: {said}");
        };
        let inode = || census.path(socket).metadata().unwrap().ino();
        let before = inode();
        is_refused(role, FOLDERS);
        if !refused.is_empty() {
            is_refused(role, ["data", "other"]);
        }
        if role != "run" {
            is_refused(role, ["copy", "run"]);
        }
        commands(beside).for_each(|command| drop(census.run(command, FOLDERS, 0)));
        commands(refused).for_each(|command| is_refused(command, FOLDERS));
        UnixStream::connect(census.path(socket)).unwrap();
        assert_eq!(inode(), before, "{role}");
        assert!(first.child.try_wait().unwrap().is_none(), "{role}");
    }
}

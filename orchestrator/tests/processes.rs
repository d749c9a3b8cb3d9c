//! Parts as processes: a second start of each, commands next to a running one, and what a thief of
//! their files can do once the operator has renewed the keys.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that can't start the program fails"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use accounts::{Accounts, Password, Token};
use dump::Moment;
use dump::sign::keys::Keys;
use limiter::login::record::Timestamp;
use push::storage::sqlite::{Limits, Sqlite};
use serde_json::Value;
use tempfile::TempDir;

const SOCKETS: &str = "gateway second-gateway launcher egress texts intake intake-http metrics console \
    console-http push push-http push-endpoint-http push-nodes";

/// The data and run directories of the process that serves.
const FOLDERS: [&str; 2] = ["data", "run"];

/// Role, what it logs once it serves, its socket, commands that work next to it, and those that
/// don't. A role with the latter is alone by its database too, any other by its socket.
const ROLES: &str = "\
run|the census runs|data/control.sock|backup a.db,key show,key rotate|restore a.db
gateway|gateway serves|run/gateway/gateway.sock||
second-gateway|gateway serves|run/second-gateway/gateway.sock||
launcher|no check can start|run/launcher/launcher.sock||
intake|the intake serves|run/intake-http/http.sock||
console|the console serves|run/console-http/http.sock|moderator list|moderator reset --all
push|the push service runs|run/push-http/http.sock|backup --push b.db,key rotate --push|\
restore --push b.db,key rotate --push --stolen,push connect,push endpoint
push connect|the push service runs|run/push-http/http.sock|backup --push b.db|\
restore --push b.db,key rotate --push --stolen,push
push endpoint|the push service runs|run/push-endpoint-http/http.sock|backup --push b.db|\
restore --push b.db,key rotate --push --stolen,push";

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

    fn start_push(&self, data: &str) -> Running {
        self.start("push", "the push service runs", data)
    }

    fn has_no_file_with(&self, secret: &[u8]) {
        for entry in fs::read_dir(self.path("data")).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let has_it = bytes.windows(secret.len()).any(|bytes| bytes == secret);
            assert!(!has_it, "{}", path.display());
        }
    }

    fn ask(&self, request: &str, header: &str, body: &str) -> (u16, String) {
        let mut stream = UnixStream::connect(self.path("run/push-http/http.sock")).unwrap();
        let length = body.len();
        write!(stream, "{request} HTTP/1.1\r\nHost: push.example\r\nConnection: close\r\nTTL: 60\r\n{header}Content-Length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap();
        (status.parse().unwrap(), body.to_owned())
    }
}

/// A part of the census, which is killed when this is dropped.
struct Running {
    child: Child,
    _log: BufReader<ChildStderr>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test] // S50
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

#[test] // S48
fn nothing_computed_from_a_former_copy_is_accepted() {
    let census = Census::new();
    push_accepts_nothing(&census);
    console_accepts_nothing(&census);
    readers_accept_nothing(&census);
}

fn push_accepts_nothing(census: &Census) {
    let open = |name| Sqlite::open(&census.path(name), Limits::ORDINARY).unwrap();
    let json = |body: &str| -> Value { serde_json::from_str(body).unwrap() };
    let send = |of: &Value| {
        let endpoint = of["endpoint"].as_str().unwrap();
        let path = endpoint.strip_prefix("https://push.example").unwrap();
        census.ask(&format!("POST {path}"), "", "").0
    };
    let running = census.start_push("data");
    let user = census.ask("POST /v1/webpush/a/registration", "", r#"{"token": "x"}"#);
    let user = json(&user.1);
    let [uaid, secret] = ["uaid", "secret"].map(|name| user[name].as_str().unwrap());
    let base = format!("/v1/webpush/a/registration/{uaid}");
    let secret = format!("Authorization: Bearer {secret}\r\n");
    assert_eq!(send(&user), 201);
    assert_eq!(census.ask(&format!("GET {base}"), &secret, "").0, 200);
    let census_key = census.ask("GET /subscribe", "", "");
    drop(running);
    open("data/push.db")
        .back_up(&census.path("copy/push.db"))
        .unwrap();

    let said = census.run("key rotate --push --stolen", FOLDERS, 0);
    assert!(said.contains("1 users, 1 channels, 1 messages"), "{said}");
    for name in ["endpoint_keys", "registration_key", "signing_key"] {
        let key = open("copy/push.db").secret(name, b"").unwrap();
        census.has_no_file_with(&key);
    }
    // The thief makes a fresh endpoint for the same user.
    let thief = census.start_push("copy");
    let (status, fresh) = census.ask(&format!("POST {base}/subscription"), &secret, "");
    assert_eq!(status, 200);
    drop(thief);
    let _running = census.start_push("data");
    assert_eq!([send(&user), send(&json(&fresh))], [404, 404]);
    assert_eq!(census.ask(&format!("GET {base}"), &secret, "").0, 401);
    assert_ne!(census.ask("GET /subscribe", "", ""), census_key);
}

fn console_accepts_nothing(census: &Census) {
    let now = Timestamp(Duration::from_secs(1_800_000_000));
    let random = &mut rand::rng();
    let open = |name| Accounts::open(&census.path(name), &mut rand::rng()).unwrap();
    let log_in = |accounts: &mut Accounts, password: &str, code: &str| -> Option<Token> {
        let candidate = accounts.candidate("ada").unwrap();
        let password = Password::new(password.to_owned());
        let is_right = password.is(candidate.hashed()).unwrap();
        let accepted = accounts.accept(&candidate, is_right, code, now).unwrap()?;
        let token = accounts.log_in(&accepted, b"browser", now, &mut rand::rng());
        token.unwrap()
    };
    let mut accounts = open("data/accounts.db");
    let old = "correct horse";
    let added = accounts.add("ada", &Password::new(old.to_owned()), now, random);
    let codes = added.unwrap().recovery_codes;
    let [first, second, third] = [0, 1, 2].map(|at| codes.get(at).unwrap());
    let session = log_in(&mut accounts, old, first).unwrap();
    accounts.copy_to(&census.path("copy/accounts.db")).unwrap();
    drop(accounts);

    let said = census.run("moderator reset --all", FOLDERS, 0);
    let hash = fs::read(census.path("copy/accounts.db")).unwrap();
    let mut hash = hash
        .windows(80)
        .filter(|text| text.starts_with(b"$argon2id$"));
    census.has_no_file_with(hash.next().unwrap());
    let (mut accounts, mut copy) = (open("data/accounts.db"), open("copy/accounts.db"));
    let new = said.split("ada: password ").nth(1).unwrap();
    let (new, codes) = new.split_once('\n').unwrap();
    let code = codes
        .lines()
        .find_map(|line| line.strip_prefix("  "))
        .unwrap();
    for (password, code) in [(old, second.as_str()), (old, code), (new, second)] {
        assert!(log_in(&mut accounts, password, code).is_none());
    }
    assert!(log_in(&mut accounts, new, code).is_some());
    let forged = log_in(&mut copy, old, third).unwrap();
    for token in [&session, &forged] {
        assert_eq!(accounts.session(token, b"browser", now).unwrap(), None);
        assert!(!accounts.is_form_token(token, &copy.form_token(token)));
    }
    let cookie = copy.browser_cookie("ada", random).unwrap();
    assert_eq!(accounts.known_browser("ada", &cookie).unwrap(), None);
}

fn readers_accept_nothing(census: &Census) {
    census.run("key show", FOLDERS, 0);
    let [key, copy] = ["data", "copy"].map(|folder| census.path(folder).join("signing.key"));
    fs::copy(key, copy).unwrap();
    census.run("key rotate --stolen", FOLDERS, 0);
    let new = Keys::find(&census.path("data")).unwrap();
    let stolen = Keys::find(&census.path("copy")).unwrap();
    // No chain leads to the stolen key or from it.
    assert_eq!(new.public_files().len(), 1);
    let write = |name, content: String| fs::write(census.path(name), content).unwrap();
    write("new.pub", new.key().public().to_file());
    write("list", "[]".to_owned());
    for (signer, is_accepted) in [(&new, true), (&stolen, false)] {
        let at = Moment::from_milliseconds(0);
        write("list.minisig", signer.key().sign(b"[]", "list", at));
        let mut minisign = Command::new("minisign");
        minisign.args(["-V", "-p", "new.pub", "-m", "list"]);
        if let Some(output) = kit::output(minisign.current_dir(census.0.path())) {
            assert_eq!(output.status.success(), is_accepted);
        }
    }
}

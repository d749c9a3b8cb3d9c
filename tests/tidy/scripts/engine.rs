//! What `deploy/engine.sh` finds, over fake programs that print what Docker and Podman would.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tree::root;

/// Programs that the script itself runs, and that are not replaced.
const TOOLS: [&str; 5] = ["bash", "dirname", "sed", "sleep", "timeout"];

const DOCKER: &str = "case $* in
    --version) echo 'Docker version 20.10.24, build 297e128' ;;
    version*) echo '20.10.24 Engine,containerd,' ;;
    *) exit 1 ;;
    esac";

/// Docker's command line connected to Podman.
const DOCKER_TO_PODMAN: &str = "case $* in
    --version) echo 'Docker version 27.0.1' ;;
    version*) echo '5.4.2 Podman Engine,Conmon,' ;;
    *) exit 1 ;;
    esac";

const DOCKER_WITH_COMPOSE: &str = "case $* in
    --version) echo 'Docker version 27.0.1' ;;
    version*) echo '27.0.1 Engine,' ;;
    'compose version' | 'buildx version') ;;
    *) exit 1 ;;
    esac";

const DOCKER_WITHOUT_DAEMON: &str = "case $* in
    --version) echo 'Docker version 20.10.24, build 297e128' ;;
    *) echo 'Cannot connect to the Docker daemon' >&2; exit 1 ;;
    esac";

const DOCKER_THAT_HANGS: &str = "case $* in
    --version) echo 'Docker version 20.10.24, build 297e128' ;;
    *) exec sleep 600 ;;
    esac";

/// The stage sets `SOCKET`.
const PODMAN: &str = "case $* in
    --version) echo 'podman version 5.4.2' ;;
    'info --format {{.Version.Version}}') echo 5.4.2 ;;
    'info --format {{.Host.RemoteSocket.Path}}') echo \"unix://$SOCKET\" ;;
    *) exit 1 ;;
    esac";

const PODMAN_THAT_FAILS: &str = "case $* in
    --version) echo 'podman version 5.4.2' ;;
    *) echo 'cannot re-exec process' >&2; exit 125 ;;
    esac";

const ANY: &str = "";

/// A machine with only some programs.
struct Stage {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
    _served: Option<UnixListener>,
}

impl Stage {
    fn new(programs: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for tool in TOOLS {
            symlink(on_this_machine(tool), folder.path().join(tool)).expect("a link");
        }
        for (name, does) in programs {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/usr/bin/env bash\n{does}\n")).expect("a program");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        Self {
            folder,
            variables: Vec::new(),
            _served: None,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// Creates the engine's socket.
    fn served(mut self) -> Self {
        self._served = Some(UnixListener::bind(self.socket()).expect("a socket"));
        self
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = value.replace("SOCKET", &self.socket().display().to_string());
        self.variables.push((name, value));
        self
    }

    /// What the script prints and sets, or its error.
    fn finds(&self) -> String {
        let script = "set -euo pipefail; . deploy/engine.sh; find_engine; find_compose; find_socket; find_profile deploy; chosen
            echo \"ENGINE=$ENGINE ENGINE_IS=$ENGINE_IS COMPOSE=${COMPOSE[*]} SOCKET=$ENGINE_SOCKET HOST=${DOCKER_HOST:-}\" \\
                \"HEALTHCHECK=${FEDICENSUS_HEALTHCHECK:-} BUILDKIT=${DOCKER_BUILDKIT:-} PROFILE=${FEDICENSUS_SECCOMP_PATH:-}\"";
        let output = Command::new(on_this_machine("bash"))
            .args(["-c", script, "engine"])
            .current_dir(root())
            .env_clear()
            .env("PATH", self.folder.path())
            .env("SOCKET", self.socket())
            .env("ENGINE_ANSWER_SECONDS", "1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .output()
            .expect("bash runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        said.replace(&self.socket().display().to_string(), "SOCKET")
            .replace(&root().display().to_string(), "ROOT")
    }

    #[track_caller]
    fn check(&self, expected: &[&str]) {
        let found = self.finds();
        for part in expected {
            assert!(found.contains(part), "{part:?} is not in:\n{found}");
        }
    }
}

pub(crate) fn on_this_machine(tool: &str) -> PathBuf {
    let path = std::env::var_os("PATH").expect("a PATH");
    std::env::split_paths(&path)
        .map(|folder| folder.join(tool))
        .find(|path| Path::new(path).is_file())
        .unwrap_or_else(|| panic!("{tool} is not installed"))
}

#[test]
fn docker_is_taken_with_the_compose_tool_that_it_has() {
    let host = "unix://SOCKET";
    Stage::new(&[("docker", DOCKER), ("docker-compose", ANY)])
        .served()
        .with("DOCKER_HOST", host)
        .check(&[
            "engine: docker 20.10.24; compose tool: docker-compose at unix://SOCKET",
            "ENGINE=docker ENGINE_IS=docker COMPOSE=docker-compose SOCKET=SOCKET",
            "HEALTHCHECK= BUILDKIT=0 PROFILE=\n",
        ]);
    Stage::new(&[("docker", DOCKER_WITH_COMPOSE), ("docker-compose", ANY)])
        .served()
        .with("DOCKER_HOST", host)
        .check(&["COMPOSE=docker compose SOCKET=SOCKET", "BUILDKIT= "]);
    Stage::new(&[("docker", DOCKER)]).check(&[
        "no compose tool for Docker: install one (Debian: apt-get install docker-compose)",
    ]);
}

#[test]
fn podman_is_taken_with_either_tool() {
    Stage::new(&[
        ("podman", PODMAN),
        ("podman-compose", ANY),
        ("docker-compose", ANY),
    ])
    .served()
    .check(&[
        "engine: podman 5.4.2; compose tool: podman-compose\n",
        "SOCKET=SOCKET HOST= HEALTHCHECK=NONE BUILDKIT=0",
        "PROFILE=ROOT/crates/launcher/src/container/seccomp.json",
    ]);
    // Docker's tool reaches Podman by its API.
    let either = Stage::new(&[("podman", PODMAN), ("docker-compose", ANY)]).served();
    either.check(&[
        "engine: podman 5.4.2; compose tool: docker-compose at unix://SOCKET",
        "SOCKET=SOCKET HOST=unix://SOCKET HEALTHCHECK= BUILDKIT=0",
    ]);
    Stage::new(&[("podman", PODMAN)]).served().check(&[
        "no compose tool for Podman: install one (Debian: apt-get install podman-compose)",
    ]);
}

#[test]
fn podman_whose_api_is_not_served_is_told_from_none() {
    for tool in ["podman-compose", "docker-compose"] {
        let user = if rustix::process::geteuid().is_root() {
            "systemctl enable --now podman.socket"
        } else {
            "systemctl --user enable --now podman.socket"
        };
        Stage::new(&[("podman", PODMAN), (tool, ANY)])
            .check(&["Podman's API is not served at SOCKET: ", user]);
    }
}

#[test]
fn of_two_engines_the_one_that_answers_is_taken_and_it_is_said() {
    let services = [
        ("podman", PODMAN),
        ("podman-compose", ANY),
        ("docker-compose", ANY),
    ];
    let with = |docker| {
        let mut programs = vec![("docker", docker)];
        programs.extend(services);
        Stage::new(&programs).served()
    };
    with(DOCKER_WITHOUT_DAEMON).check(&[
        "not used: docker does not answer (Cannot connect to the Docker daemon);",
        "engine: podman 5.4.2; compose tool: podman-compose\n",
    ]);
    with(DOCKER_THAT_HANGS).check(&[
        "not used: docker does not answer (no answer within 1 s);",
        "ENGINE=podman ",
    ]);
    with(DOCKER)
        .with("ENGINE_SOCKET", "SOCKET")
        .check(&["ENGINE=docker ENGINE_IS=docker COMPOSE=docker-compose"]);
    // Podman under both names is Podman.
    with(PODMAN).check(&["ENGINE=podman ENGINE_IS=podman COMPOSE=podman-compose"]);
    // Without a compose tool, an engine is useless.
    Stage::new(&[
        ("docker", DOCKER),
        ("podman", PODMAN),
        ("podman-compose", ANY),
    ])
    .served()
    .check(&[
        "not used: docker, which has no compose tool",
        "ENGINE=podman ENGINE_IS=podman COMPOSE=podman-compose",
    ]);
}

#[test]
fn without_an_engine_it_is_said_what_to_install_or_start() {
    Stage::new(&[]).check(&[
        "engine: no container engine: install Docker (Debian: apt-get install docker.io) or Podman (apt-get install podman)",
    ]);
    Stage::new(&[("docker", DOCKER_WITHOUT_DAEMON), ("podman", PODMAN_THAT_FAILS)]).check(&[
        "no container engine answers: docker does not answer (Cannot connect to the Docker daemon); podman does not answer (cannot re-exec process);",
    ]);
}

#[test]
fn what_is_set_from_outside_is_taken_or_refused_and_nothing_else() {
    let both = || {
        Stage::new(&[
            ("docker", DOCKER),
            ("docker-compose", ANY),
            ("podman", PODMAN),
            ("podman-compose", ANY),
        ])
        .served()
    };
    both()
        .with("ENGINE", "podman")
        .check(&["ENGINE=podman ENGINE_IS=podman COMPOSE=podman-compose SOCKET=SOCKET"]);
    both()
        .with("ENGINE", "podman")
        .with("COMPOSE_TOOL", "docker-compose")
        .check(&["COMPOSE=docker-compose SOCKET=SOCKET HOST=unix://SOCKET"]);
    both()
        .with("ENGINE", "nerdctl")
        .check(&["ENGINE is 'nerdctl'; it takes docker or podman"]);
    both()
        .with("COMPOSE_TOOL", "nerdctl compose")
        .check(&["COMPOSE_TOOL is nerdctl compose, and there is no such program"]);
    Stage::new(&[("docker", DOCKER_WITHOUT_DAEMON), ("podman", PODMAN)])
        .with("ENGINE", "docker")
        .check(&["docker does not answer (Cannot connect to the Docker daemon): is it running"]);
    Stage::new(&[("docker", DOCKER_WITHOUT_DAEMON), ("podman", PODMAN)])
        .with("DOCKER_HOST", "unix:///run/nobody.sock")
        .check(&["docker does not answer at DOCKER_HOST=unix:///run/nobody.sock"]);
    Stage::new(&[("podman", PODMAN), ("docker-compose", ANY)])
        .served()
        .with("DOCKER_HOST", "unix:///run/nobody.sock")
        .check(&["DOCKER_HOST is unix:///run/nobody.sock, and this user's Podman answers at unix://SOCKET"]);
    Stage::new(&[("docker", DOCKER), ("docker-compose", ANY)])
        .with("DOCKER_HOST", "tcp://engine.example:2376")
        .check(&["DOCKER_HOST=tcp://engine.example:2376 is none: set ENGINE_SOCKET"]);
}

#[test]
fn podman_behind_dockers_program_is_known_for_podman() {
    Stage::new(&[("docker", DOCKER_TO_PODMAN), ("docker-compose", ANY)])
        .served()
        .with("DOCKER_HOST", "unix://SOCKET")
        .check(&[
            "engine: docker 5.4.2 (it is podman that answers); compose tool: docker-compose at unix://SOCKET",
            "ENGINE=docker ENGINE_IS=podman",
            "BUILDKIT=0 PROFILE=ROOT/crates/launcher/src/container/seccomp.json",
        ]);
}

//! Which system calls are refused: whether the filter in force is our own and not the engine's.
//!
//! Tries each of [`CALLS_TRIED`] and the call that identifies our profile. Gives the calls that
//! returned `EPERM`, and the profile's mark. A call that is allowed has no effect: what it opens is
//! closed again, and what it names does not exist.

use std::io;
use std::process::{Command, Stdio};
use std::thread;

use protocol::probe::CALLS_TRIED;
use rustix::fs::{AtFlags, CWD, MemfdFlags, inotify, memfd_create, unlinkat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, socket};
use rustix::process::{Pid, PidfdFlags, getpid, getsid, pidfd_open, test_kill_process};

/// A number that no process has: the kernel gives out none above 2²² (`PID_MAX_LIMIT`, proc(5)).
const NO_PROCESS: Option<Pid> = Pid::from_raw(i32::MAX);

/// A path and a name that do not exist.
const NOTHING: &str = "/.fedicensus-probe-nothing";

/// The calls of [`CALLS_TRIED`] that were refused with `EPERM`.
pub(super) fn refused() -> Vec<String> {
    CALLS_TRIED
        .into_iter()
        .filter(|call| attempt(call) == Err(Errno::PERM))
        .map(str::to_owned)
        .collect()
}

/// The calls that every check needs and that fail.
pub(super) fn missing() -> Vec<String> {
    let unix = socket(AddressFamily::UNIX, SocketType::STREAM, None).is_ok();
    let thread = thread::Builder::new().name("probe".to_owned()).spawn(|| ());
    let thread = thread.is_ok_and(|thread| thread.join().is_ok());
    [("socket(AF_UNIX)", unix), ("clone (a thread)", thread)]
        .into_iter()
        .filter(|(_, works)| !works)
        .map(|(call, _)| call.to_owned())
        .collect()
}

/// Our profile's answer to a call that nobody makes, which identifies the profile. The call only
/// asks, so under other profiles it has no effect.
///
/// It asks about a process that does not exist. About a process whose session began outside the
/// container, the kernel would answer 0, which is no process.
pub(super) fn profile_mark() -> Option<u16> {
    match getsid(NO_PROCESS) {
        Ok(_) | Err(Errno::SRCH) => None,
        Err(answer) => u16::try_from(answer.raw_os_error()).ok(),
    }
}

fn attempt(call: &str) -> Result<(), Errno> {
    match call {
        "socket(AF_INET)" => open(AddressFamily::INET, SocketType::STREAM),
        "socket(AF_INET6)" => open(AddressFamily::INET6, SocketType::DGRAM),
        "socket(AF_NETLINK)" => open(AddressFamily::NETLINK, SocketType::RAW),
        "bind" => bind_abstract(),
        "clone (a process)" => told(
            Command::new(NOTHING)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status(),
        ),
        "kill" => test_kill_process(getpid()),
        "pidfd_open" => pidfd_open(getpid(), PidfdFlags::empty()).map(drop),
        "memfd_create" => memfd_create("probe", MemfdFlags::CLOEXEC).map(drop),
        "inotify_init1" => inotify::init(inotify::CreateFlags::CLOEXEC).map(drop),
        "unlinkat" => unlinkat(CWD, NOTHING, AtFlags::empty()),
        // An untried call does not count as refused. The launcher reports it.
        _ => Ok(()),
    }
}

fn open(family: AddressFamily, kind: SocketType) -> Result<(), Errno> {
    socket(family, kind, None).map(drop)
}

/// An address to which another process in the same network namespace could connect.
fn bind_abstract() -> Result<(), Errno> {
    let Ok(socket) = socket(AddressFamily::UNIX, SocketType::STREAM, None) else {
        // This proves nothing about `bind`, and is reported as missing.
        return Ok(());
    };
    bind(
        &socket,
        &SocketAddrUnix::new_abstract_name(NOTHING.as_bytes())?,
    )
}

/// The kernel's error number in an answer of the standard library.
fn told<T>(answer: io::Result<T>) -> Result<(), Errno> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_refused_to_a_process_that_no_filter_holds() {
        assert_eq!(refused(), [""; 0]);
        assert_eq!(missing(), [""; 0]);
        assert_eq!(profile_mark(), None);
    }

    #[test]
    fn every_call_that_the_launcher_asks_about_is_tried() {
        for call in CALLS_TRIED {
            let source = include_str!("calls.rs");
            assert!(source.contains(&format!("{call:?} =>")), "{call}");
        }
    }
}

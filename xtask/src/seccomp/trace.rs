//! Parses lines of `strace -f -X raw` into calls, and decides whether a profile allows them.

use std::collections::BTreeMap;

use serde_json::Value;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    arguments: &'a str,
}

impl<'a> Call<'a> {
    /// - `Some(call)` if a call begins in this line: `PID name(arguments…`
    /// - `None` for the end of one that was interrupted, for signals and exits
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let (process, rest) = line.split_once(' ')?;
        process.parse::<u32>().ok()?;
        let (name, arguments) = rest.trim_start().split_once('(')?;
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        (is_name && !name.is_empty()).then_some(Self { name, arguments })
    }

    /// Its own name, and the name of the call that replaces it under the profile.
    pub(super) fn stands_for(&self) -> impl Iterator<Item = &'a str> {
        let instead = (self.name == "clone3").then_some("clone");
        std::iter::once(self.name).chain(instead)
    }

    /// An argument's value, if it is a number or a pointer.
    fn argument(&self, index: usize) -> Option<u64> {
        let text = if self.name.starts_with("clone") {
            // strace prints these by name.
            self.arguments.split("flags=").nth(1)?
        } else {
            self.arguments.split(", ").nth(index)?
        };
        let end = text
            .find(|digit: char| !digit.is_ascii_alphanumeric() && digit != '|')
            .unwrap_or(text.len());
        let parts = text.get(..end)?.split('|').map(number);
        parts.reduce(|one, other| Some(one? | other?))?
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text == "NULL" => Some(0),
        None => text.parse().ok(),
    }
}

/// The lines of a trace; lines that another thread's line cut in two are rejoined.
pub(super) fn lines(trace: &str) -> Vec<String> {
    let mut whole = Vec::new();
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    for line in trace.lines() {
        let process = line.split(' ').next().unwrap_or_default();
        if let Some(begin) = line.strip_suffix("<unfinished ...>") {
            begun.insert(process, begin);
        } else if let Some((_, end)) = line.split_once(" resumed>") {
            let begin = begun.remove(process).unwrap_or_default();
            whole.push(format!("{begin}{end}"));
        } else {
            whole.push(line.to_owned());
        }
    }
    // Calls that never returned, such as exits.
    whole.extend(begun.into_values().map(str::to_owned));
    whole
}

pub(super) fn groups(profile: &Value) -> impl Iterator<Item = &Value> {
    profile["syscalls"].as_array().into_iter().flatten()
}

pub(super) fn names(group: &Value) -> impl Iterator<Item = &str> {
    let names = group["names"].as_array().into_iter().flatten();
    names.filter_map(Value::as_str)
}

/// Whether the profile refuses a call, or the call that replaces it under the profile.
pub(super) fn is_refused(profile: &Value, call: &Call) -> bool {
    call.stands_for().last().is_none_or(|name| {
        let lets = |group: &Value| {
            names(group).any(|listed| listed == name)
                && group["action"] == "SCMP_ACT_ALLOW"
                && conditions(group).all(|condition| holds(condition, call))
        };
        !groups(profile).any(lets)
    })
}

fn conditions(group: &Value) -> impl Iterator<Item = &Value> {
    group["args"].as_array().into_iter().flatten()
}

fn holds(condition: &Value, call: &Call) -> bool {
    let index = condition["index"]
        .as_u64()
        .and_then(|index| usize::try_from(index).ok());
    let found = index.and_then(|index| call.argument(index));
    let (Some(found), Some(value)) = (found, condition["value"].as_u64()) else {
        return false;
    };
    match condition["op"].as_str() {
        Some("SCMP_CMP_EQ") => found == value,
        Some("SCMP_CMP_LE") => found <= value,
        Some("SCMP_CMP_MASKED_EQ") => Some(found & value) == condition["valueTwo"].as_u64(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Value {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../crates/launcher/src/container/seccomp.json"
        );
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    fn check(line: &str, refused: bool) {
        let call = Call::parse(line).unwrap();
        assert_eq!(is_refused(&profile(), &call), refused, "{line}");
    }

    #[test]
    fn only_the_beginning_of_a_call_is_one() {
        let call = Call::parse("812  read(0x3, \"x\", 0x1) = 1").unwrap();
        assert_eq!((call.name, call.argument(2)), ("read", Some(1)));
        for line in [
            "812  <... read resumed>\"x\", 0x1) = 1",
            "812  +++ exited with 0 +++",
            "812  --- SIGPIPE {si_signo=0xd} ---",
            "",
        ] {
            assert_eq!(Call::parse(line), None, "{line}");
        }
    }

    #[test]
    fn calls_that_were_cut_in_two_are_put_together() {
        let trace = "7  recvfrom(0x9,  <unfinished ...>\n8  getrandom(\"\", 0x8, 0) = 8\n\
                     7  <... recvfrom resumed>\"\"..., 0x5, 0, NULL, NULL) = 5\n7  exit(0 <unfinished ...>\n";
        assert_eq!(
            lines(trace),
            [
                "8  getrandom(\"\", 0x8, 0) = 8",
                "7  recvfrom(0x9,  \"\"..., 0x5, 0, NULL, NULL) = 5",
                "7  exit(0 ",
            ]
        );
        check("7  recvfrom(0x9,  \"\"..., 0x5, 0, NULL, NULL) = 5", false);
    }

    #[test]
    fn what_the_profile_does_not_list_is_refused() {
        check(
            "7  openat(0xffffff9c, \"/egress/order.json\", 0x80000) = 3",
            false,
        );
        check("7  memfd_create(\"x\", 0x1) = 3", true);
        check("7  io_uring_setup(0x8, 0x7ffd) = 3", true);
    }

    #[test]
    fn arguments_are_held_against_the_profile() {
        check("7  socket(0x1, 0x80801, 0) = 3", false);
        check("7  socket(0x2, 0x80801, 0) = 3", true);
        check("7  socket(0x10001, 0x1, 0) = 3", true);
        check(
            "7  mmap(NULL, 0x1000, 0x3, 0x22, 0xffffffff, 0) = 0x7f00",
            false,
        );
        check(
            "7  mmap(NULL, 0x1000, 0x5, 0x22, 0xffffffff, 0) = 0x7f00",
            true,
        );
        check("7  mprotect(0x7f00, 0x1000, 0x7) = 0", true);
        check("7  socket(0x1, 0x1|0x80800, 0) = 3", false);
        check("7  socket(0x1, 0x2|0x80800, 0) = 3", true);
        check("7  socket(0x1, 0x800|0x2, 0) = 3", true);
        check("7  fcntl(0x1, 0x406, 0x3) = 4", false);
        check("7  fcntl(0x1, 0x4, 0x800) = 0", false);
        check("7  fcntl(0x1, 0x407, 0x100000) = 0", true);
        check("7  recvfrom(0x9, \"\", 0x5, 0, NULL, NULL) = 5", false);
        check("7  recvfrom(0x9, \"\"..., 0x5, 0x1, NULL, NULL) = 5", true);
        check("7  getsockopt(0x9, 0x1, 0x4, [0], [4]) = 0", false);
        check("7  getsockopt(0x9, 0x1, 0x4d, [0], [4]) = 0", true);
        check("7  prctl(0xf, \"worker\"...) = 0", false);
        check("7  prctl(0x4, 0x1) = 0", true);
    }

    /// `clone3` is answered with ENOSYS, so its flags count as those of the `clone` that follows.
    #[test]
    fn a_thread_passes_and_a_process_does_not() {
        let call = |flags: &str| format!("7  clone3({{flags={flags}, child_tid=0x7f}}, 0x58) = 8");
        check(&call("0x3d0f00"), false);
        check(&call("0x4100"), true);
        check(&call("0x3dcf00"), true);
        check(
            "7  clone(child_stack=NULL, flags=0x1200011, child_tid=0x7f) = 8",
            true,
        );
    }
}

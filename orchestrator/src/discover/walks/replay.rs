//! Tries the back-off of walks on a file of answers.
//!
//! Each input line is `{"t":…,"host":…,"outcome":…,"retry_after_s":…}`. Each output line is
//! `{"t":…,"host":…,"asked":…,"free_at":…}`: whether the host could be asked at that moment, and
//! from when on it can be asked after this answer. The first malformed line ends the run.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use census::backoff::{Answer, Backoff};
use census::time::{Jitter, Timestamp};
use protocol::Host;
use serde::{Deserialize, Serialize};

/// Longest line in bytes: a name, a number and some words.
const LINE_BYTES_MAX: u64 = 4 * 1024;

/// Latest moment in seconds, some 30 000 years from now: numbers up to this size are exact.
const SECONDS_MAX: f64 = 1e12;

/// A host's answer and its time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    t: f64,
    host: Host,
    outcome: Outcome,
    #[serde(default)]
    retry_after_s: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    Ok,
    NotFound,
    Access,
    Unresponsive,
    NotJson,
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::Answered,
            Outcome::NotFound => Self::NotFound,
            Outcome::Access => Self::AccessControlled,
            Outcome::Unresponsive => Self::Unresponsive,
            Outcome::NotJson => Self::NotJson,
        }
    }
}

#[derive(Debug, Serialize)]
struct Said<'a> {
    t: f64,
    host: &'a Host,
    asked: bool,
    free_at: f64,
}

/// Answers each line. `jitter` gives a random number for each answer, or `None` for none.
pub fn replay(
    mut lines: impl BufRead,
    mut out: impl Write,
    mut jitter: impl FnMut() -> Option<Jitter>,
) -> anyhow::Result<()> {
    let mut hosts = BTreeMap::<Host, Backoff>::new();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let mut bounded = std::io::Read::take(&mut lines, LINE_BYTES_MAX);
        if bounded.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let event: Line = serde_json::from_slice(&line).with_context(|| {
            format!("line {number} is not {{\"t\":SECONDS,\"host\":NAME,\"outcome\":\"ok\"|\"not-found\"|\"access\"|\"unresponsive\"|\"not-json\",\"retry_after_s\":SECONDS|null}}")
        })?;
        ensure!(
            (0.0..=SECONDS_MAX).contains(&event.t),
            "line {number}: t is not between 0 and {SECONDS_MAX}"
        );
        let now = timestamp(event.t);
        let before = hosts.get(&event.host).copied().unwrap_or_default();
        let stated = event.retry_after_s.map(Duration::from_secs);
        let after = before.after(event.outcome.into(), stated, now, jitter());
        let free_at = after.free_at.map_or(event.t, seconds);
        let said = Said {
            t: event.t,
            host: &event.host,
            asked: !before.is_paused(now),
            free_at,
        };
        serde_json::to_writer(&mut out, &said)?;
        out.write_all(b"\n")?;
        hosts.insert(event.host, after);
    }
    out.flush()?;
    Ok(())
}

fn timestamp(seconds: f64) -> Timestamp {
    let millis = Duration::from_secs_f64(seconds).as_millis();
    Timestamp(i64::try_from(millis).unwrap_or(i64::MAX))
}

fn seconds(at: Timestamp) -> f64 {
    Duration::from_millis(u64::try_from(at.0).unwrap_or(0)).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &str, expect: &str) {
        let mut out = Vec::new();
        replay(lines.as_bytes(), &mut out, || None).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expect);
    }

    #[test]
    fn each_answer_shows_whether_it_was_its_turn_and_when_the_next_one_is() {
        check(
            r#"{"t":0,"host":"a.example","outcome":"unresponsive"}
{"t":1,"host":"A.example","outcome":"not-json"}

{"t":1.5,"host":"b.example","outcome":"unresponsive","retry_after_s":7}
{"t":30,"host":"a.example","outcome":"unresponsive","retry_after_s":null}
{"t":90,"host":"a.example","outcome":"ok"}
{"t":91,"host":"a.example","outcome":"access"}
"#,
            r#"{"t":0.0,"host":"a.example","asked":true,"free_at":30.0}
{"t":1.0,"host":"a.example","asked":false,"free_at":30.0}
{"t":1.5,"host":"b.example","asked":true,"free_at":8.5}
{"t":30.0,"host":"a.example","asked":true,"free_at":90.0}
{"t":90.0,"host":"a.example","asked":true,"free_at":90.0}
{"t":91.0,"host":"a.example","asked":true,"free_at":2419291.0}
"#,
        );
    }

    #[test]
    fn a_line_of_another_form_is_named() {
        for line in [
            "{}",
            r#"{"t":"0","host":"a.example","outcome":"ok"}"#,
            r#"{"t":0,"host":"a b","outcome":"ok"}"#,
            r#"{"t":0,"host":"a.example","outcome":"fine"}"#,
            r#"{"t":-1,"host":"a.example","outcome":"ok"}"#,
            r#"{"t":1e300,"host":"a.example","outcome":"ok"}"#,
            &format!(r#"{{"t":0,"host":"{}","outcome":"ok"}}"#, "a".repeat(5000)),
        ] {
            let error = replay(line.as_bytes(), Vec::new(), || None).unwrap_err();
            assert!(error.to_string().starts_with("line 1"), "{error}");
        }
    }
}

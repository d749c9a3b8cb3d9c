//! Applies rules to a stream of requests.
//!
//! Requests are lines of JSON, each at most [`LINE_BYTES_MAX`]. Each gets one line of JSON, in the
//! same order, before the next request is awaited. A line that is not a request gets an answer that
//! explains why, and the run continues.

use std::io::{self, BufRead, BufReader, Read, Write};

use admission::decision::CounterState;
use admission::{Counters, Decision, DomainName, KeyHash, Policy};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::error::Category;
use thiserror::Error;

/// Longest request without its line end, in bytes: the longest name with every character escaped
/// fits in half of it.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// Wrong lines that stderr shows one by one; the answers name all of them.
pub(super) const WRONG_SHOWN_MAX: u64 = 20;

/// Why not all requests were answered.
#[derive(Debug, Error)]
pub(super) enum TrialError {
    #[error("the requests can't be read")]
    Read(#[source] io::Error),
    #[error("the answers can't be written")]
    Write(#[source] io::Error),
}

/// A line's fields before they are checked; other fields are ignored.
#[derive(Deserialize)]
struct Fields {
    #[serde(default)]
    t: Option<Value>,
    #[serde(default)]
    domain: Option<Value>,
    #[serde(default)]
    key_hash: Option<Value>,
}

struct Request {
    t_s: u64,
    domain: Option<String>,
    key: Option<KeyHash>,
}

#[derive(Serialize)]
struct Answer<'a> {
    allow: bool,
    rule: Option<&'static str>,
    counter: Option<&'a str>,
    count: Option<u32>,
    limit: Option<u32>,
    reason: &'a str,
}

/// Answers all requests. `wrong` is called for each line that is not a request, with its number
/// from 1. The run ends if the answers' reader closes the pipe.
pub(super) fn run<R: Read>(
    policy: &Policy,
    mut counters: Counters,
    requests: BufReader<R>,
    answers: impl Write,
    wrong: impl FnMut(u64, &str),
) -> Result<(), TrialError> {
    match answer_all(policy, &mut counters, requests, answers, wrong) {
        Err(TrialError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

fn answer_all<R: Read>(
    policy: &Policy,
    counters: &mut Counters,
    mut requests: BufReader<R>,
    mut answers: impl Write,
    mut wrong: impl FnMut(u64, &str),
) -> Result<(), TrialError> {
    let mut line = Vec::new();
    for number in 1_u64.. {
        if !requests.buffer().contains(&b'\n') {
            // A client that waits for an answer before its next request must get it now.
            answers.flush().map_err(TrialError::Write)?;
        }
        if !read_line(&mut requests, &mut line).map_err(TrialError::Read)? {
            break;
        }
        if line.len() <= LINE_BYTES_MAX && line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let written = match request(&line) {
            Ok(request) => {
                let (decision, reason) = decide(policy, counters, &request);
                write_answer(&mut answers, Some(&decision), &reason)
            }
            Err(why) => {
                wrong(number, &why);
                write_answer(&mut answers, None, &format!("line {number}: {why}"))
            }
        };
        written.map_err(TrialError::Write)?;
    }
    answers.flush().map_err(TrialError::Write)
}

fn write_answer(
    answers: &mut impl Write,
    decision: Option<&Decision>,
    reason: &str,
) -> io::Result<()> {
    let counter = decision.and_then(|decision| decision.counter.as_ref());
    let answer = Answer {
        allow: decision.is_some_and(Decision::is_admitted),
        rule: counter.map(|counter| counter.table.as_str()),
        counter: counter.map(|counter| counter.name.as_str()),
        count: counter.map(|counter: &CounterState| counter.count),
        limit: counter.map(|counter| counter.limit.get()),
        reason,
    };
    serde_json::to_writer(&mut *answers, &answer)?;
    answers.write_all(b"\n")
}

/// Reads the next line into `line`, without its line end. Of a line that is too long, it keeps one
/// byte more than the limit. `false` at the end of input.
fn read_line<R: Read>(requests: &mut BufReader<R>, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let bytes_max = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
    let read = requests
        .by_ref()
        .take(bytes_max.saturating_add(1))
        .read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > LINE_BYTES_MAX {
        requests.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

fn request(line: &[u8]) -> Result<Request, String> {
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("it is longer than {LINE_BYTES_MAX} bytes"));
    }
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    // Serde would accept an array of the same values as an object.
    if line.trim_ascii_start().first() != Some(&b'{') {
        return Err("it is not a request: not a JSON object".to_owned());
    }
    let fields: Fields = serde_json::from_slice(line).map_err(|error| match error.classify() {
        // The fields accept any value, and unknown fields are ignored, so only a repeated field
        // remains.
        Category::Data => "it is not a request: t, domain or key_hash occurs twice".to_owned(),
        Category::Syntax | Category::Eof | Category::Io => {
            let column = error.column();
            format!("it is not a request: not a JSON object (column {column})")
        }
    })?;
    Request::new(fields).map_err(|what| format!("it is not a request: {what}"))
}

impl Request {
    fn new(fields: Fields) -> Result<Self, &'static str> {
        let t_s = match fields.t {
            None => return Err("t is missing"),
            Some(t) => seconds(&t).ok_or("t is not a whole number of seconds")?,
        };
        let domain = match fields.domain {
            None => None,
            Some(Value::String(domain)) => Some(domain),
            Some(_) => return Err("domain is not a text"),
        };
        let key = match fields.key_hash {
            None => None,
            Some(hash) => {
                let hash = hash.as_str().and_then(KeyHash::parse);
                Some(hash.ok_or("key_hash is not 64 hexadecimal digits")?)
            }
        };
        Ok(Self { t_s, domain, key })
    }
}

/// A number without a fraction, in any JSON form: `1`, `1.0` and `1e0` are equal.
fn seconds(value: &Value) -> Option<u64> {
    let Value::Number(number) = value else {
        return None;
    };
    number.as_u64().or_else(|| {
        let number = number.as_f64()?;
        let is_whole = number >= 0.0 && number.fract() == 0.0;
        // The decimal form has all its digits; the sign of a zero is dropped.
        is_whole.then(|| format!("{:.0}", number.abs()).parse().ok())?
    })
}

/// The decision and its reason. A domain that is not a name is treated as absent, except for the
/// reason.
fn decide(policy: &Policy, counters: &mut Counters, request: &Request) -> (Decision, String) {
    let key = request.key.as_ref();
    let domain = request.domain.as_deref().map(DomainName::parse).transpose();
    let name = domain.as_ref().ok().and_then(Option::as_ref);
    let decision = policy.decide(counters, key, name, request.t_s);
    let reason = match (&domain, &decision.counter) {
        (Err(why), None) => why.to_string(),
        (Err(_) | Ok(_), _) => decision.reason.to_string(),
    };
    (decision, reason)
}

#[cfg(test)]
mod tests;

//! Rules tried on a stream of requests.
//!
//! In: lines of JSON, each at most [`LINE_BYTES_MAX`]. Out: a line of JSON for each, in the same order, before the next
//! request is waited for. Refused: a line that is no request; it is answered as such, and the next one goes on.

use std::io::{self, BufRead, BufReader, Read, Write};

use admission::decision::CounterState;
use admission::{Counters, Decision, DomainName, KeyHash, Policy};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::error::Category;
use thiserror::Error;

/// Longest request without its line end: a name of the longest text, each of its characters escaped, fits in half of it.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// Wrong lines that are told one by one on standard error; answers tell of all.
pub(super) const WRONG_SHOWN_MAX: u64 = 20;

/// Why not all requests are answered.
#[derive(Debug, Error)]
pub(super) enum TrialError {
    #[error("the requests can't be read")]
    Read(#[source] io::Error),
    #[error("the answers can't be written")]
    Write(#[source] io::Error),
}

/// A line's fields as they stand there; others mean nothing here.
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

/// Answers all requests; `wrong` hears of each line that is none, with its number from 1. A reader of the answers who goes away ends it.
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
            // Whoever waits for an answer before the next request must not wait for ever.
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

/// Reads the next line without its end into `line`; of one that is too long the beginning, one byte more than may be. False at the end of all.
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
    // An array of the same values would be taken for an object.
    if line.trim_ascii_start().first() != Some(&b'{') {
        return Err("it is no request: no JSON object".to_owned());
    }
    let fields: Fields = serde_json::from_slice(line).map_err(|error| match error.classify() {
        // Any value is taken at first, and other fields are passed over.
        Category::Data => "it is no request: t, domain or key_hash stands there twice".to_owned(),
        Category::Syntax | Category::Eof | Category::Io => {
            let column = error.column();
            format!("it is no request: no JSON object (column {column})")
        }
    })?;
    Request::new(fields).map_err(|what| format!("it is no request: {what}"))
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

/// A number without a fraction, however it is written: `1`, `1.0` and `1e0` are the same in JSON.
fn seconds(value: &Value) -> Option<u64> {
    let Value::Number(number) = value else {
        return None;
    };
    number.as_u64().or_else(|| {
        let number = number.as_f64()?;
        let is_whole = number >= 0.0 && number.fract() == 0.0;
        // In decimal it has all its digits, and the sign of a zero is none.
        is_whole.then(|| format!("{:.0}", number.abs()).parse().ok())?
    })
}

/// The decision, and why: a domain that is no name is as none, but for that.
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

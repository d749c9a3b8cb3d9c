//! `token verify`: what a token says, and whether it is valid.
//!
//! Takes a header's value or line, and keys. Prints the token's content, and if it is not valid,
//! why. Anything that is not a token is rejected.

use std::io::Read as _;

use anyhow::{Context as _, bail};
use census::time::{Timestamp, rfc3339};
use clap::{ArgGroup, Args};
use protocol::Host;
use serde::Serialize;
use token::{
    Candidates, Form, KeyError, LogKey, OwnToken, PublicKey, Purpose, SigsumToken, Submitter,
    TestDomain, TxtRecord, UnixSeconds, Wanted,
};

use super::{parse_log_key, purposes};
use crate::cli::{FAILED, OK, Output, complain, parse_host, say, told_once};

/// Most bytes that are read: what servers commonly accept as a request's whole head, and several
/// times the longest token.
const TEXT_BYTES_MAX: usize = 8 * 1024;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("keys").required(true).args(["key", "txt"])))]
pub(in crate::cli) struct Verify {
    /// The header's value, its line, or lines with it among other headers; `-` for standard input,
    /// which other users of the machine can't see
    #[arg(default_value = "-")]
    token: String,
    /// The public key: 64 hex digits
    #[arg(long, value_name = "HEX", value_parser = parse_public_key)]
    key: Option<PublicKey>,
    /// The domain's TXT records, one a line, bare or as `dig +short` prints them; may be repeated
    #[arg(long, value_name = "RECORD")]
    txt: Vec<String>,
    /// For Sigsum's form: the public key that the census is known by, 64 hex digits
    #[arg(long, value_name = "HEX", value_parser = parse_log_key)]
    log_key: Option<LogKey>,
    /// What it must be for [default: whatever it says]
    #[arg(long, value_parser = purposes())]
    purpose: Option<Purpose>,
    /// The host that it must be for [default: whichever it says]
    #[arg(long, value_parser = parse_host)]
    host: Option<Host>,
    /// Take test.sigsum.org and what lies below it for a domain like any other
    #[arg(long)]
    allow_test_domain: bool,
    #[command(flatten)]
    output: Output,
}

fn parse_public_key(text: &str) -> Result<PublicKey, KeyError> {
    PublicKey::from_hex(text.as_bytes())
}

impl Verify {
    /// Shows the token; the exit code says whether it is valid.
    pub(super) fn run(&self, now: UnixSeconds) -> anyhow::Result<u8> {
        let judged = match self.read().and_then(|text| self.judge(&text, now)) {
            Err(error) if self.output.json => Judged::nothing(&error),
            judged => judged?,
        };
        say(&if self.output.json {
            serde_json::to_string(&judged)?
        } else {
            judged.text()
        })?;
        Ok(match &judged.reason {
            None => OK,
            Some(_) if self.output.json => FAILED,
            Some(reason) => complain(&format!("the token is not good: {reason}"), FAILED),
        })
    }

    fn read(&self) -> anyhow::Result<Vec<u8>> {
        if self.token == "-" {
            read_stdin().context("no token was read from standard input")
        } else {
            Ok(self.token.as_bytes().to_vec())
        }
    }

    pub(super) fn judge(&self, text: &[u8], now: UnixSeconds) -> anyhow::Result<Judged> {
        let test = if self.allow_test_domain {
            TestDomain::Allow
        } else {
            TestDomain::Refuse
        };
        let (form, value) = value(text)?;
        match form {
            Form::Own => {
                let token = OwnToken::parse(value, test)?.context("the token is empty")?;
                Ok(self.judge_own(token, now))
            }
            Form::Sigsum => {
                let token = SigsumToken::parse(value, test)?.context("the token is empty")?;
                self.judge_sigsum(token)
            }
        }
    }

    fn judge_own(&self, token: OwnToken, now: UnixSeconds) -> Judged {
        let wanted = Wanted {
            purpose: self.purpose.unwrap_or(token.claim.purpose),
            host: self.host.as_ref().unwrap_or(&token.claim.host),
            now,
        };
        let verified = token.verify(&self.keys(), wanted);
        Judged {
            purpose: Some(token.claim.purpose.as_str()),
            expires: Some(moment(token.claim.expires)),
            host: Some(token.claim.host),
            ..Judged::new(
                "own",
                token.claim.domain,
                verified.map(|verified| verified.submitter),
            )
        }
    }

    fn judge_sigsum(&self, token: SigsumToken) -> anyhow::Result<Judged> {
        if self.purpose.is_some() || self.host.is_some() {
            bail!(
                "a token of Sigsum's form names neither a purpose nor a host: leave out --purpose and --host"
            );
        }
        let log_key = self.log_key.context(
            "the token is of Sigsum's form, which signs the key that the census is known by: give it as --log-key HEX",
        )?;
        let verified = token.verify(&self.keys(), log_key);
        Ok(Judged::new("sigsum", token.domain, verified))
    }

    fn keys(&self) -> Candidates {
        self.key.map_or_else(
            || Candidates::from_records(&records(&self.txt)),
            Candidates::one,
        )
    }
}

fn read_stdin() -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    let bytes_max = u64::try_from(TEXT_BYTES_MAX)?;
    std::io::stdin()
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut text)?;
    if text.len() > TEXT_BYTES_MAX {
        bail!("it is longer than {TEXT_BYTES_MAX} bytes");
    }
    Ok(text)
}

/// What a token says, and whether it is valid.
#[derive(Debug, Serialize)]
pub(super) struct Judged {
    pub(super) good: bool,
    /// Why it is not valid.
    pub(super) reason: Option<String>,
    pub(super) form: Option<&'static str>,
    pub(super) domain: Option<Host>,
    pub(super) purpose: Option<&'static str>,
    pub(super) host: Option<Host>,
    pub(super) expires: Option<String>,
    /// The hash of the key that signed it.
    pub(super) key_hash: Option<String>,
}

impl Judged {
    fn new<E: std::error::Error>(
        form: &'static str,
        domain: Host,
        verified: Result<Submitter, E>,
    ) -> Self {
        Self {
            good: verified.is_ok(),
            reason: verified.as_ref().err().map(ToString::to_string),
            form: Some(form),
            domain: Some(domain),
            purpose: None,
            host: None,
            expires: None,
            key_hash: verified
                .ok()
                .map(|submitter| submitter.key_hash.to_string()),
        }
    }

    /// For input that is not a token or can't be judged.
    fn nothing(error: &anyhow::Error) -> Self {
        Self {
            good: false,
            reason: Some(told_once(error)),
            form: None,
            domain: None,
            purpose: None,
            host: None,
            expires: None,
            key_hash: None,
        }
    }

    pub(super) fn text(&self) -> String {
        let goodness = if self.good { "good" } else { "not good" };
        let mut text = format!(
            "{goodness}: a token of {} form",
            if self.form == Some("own") {
                "the census's own"
            } else {
                "Sigsum's"
            }
        );
        let mut line = |label: &str, value: Option<&str>| {
            if let Some(value) = value {
                text.push_str(&format!("\n  {label:<10}{value}"));
            }
        };
        line("domain", self.domain.as_ref().map(Host::as_str));
        line("purpose", self.purpose);
        line("host", self.host.as_ref().map(Host::as_str));
        line("expires", self.expires.as_deref());
        line("key hash", self.key_hash.as_deref());
        text
    }
}

/// The form and the header's value, without the space that HTTP allows around it. Of lines that
/// name their headers, the first with a token's name counts. The first word of a bare value shows
/// its form, because no domain has only one label.
fn value(text: &[u8]) -> anyhow::Result<(Form, &[u8])> {
    let mut headers = text.split(|&byte| byte == b'\n').filter_map(header);
    if let Some(known) = headers.find_map(|(name, value)| Some((form_of(name)?, value))) {
        return Ok(known);
    }
    let text = text.trim_ascii();
    if header(text).is_some() {
        bail!(
            "there is no header {} or {}, but another header",
            token::own::HEADER,
            token::sigsum::HEADER
        );
    }
    let form = if text.starts_with(b"v1 ") {
        Form::Own
    } else {
        Form::Sigsum
    };
    Ok((form, text))
}

/// The name and the value of a header's line. No header in use has a dot in its name, and all
/// domains have one: `a.example:443` is a value.
fn header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii();
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (name, value) = line.split_at_checked(colon)?;
    let is_name = !name.is_empty()
        && name
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    let value = value.strip_prefix(b":").unwrap_or(value);
    // Such as `https://a.example`.
    let is_address = value.starts_with(b"//");
    (is_name && !is_address).then_some((name, value.trim_ascii()))
}

/// The form of the tokens that a header carries.
fn form_of(header: &[u8]) -> Option<Form> {
    [
        (token::own::HEADER, Form::Own),
        (token::sigsum::HEADER, Form::Sigsum),
    ]
    .into_iter()
    .find(|(name, _)| header.eq_ignore_ascii_case(name.as_bytes()))
    .map(|(_, form)| form)
}

/// Parses records, one a line: bare, or as strings in quotation marks (RFC 1035 §5.1).
fn records(written: &[String]) -> Vec<TxtRecord> {
    written
        .iter()
        .flat_map(|lines| lines.lines())
        .map(|record| match record.trim() {
            quoted if quoted.starts_with('"') => {
                TxtRecord::from_strings(quoted.split('"').skip(1).step_by(2))
            }
            bare => TxtRecord::from_strings([bare]),
        })
        .collect()
}

fn moment(seconds: UnixSeconds) -> String {
    let seconds = i64::try_from(seconds.0).unwrap_or(i64::MAX);
    rfc3339(Timestamp(seconds.saturating_mul(1000)))
}

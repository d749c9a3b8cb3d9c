//! Commands about submit tokens: for people who submit hosts, and for anyone who wants to know what
//! a token is. They need no daemon, no database and no DNS.
//!
//! No secret is ever an argument or part of the output: every user of a machine can see arguments,
//! and logs are kept.

mod key_file;
mod verify;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use protocol::Host;
use serde::Serialize;
use token::own::EXPIRES_IN_SECONDS_MAX;
use token::{
    Claim, DomainError, Form, KeyError, LogKey, OwnToken, Purpose, SigsumToken, TestDomain,
    UnixSeconds, Wanted,
};

use self::verify::Verify;
use super::{OK, Output, parse_host, say};
use crate::ground::clock::{Clock as _, SystemClock};

/// Default lifetime of a token: long enough to carry it to another machine by hand.
const EXPIRES_IN_SECONDS: u64 = 60 * 60;

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Make a key or show one: its hash, and the TXT record that publishes it
    Key {
        /// The file that holds the secret key: OpenSSH's form, without a passphrase
        file: PathBuf,
        /// Make the key; the file must not be there
        #[arg(long)]
        new: bool,
        /// The domain that is to publish it
        #[arg(long, value_parser = parse_domain)]
        domain: Option<Host>,
        /// The record for tokens of Sigsum's form
        #[arg(long)]
        sigsum: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Make a token: prints the value of the header `Fedicensus-Token`, or of `Sigsum-Token`
    Make(Make),
    /// Say what a token is, and whether it is good
    Verify(Verify),
}

#[derive(Debug, Args)]
pub(super) struct Make {
    /// The file that holds the secret key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The domain whose DNS publishes the key
    #[arg(long, value_parser = parse_domain)]
    domain: Host,
    /// The host that it is for [default: the domain itself]
    #[arg(long, value_parser = parse_host)]
    host: Option<Host>,
    /// What is to become of the host; only its own domain or one above it opts it out and in
    #[arg(long, default_value = "submit", value_parser = purposes())]
    purpose: Purpose,
    /// Seconds until it expires
    #[arg(long, value_name = "SECONDS", default_value_t = EXPIRES_IN_SECONDS, value_parser = clap::value_parser!(u64).range(1..=EXPIRES_IN_SECONDS_MAX))]
    expires_in: u64,
    /// Sigsum's form instead, which has no purpose, host or expiry
    #[arg(long, requires = "log_key", conflicts_with_all = ["host", "purpose", "expires_in"])]
    sigsum: bool,
    /// Public key of the census, used as a log's key: 64 hex digits
    #[arg(long, value_name = "HEX", requires = "sigsum", value_parser = parse_log_key)]
    log_key: Option<LogKey>,
}

fn parse_domain(text: &str) -> Result<Host, String> {
    // A token that another census refuses can still be made: making one is how its owner finds that
    // out. The check uses Sigsum's label because it is shorter: see `fitting`.
    token::domain::parse(text.as_bytes(), Form::Sigsum, TestDomain::Allow)
        .map_err(|error| format!("the domain {error}"))
}

/// Accepts the domain if the record's name, the form's label and the domain, is not too long.
fn fitting(domain: &Host, form: Form) -> anyhow::Result<&Host> {
    if token::domain::has_room(domain, form) {
        Ok(domain)
    } else {
        bail!("the domain {}", DomainError::TooLong)
    }
}

fn parse_log_key(text: &str) -> Result<LogKey, KeyError> {
    LogKey::from_hex(text.as_bytes())
}

fn purposes() -> impl TypedValueParser<Value = Purpose> {
    PossibleValuesParser::new(Purpose::ALL.map(Purpose::as_str))
        .try_map(|word| Purpose::parse(&word).ok_or("no such purpose"))
}

pub(super) fn run(command: TokenCommand) -> anyhow::Result<u8> {
    match command {
        TokenCommand::Key {
            file,
            new,
            domain,
            sigsum,
            output,
        } => {
            let form = if sigsum { Form::Sigsum } else { Form::Own };
            let domain = domain
                .as_ref()
                .map(|domain| fitting(domain, form))
                .transpose()?;
            key(&file, new, &record_name(form, domain), output)
        }
        TokenCommand::Make(make) => {
            say(&made(&make, now())?)?;
            Ok(OK)
        }
        TokenCommand::Verify(verify) => verify.run(now()),
    }
}

fn now() -> UnixSeconds {
    // A clock before 1970 counts as 1970.
    UnixSeconds(u64::try_from(SystemClock.now().0 / 1000).unwrap_or(0))
}

#[derive(Serialize)]
struct ShownKey {
    public_key: String,
    key_hash: String,
    txt_name: String,
    txt: String,
}

fn key(file: &Path, new: bool, name: &str, output: Output) -> anyhow::Result<u8> {
    let key = if new {
        key_file::make(file)?
    } else {
        key_file::read(file)?
    };
    let public = key.public();
    let shown = ShownKey {
        public_key: public.to_string(),
        key_hash: public.hash().to_string(),
        txt_name: name.to_owned(),
        txt: public.to_string(),
    };
    if output.json {
        say(&serde_json::to_string(&shown)?)?;
        return Ok(OK);
    }
    if new {
        say(&format!(
            "made {}: anyone who reads it can sign in your name",
            file.display()
        ))?;
    }
    say(&format!("public key  {}", shown.public_key))?;
    say(&format!("key hash    {}", shown.key_hash))?;
    say(&format!("TXT record  {name} IN TXT \"{}\"", shown.txt))?;
    Ok(OK)
}

/// The record's name for a zone file: absolute with its final dot, or relative if the zone is
/// unknown.
fn record_name(form: Form, domain: Option<&Host>) -> String {
    domain.map_or_else(
        || form.label().to_owned(),
        |domain| format!("{}.{domain}.", form.label()),
    )
}

fn made(make: &Make, now: UnixSeconds) -> anyhow::Result<String> {
    let key = key_file::read(&make.key)?;
    let domain = make.domain.clone();
    if let Some(log_key) = make.log_key {
        return Ok(SigsumToken::sign(domain, log_key, &key).to_string());
    }
    fitting(&domain, Form::Own)?;
    let host = make.host.clone().unwrap_or_else(|| domain.clone());
    let claim = Claim {
        purpose: make.purpose,
        domain,
        host: host.clone(),
        expires: UnixSeconds(now.0.saturating_add(make.expires_in)),
    };
    claim
        .fits(Wanted {
            purpose: make.purpose,
            host: &host,
            now,
        })
        .context("this would be a token that nobody takes")?;
    Ok(OwnToken::sign(claim, &key).to_string())
}

#[cfg(test)]
mod tests;

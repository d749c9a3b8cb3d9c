//! Commands about admission. They apply rules to requests, check rules and show names as the rules
//! see them, without a database and without DNS. One makes the daemon reload its rules.

mod trial;
mod views;

use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use ::admission::rules::{ListPlace, RulesError};
use ::admission::{Counters, HashKey, Limit, Rules, TestDomain};
use anyhow::Context as _;
use clap::Subcommand;
use protocol::escaped;
use protocol::limits::TEXT_BYTES_MAX;

use self::views::{NameView, Parsed, Wrong};
use super::{FAILED, OK, Output, USAGE, ask, complain, say};
use crate::admit::policy::{self, PolicyError};
use crate::config::Config;
use crate::ground::input_file::{self, DASH};
use crate::serve::control::Request;

#[derive(Debug, Subcommand)]
pub(super) enum Admission {
    /// Decide about requests from standard input by a file of rules, with all counters at zero
    #[command(after_help = TRY_HELP)]
    Try {
        /// The rules; not standard input, which holds the requests
        #[arg(long, value_name = "FILE")]
        rules: PathBuf,
        /// Public suffix list, or an excerpt, instead of the one that the `public` line names
        #[arg(long, value_name = "FILE")]
        suffixes: Option<PathBuf>,
        /// Treat test.sigsum.org, whose private key is public, as any other domain
        #[arg(long)]
        allow_test_domain: bool,
    },
    /// Check a file of rules and name every wrong line; the list that it names is not read
    #[command(after_help = CHECK_HELP)]
    Check {
        /// The rules; `-` for standard input
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Print names as the rules compare them, with their public suffixes and registered domains
    #[command(after_help = NAME_HELP)]
    Name {
        /// The names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Public suffix list, or an excerpt, instead of the census's own
        #[arg(long, value_name = "FILE")]
        suffixes: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Make the daemon read the rules and all lists again, all or nothing, as SIGHUP does
    Reload,
}

const TRY_HELP: &str = "\
A request is a line {\"t\":SECONDS,\"domain\":NAME|null,\"key_hash\":HEX|null}: a new name that asks to enter at that time, the domain and the SHA-256 \
of the public key that its submitter proved. SECONDS is a whole number (1.0 and 1e3 are, too), since 1970 or any other moment; what is null may be left out, and other fields are passed over.

An answer is a line {\"allow\":…,\"rule\":…,\"counter\":…,\"count\":…,\"limit\":…,\"reason\":…}:
  allow    true or false
  rule     \"key\", \"domain\" or \"public\": the kind of line that decided; null when none was reached
  counter  what that line counts: the key's hash, the configured domain or the registered domain; null without a rule
  count    admissions by this counter in its window before this request: allow is true when it is below the limit; null without a rule
  limit    the line's limit; null without a rule
  reason   a sentence

The first request begins the window of 24 hours; the next begins exactly a day later. A time before the last one's is taken for one within the same \
window. A line that is no request is answered too, allow false and the line's number in the reason, so that answers match their requests; it is \
reported on standard error, and the exit code is 1 in the end. Blank lines are passed over. Answers are \
written before the next request is waited for. Rules that are not well-formed, or a list that can't be read: \
exit code 1 and no answer.";

const CHECK_HELP: &str = "\
With --json: {\"keys\":[{\"key_hash\":…,\"limit\":…}],\"domains\":[{\"domain\":…,\"limit\":…}],\"public\":{\"file\":…,\"limit\":…}|null}, or \
{\"errors\":[{\"line\":…,\"text\":…,\"problem\":…}]} and exit code 1; line and text are null for what is wrong with the file as a whole.";

const NAME_HELP: &str = "\
A line a name: normalised name, public suffix, registered domain, separated by tabs; `-` for what it has not. Names that are refused are reported on \
standard error, and the exit code is 1 in the end. With --json an array of {\"input\":…,\"name\":…,\"public_suffix\":…,\"registered_domain\":…,\
\"reason\":…}, null for what it has not; the reason says why.";

/// Size of the buffers for requests and answers, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

pub(super) fn obey(command: Admission, config: &Config) -> anyhow::Result<u8> {
    match command {
        Admission::Try {
            rules,
            suffixes,
            allow_test_domain,
        } => {
            let test_domain = if allow_test_domain {
                TestDomain::Allow
            } else {
                TestDomain::Refuse
            };
            try_rules(&rules, suffixes.as_deref(), test_domain, config)
        }
        Admission::Check { file, output } => check(&file, output.json),
        Admission::Name {
            names,
            suffixes,
            output,
        } => name(names, suffixes.as_deref(), output.json, config),
        Admission::Reload => {
            let asking = ask::daemon(config, Request::ReloadAdmission {});
            super::runtime()?.block_on(asking)
        }
    }
}

fn try_rules(
    rules: &Path,
    suffixes: Option<&Path>,
    test_domain: TestDomain,
    config: &Config,
) -> anyhow::Result<u8> {
    for (option, path) in [("--rules", Some(rules)), ("--suffixes", suffixes)] {
        if let Some(path) = path.filter(|path| input_file::is_stdin(path)) {
            let path = path.display();
            let what = format!("{option} {path}: standard input holds the requests; name a file");
            return Ok(complain(&what, USAGE));
        }
    }
    let policy = match policy::read_rules(rules) {
        Ok(rules) => policy::with_suffixes(rules, suffixes, test_domain, || config.suffixes()),
        Err(PolicyError::Rules(error)) => return Ok(tell(&error)),
        Err(error) => Err(error),
    };
    let policy = policy.map_err(|error| match error {
        // An unusable setting, as for any other command.
        PolicyError::OwnSuffixes(error) => anyhow::Error::from(error),
        other => other.into(),
    })?;
    let counters = Counters::new(HashKey(rand::random()));
    let requests = BufReader::with_capacity(BUFFER_BYTES, std::io::stdin().lock());
    let answers = BufWriter::with_capacity(BUFFER_BYTES, std::io::stdout().lock());
    let mut wrong: u64 = 0;
    trial::run(&policy, counters, requests, answers, |line, why| {
        wrong = wrong.saturating_add(1);
        if wrong <= trial::WRONG_SHOWN_MAX {
            complain(&format!("line {line}: {why}"), FAILED);
        }
    })?;
    Ok(if wrong == 0 {
        OK
    } else {
        let what =
            format!("{wrong} line(s) were no requests; see `fedicensus admission try --help`");
        complain(&what, FAILED)
    })
}

fn check(file: &Path, json: bool) -> anyhow::Result<u8> {
    let read = if file == Path::new(DASH) {
        policy::read_rules_from_stdin()
    } else {
        policy::read_rules(file)
    };
    match read {
        Ok(rules) if json => {
            say(&serde_json::to_string(&Parsed::from(&rules))?)?;
            Ok(OK)
        }
        Ok(rules) => {
            say(&format!(
                "{}: well-formed: {}",
                file.display(),
                in_words(&rules)
            ))?;
            Ok(OK)
        }
        Err(error) if json => {
            let wrong = match &error {
                PolicyError::Rules(error) => Wrong::from(error),
                other => Wrong::file(other),
            };
            say(&serde_json::to_string(&wrong)?)?;
            Ok(FAILED)
        }
        Err(PolicyError::Rules(error)) => Ok(tell(&error)),
        Err(error) => Err(error.into()),
    }
}

/// Prints what is wrong with a rules file on stderr, one line each; the last line says that the
/// file can't be used.
fn tell(error: &RulesError) -> u8 {
    match error {
        RulesError::Malformed { path, lines } => {
            for line in lines {
                complain(&format!("{}:{line}", path.display()), FAILED);
            }
            let number = lines.len();
            let what = format!(
                "admission rules {}: {number} line(s) to correct",
                path.display()
            );
            complain(&what, FAILED)
        }
        RulesError::TooLarge { .. } | RulesError::TooManyLines { .. } => {
            complain(&error.to_string(), FAILED)
        }
    }
}

fn in_words(rules: &Rules) -> String {
    let public = match &rules.public {
        None => "no public line".to_owned(),
        Some(public) if public.limit == Limit::ZERO => "public line off".to_owned(),
        Some(public) => {
            let list = match &public.list {
                ListPlace::Default => "the census's own public suffixes".to_owned(),
                ListPlace::File(path) => format!("the public suffixes in {}", path.display()),
            };
            format!("{} a registered domain and day by {list}", public.limit)
        }
    };
    format!(
        "{} key(s), {} domain(s), {public}",
        rules.keys.len(),
        rules.domains.len()
    )
}

fn name(
    names: Vec<String>,
    suffixes: Option<&Path>,
    json: bool,
    config: &Config,
) -> anyhow::Result<u8> {
    let suffixes = match suffixes {
        Some(path) => policy::excerpt(path).context("--suffixes")?,
        None => config.suffixes()?,
    };
    let shown: Vec<_> = names
        .into_iter()
        .map(|name| NameView::new(name, &suffixes))
        .collect();
    if json {
        say(&serde_json::to_string(&shown)?)?;
    }
    let mut code = OK;
    for shown in &shown {
        match &shown.name {
            None => {
                let input = escaped(shown.input.as_bytes(), TEXT_BYTES_MAX);
                let why = shown.reason.as_deref().unwrap_or_default();
                code = complain(&format!("\"{input}\": {why}"), FAILED);
            }
            Some(name) if !json => {
                let suffix = shown.public_suffix.as_deref().unwrap_or("-");
                let registered = shown.registered_domain.as_deref().unwrap_or("-");
                say(&format!("{name}\t{suffix}\t{registered}"))?;
            }
            Some(_) => {}
        }
    }
    Ok(code)
}

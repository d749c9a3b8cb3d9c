//! Commands about moderators' accounts. They open the console's file, even while the console uses
//! it.

use std::io::{BufRead as _, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use accounts::{Accounts, Enrolled, Password};
use anyhow::{Context as _, bail};
use census::time::{Timestamp, rfc3339};
use clap::Subcommand;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use serde::Serialize;

use super::{FAILED, OK, Output, complain, put, say};
use crate::config::Config;
use crate::ground::clock::{Clock as _, SystemClock};
use crate::roles::{serve_alone, since_epoch};

/// Longest password that is read, in bytes. The limit for an account's password is lower.
const PASSWORD_BYTES_MAX: u64 = 4096;

#[derive(Debug, Subcommand)]
pub(super) enum Moderator {
    /// Add an account: asks for a password, and prints what the moderator needs, once
    Add {
        /// Its name: 1 to 64 of a-z, 0-9, '-', '_' and '.'
        name: String,
    },
    /// List all accounts
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Give an account a new password, second factor and recovery codes, and end its sessions
    Reset {
        /// Its name
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// The file of accounts is stolen: all accounts, with drawn passwords, and the keys of
        /// cookies. The console must be stopped
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// Remove an account and end its sessions
    Remove {
        /// Its name
        name: String,
    },
    /// Show who is logged in, and bans and locks in force
    Logins {
        #[command(flatten)]
        output: Output,
    },
    /// End all sessions of a moderator, or of everybody
    LogOut {
        /// The moderator
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// Of everybody
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// Lift a ban or a lock
    Lift {
        /// Its id, as `moderator logins` shows it
        id: String,
    },
    /// Copy all accounts while they are in use, into one file, which holds secrets
    Backup {
        /// The new file; `-` for standard output
        file: PathBuf,
    },
}

#[derive(Debug, Serialize)]
struct View {
    name: String,
    created_at: String,
    recovery_codes: u32,
    sessions: u32,
}

pub(super) fn obey(command: &Moderator, config: &Config) -> anyhow::Result<u8> {
    let path = &config.console_settings.accounts;
    // The console reads its keys once.
    let _serving = match command {
        Moderator::Reset { name: None, .. } => Some(serve_alone("moderator reset --all", path)?),
        _ => None,
    };
    let mut accounts = Accounts::open(path, &mut rand::rng())?;
    match command {
        Moderator::Add { name } => {
            let password = ask_password()?;
            let now = since_epoch(SystemClock.now());
            let enrolled = accounts.add(name, &password, now, &mut rand::rng())?;
            tell(name, &enrolled)?;
        }
        Moderator::Reset { name: None, .. } => reset_all(&mut accounts)?,
        Moderator::Reset {
            name: Some(name), ..
        } => {
            let password = ask_password()?;
            let enrolled = accounts.reset(name, &password, &mut rand::rng())?;
            tell(name, &enrolled)?;
        }
        Moderator::Remove { name } => {
            accounts.remove(name)?;
            say(&format!("{name}: removed, and its sessions ended"))?;
        }
        Moderator::List { output } => list(&accounts, output.json)?,
        Moderator::Logins { output } => logins(&mut accounts, output.json)?,
        Moderator::LogOut { name, .. } => {
            let ended = accounts.log_all_out(name.as_deref())?;
            say(&format!("{ended} sessions ended"))?;
        }
        Moderator::Lift { id } => {
            if !accounts.lift(id)? {
                let why = format!("no ban or lock has the id {id:?}: `moderator logins` shows all");
                return Ok(complain(&why, FAILED));
            }
            say("lifted")?;
        }
        Moderator::Backup { file } => backup(&accounts, path, file)?,
    }
    Ok(OK)
}

fn reset_all(accounts: &mut Accounts) -> anyhow::Result<()> {
    let renewed = accounts.renew(&mut rand::rng())?;
    for (name, password, enrolled) in &renewed {
        say(&format!("{name}: password {password}"))?;
        tell(name, enrolled)?;
    }
    say(&format!(
        "{} accounts have new passwords, second factors and recovery codes; all sessions ended, and known browsers, bans and locks are forgotten; start the console now",
        renewed.len()
    ))
}

fn list(accounts: &Accounts, json: bool) -> anyhow::Result<()> {
    let shown: Vec<_> = accounts
        .moderators()?
        .into_iter()
        .map(|moderator| View {
            created_at: moment(moderator.created_at),
            name: moderator.name,
            recovery_codes: moderator.recovery_codes,
            sessions: moderator.sessions,
        })
        .collect();
    if json {
        return say(&serde_json::to_string(&shown)?);
    }
    for moderator in &shown {
        say(&format!(
            "{}: since {}, {} recovery codes left, {} sessions",
            moderator.name, moderator.created_at, moderator.recovery_codes, moderator.sessions
        ))?;
    }
    if shown.is_empty() {
        say("no moderators: `fedicensus moderator add NAME` adds one")?;
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct SessionShown {
    moderator: String,
    created_at: String,
    used_at: String,
}

/// A ban or lock as JSON.
#[derive(Debug, Serialize)]
struct HoldAsJson {
    id: String,
    kind: String,
    moderator: Option<String>,
    until: String,
}

fn logins(accounts: &mut Accounts, json: bool) -> anyhow::Result<()> {
    let now = since_epoch(SystemClock.now());
    let sessions = accounts.sessions(now)?.into_iter();
    let sessions: Vec<_> = sessions
        .map(|session| SessionShown {
            moderator: session.moderator,
            created_at: moment(session.created_at),
            used_at: moment(session.used_at),
        })
        .collect();
    let holds: Vec<_> = accounts
        .holds(now)?
        .into_iter()
        .map(|hold| HoldAsJson {
            id: hold.id,
            kind: hold.kind,
            moderator: hold.moderator,
            until: moment(hold.until),
        })
        .collect();
    if json {
        let all = serde_json::json!({ "sessions": sessions, "holds": holds });
        return say(&all.to_string());
    }
    for session in &sessions {
        say(&format!(
            "{}: logged in since {}, last used {}",
            session.moderator, session.created_at, session.used_at
        ))?;
    }
    for hold in &holds {
        let whose = hold.moderator.as_deref().unwrap_or("no account");
        let what = match hold.kind.as_str() {
            "address" => "an address is banned".to_owned(),
            "device" => format!("a known browser of {whose} is locked"),
            _ => format!("a name ({whose}) is locked"),
        };
        say(&format!("{what} until {}: id {}", hold.until, hold.id))?;
    }
    if sessions.is_empty() && holds.is_empty() {
        say("nobody is logged in, and no ban or lock is in force")?;
    }
    Ok(())
}

fn moment(at: limiter::login::record::Timestamp) -> String {
    let ms = i64::try_from(at.0.as_millis()).unwrap_or(i64::MAX);
    rfc3339(Timestamp(ms))
}

/// Reads a password typed twice at a terminal, or one line of standard input.
fn ask_password() -> anyhow::Result<Password> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        let first = rpassword::prompt_password("Password: ").context("no password was read")?;
        let second = rpassword::prompt_password("Once more: ").context("no password was read")?;
        if first != second {
            bail!("the two passwords differ: nothing was changed");
        }
        return Ok(Password::new(first));
    }
    let mut line = String::new();
    let mut bounded = stdin.lock().take(PASSWORD_BYTES_MAX);
    bounded
        .read_line(&mut line)
        .context("no password was read from standard input")?;
    Ok(Password::new(
        line.trim_end_matches(['\r', '\n']).to_owned(),
    ))
}

/// Prints what the moderator needs. It can't be shown again.
fn tell(name: &str, enrolled: &Enrolled) -> anyhow::Result<()> {
    let codes = enrolled.recovery_codes.join("\n  ");
    if std::io::stdout().is_terminal() {
        say(&picture(&enrolled.secret.url(name))?)?;
    }
    say(&format!(
        "{name}: give the moderator this now, over a secure channel; it is not shown again\n\
         authenticator app, link   {}\n\
         authenticator app, key    {}\n\
         recovery codes, each for one login without the app:\n  {codes}",
        enrolled.secret.url(name),
        enrolled.secret.base32()
    ))
}

fn backup(accounts: &Accounts, path: &Path, file: &Path) -> anyhow::Result<()> {
    if file != Path::new("-") {
        accounts.copy_to(file)?;
        return say(&format!(
            "copied to {}: it holds secrets, so keep it as safe as the accounts themselves",
            file.display()
        ));
    }
    if std::io::stdout().is_terminal() {
        bail!("a copy is binary and has secrets: name a file, or redirect it to one");
    }
    // Next to the accounts: the container can write nowhere else.
    let copy = path.with_extension("copy");
    std::fs::remove_file(&copy).ok();
    accounts.copy_to(&copy)?;
    let read = std::fs::read(&copy);
    std::fs::remove_file(&copy).ok();
    put(&read.with_context(|| copy.display().to_string())?)
}

/// A link as a QR code, black on white whatever the terminal's colours are: some apps read no
/// other.
fn picture(link: &str) -> anyhow::Result<String> {
    let code = QrCode::with_error_correction_level(link, EcLevel::L)?;
    let picture = code.render::<Dense1x2>().build();
    let lines = picture.lines();
    let lines = lines.map(|line| format!("\x1b[30;107m{line}\x1b[0m"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_link_fits_into_a_terminal() {
        // A name of 64 characters, a key of 32.
        let picture = picture(&"a".repeat(160)).unwrap();
        let marks = "\x1b[30;107m\x1b[0m".len();
        let columns = picture.lines().map(|line| line.chars().count() - marks);
        assert!(columns.max() <= Some(80), "{picture}");
        assert!((20..=40).contains(&picture.lines().count()), "{picture}");
    }
}

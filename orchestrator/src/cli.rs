//! The command line: every command, its settings and its exit code.
//!
//! Exit codes: 0 success; 1 failure, and the last line on stderr says what failed, where, and what
//! to do; 2 wrong usage or an unusable setting; 3 a part is missing or unhealthy.

mod admission;
mod ask;
mod copies;
mod db;
mod decisions;
mod groups;
mod help;
mod key;
mod moderator;
mod show;
mod sources;
mod token;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::push::process::Node;
use anyhow::Context as _;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use protocol::Host;
use protocol::egress::Way;

use self::token::TokenCommand;
use crate::admit::gate::GateError;
use crate::admit::policy::OwnListError;
use crate::config::{Config, ConfigError, SETTINGS, Values, flag_name, heed_environment};
use crate::discover::walks;
use crate::ground::clock::Random;
use crate::roles;
use crate::serve::control::{By, Request};

/// The settings file if none is named.
const DEFAULT_FILE: &str = "/etc/fedicensus.toml";

const OK: u8 = 0;
const FAILED: u8 = 1;
const USAGE: u8 = 2;
/// A part is missing or unhealthy.
const UNAVAILABLE: u8 = 3;

#[derive(Debug, Parser)]
#[command(name = "fedicensus", version, about = "A self-hosted census of the Fediverse", long_about = None, after_help = AFTER_HELP)]
struct Cli {
    /// Settings file [default: /etc/fedicensus.toml when it is there]
    #[arg(long, global = true, env = "FEDICENSUS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

/// Below the help of commands that show no settings.
const SETTINGS_HELP: &str =
    "Settings are flags of every command: `fedicensus settings` lists them.";

const AFTER_HELP: &str = "Every setting is a flag, an environment variable and a key of the settings file: `fedicensus settings` lists them.\n\
Exit codes: 0 done, 1 failed, 2 wrong usage or setting, 3 a part is missing or unhealthy.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon: schedule, database, list
    Run,
    /// Run the launcher, the only user of the engine's socket
    Launcher,
    /// Run the gateway, a check's only way out
    Gateway,
    /// Run the gateway of a second way out, which asks the first one for its turns
    SecondGateway,
    /// Run the intake: submissions and opt-outs over HTTP, behind a web server
    Intake,
    /// Run the console: moderators' pages behind a login, behind a web server
    Console,
    /// Run the push service: Web Push, and notifications of changes, behind a web server
    Push {
        /// One of its two nodes instead of the whole service in one process
        node: Option<PushNode>,
    },
    /// Add, list, reset and remove moderators' accounts in the console
    #[command(subcommand)]
    Moderator(moderator::Moderator),
    /// Check one host and show each step
    Check {
        /// The host
        #[arg(value_parser = parse_host)]
        host: Host,
        #[command(flatten)]
        output: Output,
    },
    /// Add hosts; new ones are due at once
    Add {
        /// The hosts
        #[arg(required = true)]
        hosts: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Add a list of hosts: one name a line, or a JSON array
    Import {
        /// The file; `-` for standard input
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Show hosts by state, due and running checks, the last publication, the parts and outages.
    /// Exits with 3 if a part is missing
    Status {
        /// List all hosts with their states and last verdicts instead
        #[arg(long)]
        hosts: bool,
        /// With --hosts: only hosts in this state, such as `up`
        #[arg(long, requires = "hosts")]
        state: Option<String>,
        /// With --hosts: only hosts with this software, such as `mastodon`
        #[arg(long, requires = "hosts")]
        software: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Say why hosts are listed or not
    Explain {
        /// The hosts; `-` stands for names from standard input, one a line
        #[arg(required = true)]
        hosts: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Compare the published list with another one, with reasons for hosts that only it has
    Compare {
        /// The other list: a file of one name a line or a JSON array, `-` for standard input, or
        /// the URL of a source, which the daemon reads now
        #[arg(value_name = "FILE|URL")]
        list: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Walk through a host's public conversations now, and show the new hosts that they name.
    /// Hosts that opted out, and those walked within a week, are skipped
    Discover {
        /// The host
        #[arg(value_parser = parse_host)]
        host: Host,
    },
    /// Opt a host out for its owner, or take that back
    OptOut {
        /// The host
        #[arg(value_parser = parse_host)]
        host: Host,
        /// Who asks. Only the same side can take it back
        #[arg(long, value_enum, default_value = "owner")]
        by: By,
        /// Take it back
        #[arg(long)]
        undo: bool,
        /// Why, for the log of moderators' decisions
        #[arg(long)]
        reason: Option<String>,
    },
    /// Publish the list now
    Dump {
        /// Even if it has less than 70 % of the last full list's names
        #[arg(long)]
        force: bool,
    },
    /// Copy the database into one file while it is in use
    Backup {
        /// The new file; `-` for standard output, which must not be a terminal (exec -T)
        file: PathBuf,
        /// Copy the push service's database instead
        #[arg(long)]
        push: bool,
    },
    /// Replace the database with a backup or an upgrade's copy; the daemon must be stopped
    Restore {
        /// The file; `-` for standard input
        file: PathBuf,
        /// The push service's database instead; the push service must be stopped
        #[arg(long)]
        push: bool,
    },
    /// Check the database
    #[command(subcommand)]
    Db(db::Db),
    /// Try the rules on new names, and show how they compare names; uses no database
    #[command(subcommand)]
    Admission(admission::Admission),
    /// List groups (all hosts below one registered domain) and decide about held ones
    #[command(subcommand)]
    Groups(groups::Groups),
    /// List names that wait for room, and why
    Waiting {
        #[command(flatten)]
        output: Output,
    },
    /// Show the log of decisions about groups and hosts, and undo one
    #[command(subcommand)]
    Decisions(decisions::Decisions),
    /// Show the public lists that are read on a schedule, and resume a paused one
    #[command(subcommand)]
    Sources(sources::Sources),
    /// Try the back-off of walks on a file of answers; uses no database
    #[command(subcommand)]
    Backoff(Backoff),
    /// Show the key that signs the published files, and make a new one
    #[command(subcommand)]
    Key(key::Key),
    /// Report whether a part works, for health checks
    Health {
        /// The part
        #[arg(value_enum, default_value = "run")]
        part: Part,
    },
    /// Make and verify submit tokens and their keys
    Token {
        #[command(subcommand)]
        command: Box<TokenCommand>,
    },
    /// List all settings with their values and where they come from
    Settings {
        /// Print the documentation's page instead
        #[arg(long)]
        markdown: bool,
    },
    /// Print the list of system calls that a check may make, for Podman (setting `seccomp_path`)
    SeccompProfile,
    /// Print completions for a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
enum Backoff {
    /// For each answer, print whether the host was free then, and when it is free after it.
    /// Standard input has a JSON object a line: t (seconds), host, outcome (ok, not-found, access,
    /// unresponsive or not-json) and optionally `retry_after_s`
    Replay {
        /// Do not vary pauses randomly
        #[arg(long)]
        no_jitter: bool,
    },
}

#[derive(Debug, Clone, Copy, Args)]
struct Output {
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The daemon
    Run,
    /// The launcher and its engine
    Launcher,
    /// The gateway
    Gateway,
    /// The second gateway
    SecondGateway,
    /// The intake
    Intake,
    /// The console
    Console,
    /// The push service, or its node that holds connections
    Push,
    /// The push service's node that takes messages
    PushEndpoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PushNode {
    /// Holds clients' connections
    Connect,
    /// Takes applications' messages, and notifies of new lists
    Endpoint,
}

impl From<PushNode> for Node {
    fn from(node: PushNode) -> Self {
        match node {
            PushNode::Connect => Self::Connect,
            PushNode::Endpoint => Self::Endpoint,
        }
    }
}

/// A host as people paste it.
fn parse_host(text: &str) -> Result<Host, String> {
    Host::parse(protocol::pasted(text)).map_err(|error| error.to_string())
}

/// Parses the process's arguments and runs the command.
pub fn main() -> ExitCode {
    let matches = command().try_get_matches();
    let parsed = matches.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return ExitCode::from(shown(&error)),
    };
    ExitCode::from(settle_settings(&cli, &matches).map_or_else(
        |error| complain(&error.to_string(), USAGE),
        |(values, config)| dispatch(cli.command, &values, &config),
    ))
}

/// Prints clap's output: help, the version, or what is wrong with the usage.
fn shown(error: &clap::Error) -> u8 {
    let code = u8::try_from(error.exit_code()).unwrap_or(USAGE);
    match written(error.print()) {
        Err(error) if code == OK => complain(&told_once(&error), FAILED),
        // After wrong usage, the exit code is enough.
        Ok(()) | Err(_) => code,
    }
}

/// Commands whose `--help` shows the settings. All others take them too.
const ROLES: &str = "run launcher gateway second-gateway intake console push";

/// The command with a flag for every setting, before and after each subcommand.
fn command() -> clap::Command {
    let command = Cli::command();
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{}\nOptions:\n{{options}}{{after-help}}",
        help::by_purpose(&command)
    );
    with_settings(command.help_template(template), false)
}

fn with_settings(command: clap::Command, shows_them: bool) -> clap::Command {
    let command = SETTINGS.iter().fold(command, |command, setting| {
        let flag = Arg::new(setting.key)
            .long(flag_name(setting.key))
            .value_name("VALUE")
            .help(setting.help)
            .help_heading("Settings")
            .hide_short_help(true)
            .hide(!shows_them);
        command.arg(flag)
    });
    let command = match (shows_them, command.get_after_help().is_some()) {
        (false, false) => command.after_help(SETTINGS_HELP),
        (_, _) => command,
    };
    command.mut_subcommands(|below| {
        let is_role = ROLES.split(' ').any(|role| role == below.get_name());
        with_settings(below, is_role)
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment is read here and nowhere else"
)]
fn settle_settings(cli: &Cli, matches: &ArgMatches) -> Result<(Values, Config), ConfigError> {
    let default_file = PathBuf::from(DEFAULT_FILE);
    let file = cli
        .config
        .clone()
        .or_else(|| default_file.exists().then_some(default_file));
    let mut levels = vec![matches];
    while let Some((_, below)) = levels.last().and_then(|level| level.subcommand()) {
        levels.push(below);
    }
    // The flag nearest to the end of the line counts.
    let flags = |key: &str| {
        let mut found = levels
            .iter()
            .rev()
            .filter_map(|level| level.try_get_one::<String>(key).ok().flatten());
        found.next().cloned()
    };
    let values = Values::gather(flags, |name| std::env::var(name).ok(), file.as_deref())?;
    let config = Config::new(&values)?;
    Ok((values, config))
}

fn dispatch(command: Command, values: &Values, config: &Config) -> u8 {
    use Command::{Console, Gateway, Intake, Launcher, Push, Run, SecondGateway};
    // Other commands work, so that an operator can look.
    let is_role = matches!(
        command,
        Run | Launcher | Gateway | SecondGateway | Intake | Console | Push { .. }
    );
    let heeded = start_log(values).and_then(|()| if is_role { heed_environment() } else { Ok(()) });
    if let Err(error) = heeded {
        return complain(&error.to_string(), USAGE);
    }
    let outcome = match command {
        Command::Completions { shell } => {
            put(&help::completions(Cli::command(), shell)).map(|()| OK)
        }
        Command::Settings { markdown } => show::settings(values, markdown),
        Command::SeccompProfile => show::seccomp_profile(),
        Command::Token { command } => token::run(*command),
        Command::Admission(command) => admission::obey(command, config),
        Command::Backoff(Backoff::Replay { no_jitter }) => replay(!no_jitter),
        other => runtime().and_then(|runtime| runtime.block_on(obey(other, config))),
    };
    outcome.unwrap_or_else(|error| {
        // A file that a setting names is part of the settings.
        let is_usage = error.is::<ConfigError>()
            || error.is::<OwnListError>()
            || matches!(error.downcast_ref(), Some(GateError::Terms(_)));
        complain(&told_once(&error), if is_usage { USAGE } else { FAILED })
    })
}

async fn obey(command: Command, config: &Config) -> anyhow::Result<u8> {
    match command {
        Command::Run => Box::pin(roles::run(config)).await.map(|()| OK),
        Command::Launcher => roles::launcher(config).await.map(|()| OK),
        Command::Gateway => roles::gateway(config, Way::First).await.map(|()| OK),
        Command::SecondGateway => roles::gateway(config, Way::Second).await.map(|()| OK),
        Command::Intake => roles::intake(config).await.map(|()| OK),
        Command::Console => Box::pin(roles::console(config)).await.map(|()| OK),
        Command::Push { node } => roles::push(config, node.map_or(Node::Push, Node::from))
            .await
            .map(|()| OK),
        Command::Moderator(command) => moderator::obey(&command, config),
        Command::Check { host, output } => ask::check(config, host, output.json).await,
        Command::Add { hosts, output } => ask::add(config, hosts, output.json).await,
        Command::Import { file, output } => ask::import(config, &file, output.json).await,
        Command::Status {
            hosts: true,
            state,
            software,
            output,
        } => show::hosts::show(
            config,
            &show::hosts::Wanted { state, software },
            output.json,
        ),
        Command::Status { output, .. } => show::status(config, output.json).await,
        Command::Explain { hosts, output } => show::explain(config, hosts, output.json),
        Command::Compare { list, output } => show::compare(config, &list, output.json).await,
        Command::Discover { host } => ask::discover(config, host).await,
        Command::OptOut {
            host,
            by,
            undo,
            reason,
        } => {
            let request = Request::OptOut {
                host,
                by,
                undo,
                reason,
            };
            ask::either(config, request).await
        }
        Command::Dump { force } => ask::dump(config, force).await,
        Command::Backup { file, push: false } => copies::backup(config, &file),
        Command::Backup { file, push: true } => copies::backup_push(config, &file),
        Command::Restore { file, push: false } => copies::restore(config, &file),
        Command::Restore { file, push: true } => copies::restore_push(config, &file),
        Command::Db(command) => db::obey(&command, config),
        Command::Groups(command) => groups::obey(command, config).await,
        Command::Waiting { output } => show::waiting(config, output.json),
        Command::Decisions(command) => decisions::obey(command, config).await,
        Command::Sources(command) => sources::obey(command, config).await,
        Command::Key(command) => key::obey(&command, config),
        Command::Health { part } => show::health(config, part).await,
        Command::Admission(_)
        | Command::Backoff(_)
        | Command::Token { .. }
        | Command::Settings { .. }
        | Command::SeccompProfile
        | Command::Completions { .. } => Ok(OK),
    }
}

fn replay(has_jitter: bool) -> anyhow::Result<u8> {
    let random = Random::from_os();
    let jitter = || has_jitter.then(|| random.jitter());
    let out = std::io::BufWriter::new(std::io::stdout().lock());
    walks::replay::replay(std::io::stdin().lock(), out, jitter).map(|()| OK)
}

/// Two threads: the machine this is made for has two cores, and the daemon mostly waits.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?)
}

fn start_log(values: &Values) -> Result<(), ConfigError> {
    let filter = values.log()?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    if values.log_is_json()? {
        log.json().init();
    } else {
        log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .init();
    }
    Ok(())
}

fn complain(what: &str, code: u8) -> u8 {
    use std::io::Write as _;
    // The reader of stderr may be gone.
    writeln!(std::io::stderr(), "fedicensus: {what}").ok();
    code
}

/// An input file's name for messages; `-` is standard input.
fn input_name(file: &Path) -> String {
    match file.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => file.display().to_string(),
    }
}

/// The error with its causes, without repetitions: some errors include their cause's text, others
/// leave it to the caller.
fn told_once(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.contains(&cause) {
            told.push_str(": ");
            told.push_str(&cause);
        }
    }
    told
}

/// Writes a line to stdout; a reader that closed the pipe early is not an error.
fn say(text: &str) -> anyhow::Result<()> {
    put(format!("{text}\n").as_bytes())
}

/// Writes bytes to stdout as [`say`] does a line.
fn put(bytes: &[u8]) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut stdout = std::io::stdout();
    written(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// The result of a write to stdout; a closed pipe counts as success.
fn written(outcome: std::io::Result<()>) -> anyhow::Result<()> {
    match outcome {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("standard output can't be written"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once_whether_or_not_its_error_names_it() {
        let cause = || std::io::Error::other("no room");
        let check = |error: anyhow::Error, expect: &str| assert_eq!(told_once(&error), expect);
        check(cause().into(), "no room");
        check(
            anyhow::Error::new(cause()).context("a.db can't be written"),
            "a.db can't be written: no room",
        );
        check(
            anyhow::Error::new(cause()).context("a.db can't be written (no room)"),
            "a.db can't be written (no room)",
        );
        check(
            anyhow::Error::new(cause())
                .context("a.db can't be written (no room); free some")
                .context("no backup was made"),
            "no backup was made: a.db can't be written (no room); free some",
        );
    }

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn a_setting_is_a_flag_before_and_after_the_command() {
        for line in [
            "fedicensus --checks-max 7 run",
            "fedicensus run --checks-max 7",
            "fedicensus token key file --checks-max 7",
        ] {
            let matches = command().try_get_matches_from(line.split(' ')).unwrap();
            let cli = Cli::from_arg_matches(&matches).unwrap();
            let (_, config) = settle_settings(&cli, &matches).unwrap();
            assert_eq!(config.checks.most, 7, "{line}");
        }
    }
}

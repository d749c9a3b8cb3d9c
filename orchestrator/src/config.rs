//! Settings: merges flags, environment, file and defaults into one checked [`Config`].
//!
//! Rejects unknown keys, values out of bounds and invalid names. The message gives the key, the
//! value's origin and what to write instead.

mod derived;
mod intake;
mod push;
mod settings_file;
mod sockets;
mod table;
mod value;
mod variables;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::console::LogAddresses;
use admission::{Names, Reserved, Suffixes};
use census::time::Calendar;
use gateway::GatewayClient;
use gateway::net::ledger::GRANT_TIME_MAX;
use launcher::LauncherClient;
use protocol::Host;
use protocol::check_id::SECOND_FOLDER;
use site::facts::{Intake, Push, Reading};
use store::Writer;
use thiserror::Error;

use crate::admit::gate::NameGate;
use crate::admit::policy::{self, OwnListError, SuffixPlace};
use crate::check::services::{PEERS_EVERY, Services};
use crate::check::slot_queue::SlotQueue;
use crate::discover::lists::file::SourcesError;
use crate::discover::lists::{self, Source};
use crate::ground::clock::{Clock, Random};
use crate::publish::fixes::{self, FixesError};
use crate::publish::pages::About;
use crate::publish::{Imprint, Publisher};
use scheduler::slots::concurrency::Bounds;

use sockets::Sockets;
use table::LAB_PREFIX;
use value::{
    address_or_none, boolean, contact, hosts, label, licence, list, name, name_or_none, non_empty,
    one_of, path, path_or_none, resolvers, small, whole_path_or_none,
};

pub use table::{LAB_SETTINGS, SETTINGS, Setting, environment_name, flag_name, markdown};
pub use variables::heed_environment;

/// Container slots that the launcher has in addition to the orchestrator's. A check that violates
/// the protocol ends for the orchestrator before the launcher has killed its container.
const SPARE_PLACES: u64 = 2;

/// Moderators' accounts, in the console's data directory.
const ACCOUNTS_FILE: &str = "accounts.db";

/// A setting that both the daemon and the intake read.
const TEST_DOMAIN_KEY: &str = "lab.test_domain";

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Flag,
    Environment,
    File(PathBuf),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment => f.write_str("environment"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// All settings as texts, each with its origin.
#[derive(Debug, Clone)]
pub struct Values(BTreeMap<&'static str, (String, Origin)>);

/// An unusable setting, as one line: its key, its origin, the problem, and what to write.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("setting `{key}` ({origin}): `{value}` {problem}")]
    Value {
        key: &'static str,
        origin: Origin,
        value: String,
        problem: String,
    },
    #[error(
        "nothing here reads the environment variable {name}. Did you mean {nearest}? `fedicensus settings` lists all settings"
    )]
    Variable { name: String, nearest: String },
    #[error("settings file {}: {problem}", path.display())]
    File { path: PathBuf, problem: String },
    #[error("setting `sources`: {0}")]
    Sources(#[from] SourcesError),
    #[error(transparent)]
    Fixes(#[from] FixesError),
    #[error(
        "setting `push_address` is missing: all endpoints begin with the address at which browsers reach the push service. Set FEDICENSUS_PUSH_ADDRESS, such as `https://push.example`"
    )]
    NoPushAddress,
    #[error(
        "setting `contact` is missing: every server that we visit must be able to reach the operator. Set FEDICENSUS_CONTACT to a URL or a mail address"
    )]
    NoContact,
}

/// The checked settings of all roles.
#[derive(Debug, Clone)]
pub struct Config {
    /// Hosts that the census starts with.
    pub seeds: Vec<Host>,
    /// Hosts known to be alive.
    pub canaries: Vec<Host>,
    /// Bounds of the number of concurrent containers.
    pub checks: Bounds,
    /// Maximum number of hosts being opened or checked at once.
    pub opens_max: u32,
    /// Hosts opened per second, at least, while any are due.
    pub starts_per_second: u32,
    pub data_dir: PathBuf,
    /// Directory of the published files.
    pub public_dir: PathBuf,
    /// The census's name, operator and licence in the published files.
    pub imprint: Imprint,
    pub gateway_socket: PathBuf,
    /// The second gateway's socket; `None` if there is one way out.
    pub second_gateway: Option<PathBuf>,
    pub launcher_socket: PathBuf,
    /// The calendar from which all intervals derive.
    pub calendar: Calendar,
    /// The rule for names that may enter.
    pub reserved: Reserved,
    /// Path of the list of public suffixes.
    pub suffix_list: SuffixPlace,
    /// File that lists the public lists to read.
    pub sources: Option<PathBuf>,
    pub admission: policy::Files,
    /// A group below one registered domain with more hosts than this is held, unless it is a
    /// hoster's.
    pub group_threshold: u32,
    /// Maximum walks through hosts' public conversations per hour; 0: none.
    pub walks_per_hour: u32,
    /// The engine's API socket, for the launcher role.
    pub engine_socket: PathBuf,
    pub launcher_settings: launcher::Settings,
    pub gateway_settings: gateway::Settings,
    pub second_gateway_settings: gateway::Settings,
    /// The daemon's socket for the intake; `None` if it is closed.
    pub intake_socket: Option<PathBuf>,
    /// The daemon's socket for Prometheus; `None` if it is closed.
    pub metrics_socket: Option<PathBuf>,
    pub intake_settings: ::intake::Settings,
    /// The daemon's socket for the console; `None` if it is closed.
    pub console_socket: Option<PathBuf>,
    pub console_settings: ::console::Settings,
    /// The daemon's socket for the push service; `None` if it is closed.
    pub push_socket: Option<PathBuf>,
    /// Other push services. A name includes all names below it.
    pub push_services: Vec<Host>,
    pub push_settings: ::push::process::Settings,
}

impl Values {
    /// Merges the values. `flags` and `environment` hold the given values by key; `file` is read if
    /// it is given. Only the file can set the lab's settings.
    ///
    /// # Errors
    /// The file can't be read, is not TOML with plain values, or holds an unknown key.
    pub fn gather(
        flags: impl Fn(&str) -> Option<String>,
        environment: impl Fn(&str) -> Option<String>,
        file: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let written = file
            .map(settings_file::read)
            .transpose()?
            .unwrap_or_default();
        let mut values = BTreeMap::new();
        for setting in table::all() {
            let is_lab = setting.key.starts_with(LAB_PREFIX);
            let value = if !is_lab && let Some(value) = flags(setting.key) {
                (value, Origin::Flag)
            } else if !is_lab && let Some(value) = environment(&environment_name(setting.key)) {
                (value, Origin::Environment)
            } else if let (Some(value), Some(path)) = (written.get(setting.key), file) {
                (value.clone(), Origin::File(path.to_owned()))
            } else {
                (setting.default.to_owned(), Origin::Default)
            };
            values.insert(setting.key, value);
        }
        Ok(Self(values))
    }

    /// Key, value and origin of each setting, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str, &Origin)> {
        table::all().filter_map(|setting| {
            self.0
                .get(setting.key)
                .map(|(value, origin)| (setting.key, value.as_str(), origin))
        })
    }

    fn parse<T>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        let (value, origin) = self
            .0
            .get(key)
            .cloned()
            .unwrap_or((String::new(), Origin::Default));
        parse(value.trim()).map_err(|problem| ConfigError::Value {
            key,
            origin,
            value,
            problem,
        })
    }

    /// The filter of the log.
    ///
    /// # Errors
    /// It is neither a level nor a list of `module=level` parts. A mistyped level would otherwise
    /// silence everything.
    pub fn log(&self) -> Result<tracing_subscriber::EnvFilter, ConfigError> {
        self.parse("log", |text| {
            let known = |part: &str| part.rsplit('=').next().unwrap_or(part).parse::<tracing_subscriber::filter::LevelFilter>().is_ok();
            if !list(text).all(known) {
                return Err("must be error, warn, info, debug or trace, or a filter such as `info,gateway=debug`".to_owned());
            }
            tracing_subscriber::EnvFilter::try_new(text).map_err(|error| error.to_string())
        })
    }

    pub fn log_is_json(&self) -> Result<bool, ConfigError> {
        self.parse("log_format", |text| {
            one_of(text, &[("text", false), ("json", true)])
        })
    }
}

impl Config {
    /// Checks all values.
    ///
    /// # Errors
    /// Returns the first value that is out of bounds or of the wrong type.
    pub fn new(values: &Values) -> Result<Self, ConfigError> {
        let reserved = if values.parse("lab.reserved_suffixes", boolean)? {
            Reserved::AllowInLab
        } else {
            Reserved::Refuse
        };
        let sockets = Sockets::new(values)?;
        let data_dir: PathBuf = values.parse("data_dir", path)?;
        let console_settings = console_settings(values, &sockets, &data_dir)?;
        let public_dir: PathBuf = values.parse("public_dir", path)?;
        let push_settings = push::settings(values, &sockets, &data_dir, &public_dir)?;
        let suffix_list = SuffixPlace(data_dir.join(lists::suffix_list::FILE_NAME));
        let checks = derived::checks(values)?;
        let opens_max = derived::opens_max(values)?;
        Ok(Self {
            seeds: values.parse("seeds", hosts)?,
            canaries: values.parse("canaries", hosts)?,
            checks,
            opens_max,
            starts_per_second: values
                .parse("lab.starts_per_second", |text| small(text, 1, 1000))?,
            data_dir,
            public_dir,
            imprint: imprint(values)?,
            gateway_socket: sockets.gateway(),
            second_gateway: values.parse("second_gateway", path_or_none)?,
            launcher_socket: sockets.launcher(),
            calendar: Calendar {
                divisor: values.parse("lab.interval_divisor", |text| small(text, 1, 10_000_000))?,
            },
            admission: admission_files(values, reserved, suffix_list.clone())?,
            reserved,
            suffix_list,
            sources: values.parse("sources", path_or_none)?,
            group_threshold: values.parse("group_threshold", |text| small(text, 1, 1_000_000))?,
            walks_per_hour: values.parse("walks_per_hour", |text| small(text, 0, 60))?,
            engine_socket: values.parse("engine_socket", path)?,
            launcher_settings: launcher_settings(values, &sockets)?,
            gateway_settings: gateway_settings(values, &sockets)?,
            second_gateway_settings: second_gateway_settings(values, &sockets)?,
            intake_socket: sockets.intake_if_opened(),
            metrics_socket: sockets.metrics_if_opened(),
            intake_settings: intake::settings(values, &sockets)?,
            console_socket: sockets.console_if_opened(),
            console_settings,
            push_socket: sockets.push_if_opened(),
            push_services: values.parse("push_services", hosts)?,
            push_settings,
        })
    }

    /// The services of a check. Their sockets are opened when they are used.
    pub fn services(
        &self,
        writer: Writer,
        gate: NameGate,
        clock: Arc<dyn Clock>,
        random: Random,
        slots: SlotQueue,
    ) -> Services {
        Services {
            gateway: GatewayClient::new(self.gateway_socket.clone()),
            second_gateway: self.second_gateway.clone().map(GatewayClient::new),
            launcher: LauncherClient::socket(self.launcher_socket.clone()),
            writer,
            gate,
            clock,
            random: Arc::new(random),
            calendar: self.calendar,
            slots,
            contact: self.imprint.contact.as_str().into(),
            seeds: self.seeds.as_slice().into(),
            peers_every: PEERS_EVERY,
            meters: Arc::default(),
        }
    }

    /// The rule for names. Reads the suffix list's file, if there is one.
    pub fn names(&self) -> Result<Names, OwnListError> {
        Ok(Names {
            suffixes: self.suffixes()?,
            reserved: self.reserved,
        })
    }

    /// The census's own list of public suffixes. Reads its file, if there is one.
    pub fn suffixes(&self) -> Result<Suffixes, OwnListError> {
        self.suffix_list.list()
    }

    /// The public lists to read. Reads their file, if one is set.
    pub fn sources(&self) -> Result<Vec<Source>, ConfigError> {
        let path = self.sources.as_deref();
        Ok(path.map(lists::file::read).transpose()?.unwrap_or_default())
    }

    /// Fails if there is no contact outside the lab.
    pub fn require_contact(&self) -> Result<(), ConfigError> {
        match self.reserved {
            Reserved::Refuse if self.imprint.contact.is_empty() => Err(ConfigError::NoContact),
            Reserved::Refuse | Reserved::AllowInLab => Ok(()),
        }
    }

    /// Fails if the push service has no address.
    pub fn require_push_address(&self) -> Result<(), ConfigError> {
        match self.push_settings.origin.is_empty() {
            true => Err(ConfigError::NoPushAddress),
            false => Ok(()),
        }
    }

    pub fn database(&self) -> PathBuf {
        self.data_dir.join("census.db")
    }

    /// The directories, the imprint and the fixes for publishing. Reads the file of fixes, if there
    /// is one.
    pub fn publisher(&self) -> Result<Publisher, ConfigError> {
        Ok(Publisher {
            disk: files::Disk::SYSTEM,
            public_dir: self.public_dir.clone(),
            data_dir: self.data_dir.clone(),
            imprint: self.imprint.clone(),
            fixes: fixes::read(&self.data_dir)?,
        })
    }

    /// The facts about the census for the pages.
    pub fn about(&self) -> About {
        About {
            imprint: self.imprint.clone(),
            intake: match self.intake_socket {
                Some(_) => Intake::Open,
                None => Intake::Closed,
            },
            push: match self.push_socket {
                Some(_) => Push::Open,
                None => Push::Closed,
            },
            reading: match self.walks_per_hour {
                0 => Reading::Instances,
                _ => Reading::Conversations,
            },
            trouble: None,
        }
    }

    /// Path of the daemon's control socket.
    pub fn control_socket(&self) -> PathBuf {
        self.data_dir.join("control.sock")
    }
}

fn imprint(values: &Values) -> Result<Imprint, ConfigError> {
    Ok(Imprint {
        title: values.parse("site_title", name)?,
        operator: values.parse("operator_name", name_or_none)?,
        contact: values.parse("contact", contact)?,
        address: values.parse("public_address", address_or_none)?,
        licence: values.parse("data_licence", licence)?,
    })
}

fn admission_files(
    values: &Values,
    reserved: Reserved,
    suffix_list: SuffixPlace,
) -> Result<policy::Files, ConfigError> {
    Ok(policy::Files {
        rules: values.parse("admission_rules", path_or_none)?,
        deny: values.parse("deny_list", path_or_none)?,
        allow: values.parse("allow_list", path_or_none)?,
        hosters: values.parse("hosters", path_or_none)?,
        suffix_list,
        reserved,
        limits: derived::admission_limits(values)?,
        test_domain: if values.parse(TEST_DOMAIN_KEY, boolean)? {
            admission::TestDomain::Allow
        } else {
            admission::TestDomain::Refuse
        },
    })
}

fn launcher_settings(
    values: &Values,
    sockets: &Sockets,
) -> Result<launcher::Settings, ConfigError> {
    let checks_max = u64::from(derived::checks(values)?.most);
    let volume = values.parse("egress_volume", |text| Ok(text.to_owned()))?;
    Ok(launcher::Settings {
        socket: sockets.launcher(),
        image: values.parse("checker_image", |text| non_empty(text).map(str::to_owned))?,
        egress: if volume.is_empty() {
            launcher::EgressSource::Directory(sockets.egress())
        } else {
            launcher::EgressSource::Volume(volume)
        },
        // Only the gateway needs the file's path.
        extra_roots: values.parse("lab.extra_ca", path_or_none)?.is_some(),
        checks_max: usize::try_from(checks_max.saturating_add(SPARE_PLACES)).unwrap_or(usize::MAX),
        instance: values.parse("instance", label)?,
        confinement: launcher::spec::Confinement {
            seccomp: Some(launcher::spec::SeccompProfile::ours(
                values.parse("seccomp_path", whole_path_or_none)?,
            )),
            ..launcher::spec::Confinement::default()
        },
        ..launcher::Settings::default()
    })
}

fn console_settings(
    values: &Values,
    sockets: &Sockets,
    data_dir: &Path,
) -> Result<::console::Settings, ConfigError> {
    let logs_addresses = values.parse("console_log_addresses", boolean)?;
    Ok(::console::Settings {
        title: values.parse("site_title", name)?,
        socket: sockets.console_http(),
        census_socket: sockets.console(),
        accounts: data_dir.join(ACCOUNTS_FILE),
        log_addresses: if logs_addresses {
            LogAddresses::Yes
        } else {
            LogAddresses::No
        },
        hashes: ::console::settings::ordinary_hashes(),
    })
}

fn gateway_settings(values: &Values, sockets: &Sockets) -> Result<gateway::Settings, ConfigError> {
    let defaults = gateway::Settings::default();
    let second = values.parse("second_gateway", path_or_none)?;
    Ok(gateway::Settings {
        control_socket: sockets.gateway(),
        text_socket: sockets.texts_if_opened(),
        egress_root: sockets.egress(),
        resolvers: values.parse("resolvers", resolvers)?,
        open_max: derived::gateway_opens_max(values)?,
        deny_addresses: values.parse("deny_addresses", |text| {
            list(text)
                .map(|item| {
                    item.parse()
                        .map_err(|error| format!("contains `{item}`: {error}"))
                })
                .collect()
        })?,
        paces: derived::paces(values)?,
        ledger_socket: second.map(|_second| sockets.ledger()),
        pace_divisor: values.parse("lab.pace_divisor", |text| small(text, 1, 10_000_000))?,
        names_file: values.parse("lab.names_file", path_or_none)?,
        allow_private: values.parse("lab.allow_private", boolean)?,
        extra_ca: values.parse("lab.extra_ca", path_or_none)?,
        ..defaults
    })
}

fn second_gateway_settings(
    values: &Values,
    sockets: &Sockets,
) -> Result<gateway::Settings, ConfigError> {
    let first = gateway_settings(values, sockets)?;
    Ok(gateway::Settings {
        control_socket: sockets.second_gateway(),
        text_socket: None,
        egress_root: first.egress_root.join(SECOND_FOLDER),
        // A host has as much time although each of four dials may wait for its turn.
        dial_timeout: first.dial_timeout + GRANT_TIME_MAX * 4,
        ledger_socket: None,
        other_ledger: Some(sockets.ledger()),
        ..first
    })
}

#[cfg(test)]
mod tests;

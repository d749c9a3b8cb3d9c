//! Reads admission rules and the list of public suffixes that they use from their files.
//!
//! The result is an [`admission::Policy`], and with the operator's lists and limits the [`Terms`]
//! that the gate applies. Files that can't be read or are too big, rules with an invalid line, and
//! invalid lists are rejected. It is all or nothing: after an error, what was in force stays in
//! force.

use std::path::{Path, PathBuf};

use admission::list;
use admission::rules::{self, RulesError};
use admission::{
    DomainList, Limit, Limits, Names, Policy, Reserved, Rules, SuffixError, Suffixes, Terms,
    TestDomain, suffixes,
};
use thiserror::Error;

use crate::ground::input_file::{self, DASH, FileError};

/// The files' names in errors.
const RULES: &str = "admission rules";
const LIST: &str = "public suffix list";
const DENY: &str = "deny-list";
const ALLOW: &str = "allow-list";
const HOSTERS: &str = "list of hosters";

/// The hosters without a file.
const KNOWN_HOSTERS: &str = include_str!("hosters.txt");

/// The rules without a file: twenty new names a day per registered domain. An operator with more
/// instances than that below one domain gets a rule by name, or waits a day for the rest.
const DEFAULT_RULES: &str = "public default 20\n";

/// The rules without a file in the lab, whose names have no public suffix and are below few
/// domains.
const LAB_RULES: &str = "public default 20\ndomain test 2147483647\ndomain example 2147483647\n";

/// The files and settings that the gate uses.
#[derive(Debug, Clone)]
pub struct Files {
    /// The rules; `None` for the built-in ones.
    pub rules: Option<PathBuf>,
    /// Names that are never admitted or checked.
    pub deny: Option<PathBuf>,
    /// Names that are admitted without room under the rules.
    pub allow: Option<PathBuf>,
    /// Domains that give names to many owners; `None` for the built-in list.
    pub hosters: Option<PathBuf>,
    /// The census's own public suffixes.
    pub suffix_list: SuffixPlace,
    /// Whether the lab's names are admitted.
    pub reserved: Reserved,
    /// Settings that are not in files.
    pub limits: Limits,
    /// Whether the rules decide on `test.sigsum.org` as on any domain.
    pub test_domain: TestDomain,
}

impl Default for Files {
    /// No files, the ordinary limits, and no name of the lab or of tests.
    fn default() -> Self {
        Self {
            rules: None,
            deny: None,
            allow: None,
            hosters: None,
            suffix_list: SuffixPlace::default(),
            reserved: Reserved::Refuse,
            limits: Limits::ORDINARY,
            test_domain: TestDomain::Refuse,
        }
    }
}

/// The file that replaces the built-in list of public suffixes if it exists. An operator or a
/// source puts it there.
#[derive(Debug, Clone, Default)]
pub struct SuffixPlace(pub PathBuf);

impl SuffixPlace {
    /// The list's file; `None` if the built-in list is in force. Blocks.
    pub fn path(&self) -> Option<&Path> {
        Some(self.0.as_path()).filter(|path| path.exists())
    }

    /// The list in force. Blocks.
    ///
    /// # Errors
    /// Its file can't be read, is too big, or is not the whole list.
    pub fn list(&self) -> Result<Suffixes, OwnListError> {
        let list = self.path().map_or(Ok(Suffixes::compiled()), whole_list);
        list.map_err(|error| OwnListError {
            path: self.0.clone(),
            error,
        })
    }
}

#[derive(Debug, Error)]
#[error(
    "{error}. Replace it (before the last update it was {}.old), or remove it to use the built-in list", path.display()
)]
pub struct OwnListError {
    path: PathBuf,
    #[source]
    error: ListError,
}

/// Every reason why the files can't be put in force, each at least one line.
#[derive(Debug, Error)]
#[error("{}", in_lines(.0))]
pub struct TermsError(Vec<PolicyError>);

impl Files {
    pub fn read(&self) -> Result<Terms, TermsError> {
        let (policy, deny, allow, hosters) = (
            self.policy(),
            self.deny_list(),
            domains(ALLOW, self.allow.as_deref()),
            self.hosters(),
        );
        match (policy, deny, allow, hosters) {
            (Ok(policy), Ok(deny), Ok(allow), Ok(hosters)) => Ok(Terms {
                policy,
                deny,
                allow,
                hosters,
                limits: self.limits,
            }),
            (policy, deny, allow, hosters) => {
                let errors = [policy.err(), deny.err(), allow.err(), hosters.err()];
                Err(TermsError(errors.into_iter().flatten().collect()))
            }
        }
    }

    /// The rule for names with the list of suffixes in force. Blocks.
    pub fn names(&self) -> Result<Names, OwnListError> {
        Ok(Names {
            suffixes: self.suffix_list.list()?,
            reserved: self.reserved,
        })
    }

    /// The deny-list only. Blocks.
    pub fn deny_list(&self) -> Result<DomainList, PolicyError> {
        domains(DENY, self.deny.as_deref())
    }

    fn hosters(&self) -> Result<DomainList, PolicyError> {
        match &self.hosters {
            Some(path) => domains(HOSTERS, Some(path)),
            None => Ok(DomainList::parse(
                KNOWN_HOSTERS.as_bytes(),
                Path::new("built-in"),
            )?),
        }
    }

    /// The terms in one line: `public default 20; …`.
    pub fn in_words(&self, terms: &Terms) -> String {
        let rules = self.rules.as_ref().map_or_else(
            || "built-in rules (20 a registered domain and day)".to_owned(),
            |path| {
                let rules = &terms.policy.rules;
                let public = rules.public.as_ref().map_or(0, |public| public.limit.get());
                format!(
                    "{}: {} keys, {} domains, {public} a registered domain and day",
                    path.display(),
                    rules.keys.len(),
                    rules.domains.len(),
                )
            },
        );
        let limits = &terms.limits;
        format!(
            "{rules}; {} a source, {} a shared suffix, {} in all; {} denied, {} allowed, {} hosters",
            limits.source,
            limits.shared_suffix,
            limits.total,
            terms.deny.len(),
            terms.allow.len(),
            terms.hosters.len()
        )
    }

    fn policy(&self) -> Result<Policy, PolicyError> {
        let rules = match (&self.rules, self.reserved) {
            (Some(path), _) => read_rules(path)?,
            (None, Reserved::Refuse) => built_in(DEFAULT_RULES)?,
            (None, Reserved::AllowInLab) => built_in(LAB_RULES)?,
        };
        with_suffixes(rules, None, self.test_domain, || self.suffix_list.list())
    }
}

fn built_in(rules: &str) -> Result<Rules, RulesError> {
    Rules::parse(rules.as_bytes(), Path::new("built-in"))
}

/// The names in the file at `path`; none without a path.
fn domains(what: &'static str, path: Option<&Path>) -> Result<DomainList, PolicyError> {
    let Some(path) = path else {
        return Ok(DomainList::default());
    };
    let bytes = input_file::read(what, path, rules::FILE_BYTES_MAX)?;
    Ok(DomainList::parse(&bytes, path)?)
}

fn in_lines(errors: &[PolicyError]) -> String {
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[derive(Debug, Error)]
pub enum PolicyError {
    /// The rules file can't be read.
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The list that the rules name, or that replaces it, is invalid.
    #[error(transparent)]
    Suffixes(#[from] ListError),
    /// A list of domains has invalid lines.
    #[error(transparent)]
    Domains(#[from] list::ListError),
    #[error(transparent)]
    OwnSuffixes(#[from] OwnListError),
}

/// Why a file is no list of public suffixes.
#[derive(Debug, Error)]
pub enum ListError {
    #[error(transparent)]
    File(#[from] FileError),
    /// Its content is not a list.
    #[error(transparent)]
    Content(#[from] SuffixError),
}

/// The rules in the file at `path`; the list that they name is not read.
///
/// # Errors
/// The file can't be read, is too big, or has a line that is not a rule.
pub fn read_rules(path: &Path) -> Result<Rules, PolicyError> {
    let bytes = input_file::read(RULES, path, rules::FILE_BYTES_MAX)?;
    Ok(Rules::parse(&bytes, path)?)
}

/// Like [`read_rules`], from standard input.
pub fn read_rules_from_stdin() -> Result<Rules, PolicyError> {
    let bytes = input_file::read_stdin(RULES, rules::FILE_BYTES_MAX)?;
    Ok(Rules::parse(&bytes, Path::new(DASH))?)
}

/// The list of public suffixes in the file at `path`. It replaces the compiled-in list, so it must
/// be the whole list.
///
/// # Errors
/// The file can't be read, is too big, or is not the whole list.
pub fn whole_list(path: &Path) -> Result<Suffixes, ListError> {
    let bytes = input_file::read(LIST, path, suffixes::FILE_BYTES_MAX)?;
    Ok(Suffixes::from_bytes(&bytes, path)?)
}

/// The list of public suffixes in the file at `path`, which may be an excerpt.
///
/// # Errors
/// The file can't be read, is too big, or has a line that is not a rule.
pub fn excerpt(path: &Path) -> Result<Suffixes, ListError> {
    let bytes = input_file::read(LIST, path, suffixes::FILE_BYTES_MAX)?;
    Ok(Suffixes::from_excerpt(&bytes, path)?)
}

/// The policy of these rules. The public suffixes come from the file at `suffixes` if there is one,
/// otherwise from the list that the `public` line names; `default` means `own`. No list is opened
/// if there is no such line or it is off.
pub fn with_suffixes(
    rules: Rules,
    suffixes: Option<&Path>,
    test_domain: TestDomain,
    own: impl FnOnce() -> Result<Suffixes, OwnListError>,
) -> Result<Policy, PolicyError> {
    let is_off = rules
        .public
        .as_ref()
        .is_none_or(|public| public.limit == Limit::ZERO);
    let suffixes = match suffixes.or(rules.list_file()) {
        // Never used.
        _ if is_off => Suffixes::compiled(),
        Some(path) => excerpt(path)?,
        None => own()?,
    };
    Ok(Policy {
        rules,
        suffixes,
        test_domain,
    })
}

#[cfg(test)]
mod tests;

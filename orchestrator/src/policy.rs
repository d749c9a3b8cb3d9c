//! Admission rules and the list of public suffixes that they go by, read from their files.
//!
//! In: paths. Out: an [`admission::Policy`]. Refused: files that can't be read or are too big, rules with any line that is none, and a list that is
//! none: all or nothing, so that what is in force stays in force.

use std::path::Path;

use admission::rules::{self, RulesError};
use admission::{Limit, Policy, Rules, SuffixError, Suffixes, TestDomain, suffixes};
use thiserror::Error;

use crate::config::ConfigError;
use crate::input_file::{self, DASH, FileError};

/// What the files are called in errors.
const RULES: &str = "admission rules";
const LIST: &str = "public suffix list";

/// Why there is no policy.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// The rules file can't be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It holds no rules.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The list that it names, or that was named instead, is none.
    #[error(transparent)]
    Suffixes(#[from] ListError),
    /// The census's own list is none.
    #[error(transparent)]
    OwnSuffixes(#[from] ConfigError),
}

/// Why a file is no list of public suffixes.
#[derive(Debug, Error)]
pub enum ListError {
    /// It can't be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It holds no list.
    #[error(transparent)]
    Content(#[from] SuffixError),
}

/// The rules in the file at `path`; the list that they name is not looked at.
///
/// # Errors
/// When the file can't be read, is too big, or has a line that is no rule.
pub fn read_rules(path: &Path) -> Result<Rules, PolicyError> {
    let bytes = input_file::read(RULES, path, rules::FILE_BYTES_MAX)?;
    Ok(Rules::parse(&bytes, path)?)
}

/// As [`read_rules`], from standard input.
///
/// # Errors
/// As [`read_rules`].
pub fn read_rules_from_stdin() -> Result<Rules, PolicyError> {
    let bytes = input_file::read_stdin(RULES, rules::FILE_BYTES_MAX)?;
    Ok(Rules::parse(&bytes, Path::new(DASH))?)
}

/// The list of public suffixes in the file at `path`, which must be the whole one: it replaces the compiled-in list.
///
/// # Errors
/// When the file can't be read, is too big, or is not the whole list.
pub fn whole_list(path: &Path) -> Result<Suffixes, ListError> {
    let bytes = input_file::read(LIST, path, suffixes::FILE_BYTES_MAX)?;
    Ok(Suffixes::from_bytes(&bytes, path)?)
}

/// The list of public suffixes in the file at `path`, which may be an excerpt.
///
/// # Errors
/// When the file can't be read, is too big, or has a line that is no rule.
pub fn excerpt(path: &Path) -> Result<Suffixes, ListError> {
    let bytes = input_file::read(LIST, path, suffixes::FILE_BYTES_MAX)?;
    Ok(Suffixes::from_excerpt(&bytes, path)?)
}

/// The policy of these rules. Their public suffixes are those in the file at `suffixes` when one is given, else those that the `public` line names,
/// `own` for `default`. No list is opened while there is no such line, or it is off.
///
/// # Errors
/// When the list can't be read or is none.
pub fn with_suffixes(
    rules: Rules,
    suffixes: Option<&Path>,
    test_domain: TestDomain,
    own: impl FnOnce() -> Result<Suffixes, ConfigError>,
) -> Result<Policy, PolicyError> {
    let is_off = rules
        .public
        .as_ref()
        .is_none_or(|public| public.limit == Limit::ZERO);
    let suffixes = match suffixes.or(rules.list_file()) {
        // Never asked.
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
mod tests {
    use admission::DomainName;

    use super::*;

    fn policy(rules: &str, suffixes: Option<&Path>) -> Result<Policy, PolicyError> {
        let rules = Rules::parse(rules.as_bytes(), Path::new("rules"))?;
        let own = || Ok(Suffixes::compiled());
        with_suffixes(rules, suffixes, TestDomain::Refuse, own)
    }

    #[test]
    fn the_list_is_the_one_given_else_the_one_named_else_our_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (named, given) = (
            file("named", "github.io\nio\n"),
            file("given", "b.github.io\n"),
        );
        let check = |rules: &str, suffixes: Option<&Path>, expect: &str| {
            let domain = DomainName::parse("x.a.b.github.io").unwrap();
            let policy = policy(rules, suffixes).unwrap();
            assert_eq!(policy.suffixes.registered_domain(&domain), Ok(expect));
        };
        let names = format!("public {} 1", named.display());
        check(&names, None, "b.github.io");
        check(&names, Some(&given), "a.b.github.io");
        check("public /nonexistent 1", Some(&given), "a.b.github.io");
        check("public default 1", None, "b.github.io");
        check("public default 1", Some(&given), "a.b.github.io");
    }

    #[test]
    fn a_list_that_is_not_needed_is_not_opened() {
        let missing = Path::new("/nonexistent/list.dat");
        for rules in ["", "public /nonexistent/list.dat 0", "public default 0"] {
            policy(rules, Some(missing)).unwrap();
            policy(rules, None).unwrap();
        }
        let error = policy("public /nonexistent/list.dat 1", None).unwrap_err();
        assert!(
            error.to_string().contains("/nonexistent/list.dat"),
            "{error}"
        );
        policy("public default 1", Some(missing)).unwrap_err();
    }

    #[test]
    fn files_over_their_bounds_are_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let of_length = |bytes: usize| std::fs::write(file.path(), vec![b'\n'; bytes]).unwrap();
        of_length(rules::FILE_BYTES_MAX + 1);
        let error = read_rules(file.path()).unwrap_err();
        assert!(
            matches!(error, PolicyError::Rules(RulesError::TooLarge { .. })),
            "{error}"
        );
        of_length(suffixes::FILE_BYTES_MAX + 1);
        for read in [whole_list, excerpt] {
            let error = read(file.path()).unwrap_err();
            let ListError::Content(SuffixError::TooLarge { path }) = error else {
                panic!("{error}");
            };
            assert_eq!(path, file.path());
        }
    }

    #[test]
    fn what_is_no_file_is_named() {
        let error = read_rules(Path::new("/")).unwrap_err().to_string();
        assert_eq!(
            error,
            "admission rules /: is not a regular file; name a file"
        );
        for read in [whole_list, excerpt] {
            let error = read(Path::new("/")).unwrap_err().to_string();
            assert_eq!(
                error,
                "public suffix list /: is not a regular file; name a file"
            );
        }
    }
}

//! Judges a new list of public suffixes by the one in force, and puts it in force.
//!
//! The new file is always whole, and the former one is kept next to it. A list is rejected if it is
//! incomplete (its marks, its least number of rules: `admission::Suffixes`). It is also rejected if
//! one of its sections shrank by more than a tenth. Names below a missing suffix would count as one
//! owner's, and be held back or admitted by the thousand.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use admission::{SuffixError, Suffixes};
use files::{Disk, Mode};
use thiserror::Error;

/// The file of the list that was read, in the data directory.
pub const FILE_NAME: &str = "public_suffix_list.dat";

/// Suffix of the former list's file until it is renamed.
const UNPUBLISHED: &str = ".new";

/// Suffix of the former list's file.
const FORMER: &str = ".old";

/// The first list that is read is judged by these numbers, because the compiled-in one can't be
/// counted by section. The list of 2023 held 7 380 and 2 126 rules, the list of 2026 10 396 in all.
const RULES_AT_FIRST: Rules = Rules {
    icann: 6500,
    private: 2000,
};

/// A section may lose one of this many parts at once: a tenth.
const SHRINK_PARTS: usize = 10;

/// The mark at the start of each section.
const BEGIN_ICANN: &str = "===BEGIN ICANN DOMAINS===";
const BEGIN_PRIVATE: &str = "===BEGIN PRIVATE DOMAINS===";

/// Rules of a list, by section.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    pub icann: usize,
    /// Rules for the domains of companies that hand out names below them.
    pub private: usize,
}

/// Why a list is not put in force.
#[derive(Debug, Error)]
pub enum Refusal {
    /// It is not the whole list.
    #[error(transparent)]
    NotTheList(#[from] SuffixError),
    #[error(
        "public suffix list: its {section} section has {found} rules, and the one in force {before}: it lost more than a tenth; inspect it, and install it by hand if it is right"
    )]
    Shrank {
        section: &'static str,
        /// Rules in the new section.
        found: usize,
        /// Rules in the section in force.
        before: usize,
    },
}

#[derive(Debug, Error)]
#[error("public suffix list {}: {what} failed ({source}); the former one stays in force", path.display())]
pub struct SwapError {
    path: PathBuf,
    what: &'static str,
    source: io::Error,
}

/// A list that may be put in force.
#[derive(Debug)]
pub struct Accepted {
    text: String,
    pub suffixes: Suffixes,
    pub rules: Rules,
}

/// The text of the list that was read before; `None` if none was. Blocks.
pub fn in_force(path: &Path) -> Result<Option<String>, SwapError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SwapError {
            path: path.to_owned(),
            what: "reading",
            source,
        }),
    }
}

/// Judges `text`, which is to be stored at `path`. `in_force` is the text of the list there; `None`
/// if the compiled-in list is in force.
///
/// # Errors
/// The text is not the whole list, or a section has lost more than a tenth of its rules.
pub fn judge(text: String, in_force: Option<&str>, path: &Path) -> Result<Accepted, Refusal> {
    let before = in_force.map_or(RULES_AT_FIRST, count);
    judge_by(text, before, path)
}

fn judge_by(text: String, before: Rules, path: &Path) -> Result<Accepted, Refusal> {
    let suffixes = Suffixes::from_bytes(text.as_bytes(), path)?;
    let rules = count(&text);
    for (section, found, before) in [
        ("ICANN", rules.icann, before.icann),
        ("private", rules.private, before.private),
    ] {
        if found < before - before / SHRINK_PARTS {
            return Err(Refusal::Shrank {
                section,
                found,
                before,
            });
        }
    }
    Ok(Accepted {
        text,
        suffixes,
        rules,
    })
}

/// Counts a text's rules by section; rules before the first mark belong to none.
pub fn count(text: &str) -> Rules {
    let mut rules = Rules::default();
    let mut section = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("//") {
            section = match comment.trim() {
                BEGIN_ICANN => Some(Section::Icann),
                BEGIN_PRIVATE => Some(Section::Private),
                _ => section,
            };
        } else if !line.is_empty() {
            match section {
                Some(Section::Icann) => rules.icann += 1,
                Some(Section::Private) => rules.private += 1,
                None => {}
            }
        }
    }
    rules
}

#[derive(Debug, Clone, Copy)]
enum Section {
    Icann,
    Private,
}

impl Accepted {
    /// Stores the list at `path` by renaming, and keeps the former one next to it, with the ending
    /// `.old`. After a crash, one of the two lists is at `path`, whole.
    /// The disk fails; the former list is still at `path` then.
    pub fn put(&self, path: &Path) -> Result<(), SwapError> {
        let former = with_ending(path, FORMER);
        let failed = |what| {
            move |source| SwapError {
                path: path.to_owned(),
                what,
                source,
            }
        };
        let written = files::write(Disk::SYSTEM, path, Mode::Public, self.text.as_bytes())
            .map_err(failed("writing"))?;
        if path.exists() {
            // A link and then a rename, so that a former list exists at any moment once there was
            // one.
            let link = with_ending(&former, UNPUBLISHED);
            remove_if_there(&link).map_err(failed("keeping the former one"))?;
            fs::hard_link(path, &link).map_err(failed("keeping the former one"))?;
            fs::rename(&link, &former).map_err(failed("keeping the former one"))?;
        }
        written.put().map_err(failed("putting it in place"))
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write as _;

    fn list(icann: usize, private: usize) -> String {
        let mut text = format!("// {BEGIN_ICANN}\n");
        for number in 0..icann {
            writeln!(text, "tld{number}").unwrap();
        }
        write!(text, "// ===END ICANN DOMAINS===\n\n// {BEGIN_PRIVATE}\n").unwrap();
        for number in 0..private {
            writeln!(text, "p{number}.tld0").unwrap();
        }
        text.push_str("// ===END PRIVATE DOMAINS===\n");
        text
    }

    fn check(in_force: &str, text: String, expect: Option<&str>) {
        let refusal = judge(text, Some(in_force), Path::new("x")).err();
        let refusal = refusal.map(|refusal| refusal.to_string());
        let is_as_expected = match (&refusal, expect) {
            (None, None) => true,
            (Some(refusal), Some(expect)) => refusal.contains(expect),
            (None, Some(_)) | (Some(_), None) => false,
        };
        assert!(is_as_expected, "{refusal:?} instead of {expect:?}");
    }

    #[test]
    fn a_section_that_lost_more_than_a_tenth_is_refused() {
        let in_force = list(2000, 1000);
        check(&in_force, list(1800, 900), None);
        check(&in_force, list(3000, 2000), None);
        check(
            &in_force,
            list(1799, 1000),
            Some("ICANN section has 1799 rules"),
        );
        check(
            &in_force,
            list(2000, 899),
            Some("private section has 899 rules"),
        );
        // A gain in the other section is no excuse.
        check(&in_force, list(5000, 0), Some("private"));
    }

    #[test]
    fn the_first_list_is_judged_by_the_one_compiled_in() {
        assert!(judge(list(7000, 2500), None, Path::new("x")).is_ok());
        let refusal = judge(list(2000, 2500), None, Path::new("x"));
        assert!(matches!(
            refusal,
            Err(Refusal::Shrank {
                section: "ICANN",
                ..
            })
        ));
    }

    #[test] // S71
    fn a_list_without_its_marks_is_refused() {
        let in_force = list(2000, 1000);
        for mark in [
            "===BEGIN ICANN DOMAINS===",
            "===END ICANN DOMAINS===",
            "===BEGIN PRIVATE DOMAINS===",
            "===END PRIVATE DOMAINS===",
        ] {
            check(&in_force, list(2000, 1000).replace(mark, "x"), Some(mark));
        }
        check(
            &in_force,
            "<html>\n".to_owned(),
            Some("===BEGIN ICANN DOMAINS==="),
        );
    }

    #[test]
    fn a_swap_keeps_the_former_list_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let put = |icann| {
            let accepted = judge_by(list(icann, 1), Rules::default(), &path).unwrap();
            accepted.put(&path).unwrap();
        };
        let read = |ending: &str| fs::read_to_string(with_ending(&path, ending)).ok();
        put(1001);
        assert_eq!((read(""), read(FORMER)), (Some(list(1001, 1)), None));
        // Files that a crash left don't matter.
        fs::write(path.with_file_name(format!(".{FILE_NAME}.new")), "half").unwrap();
        fs::write(with_ending(&path, ".old.new"), "half").unwrap();
        put(1002);
        put(1003);
        assert_eq!(read(""), Some(list(1003, 1)));
        assert_eq!(read(FORMER), Some(list(1002, 1)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_disk_that_fails_leaves_the_list_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "in force").unwrap();
        // A folder takes the former list's place, so the former list can't be kept.
        fs::create_dir(with_ending(&path, FORMER)).unwrap();
        fs::write(with_ending(&path, FORMER).join("x"), "").unwrap();
        let accepted = judge_by(list(1001, 1), Rules::default(), &path).unwrap();
        let error = accepted.put(&path).unwrap_err().to_string();
        assert!(error.contains("keeping the former one"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "in force");
    }

    proptest! {
        #[test] // S71
        fn what_is_accepted_has_nine_tenths_of_each_section(
            before in (1000_usize..1200, 0_usize..200),
            after in (1000_usize..1200, 0_usize..200),
        ) {
            let in_force = list(before.0, before.1);
            let accepted = judge(list(after.0, after.1), Some(&in_force), Path::new("x"));
            let fits = after.0 * 10 >= before.0 * 9 && after.1 * 10 >= before.1 * 9;
            prop_assert_eq!(accepted.is_ok(), fits);
        }
    }
}

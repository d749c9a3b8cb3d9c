//! Reads the list of security fixes: `fixes.toml` in the data directory, or the built-in list
//! without that file. The first error rejects the whole file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use census::version::Release;
use jiff::civil::Date;
use serde::Deserialize;
use site::fixes::Fix;
use thiserror::Error;

use crate::ground::input_file::{self, FileError};

/// The file's name in errors.
const WHAT: &str = "list of fixes";

const FILE_NAME: &str = "fixes.toml";

const BUILT_IN: &str = include_str!("../fixes.toml");

/// A hundred fixes with comments take some 40 KiB.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// Each fix has a page, and reads 400 days of counts for each publication.
const FIXES_MAX: usize = 100;

/// Longest text of an entry.
const LINE_CHARS_MAX: usize = 200;

#[derive(Debug, Error)]
pub enum FixesError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{WHAT} {}: {problem}", path.display())]
    Wrong { path: PathBuf, problem: String },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    fix: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    software: String,
    date: String,
    title: String,
    link: String,
    fixed: Vec<String>,
}

/// The fixes, the newest first. Blocks.
pub fn read(data_dir: &Path) -> Result<Vec<Fix>, FixesError> {
    let path = data_dir.join(FILE_NAME);
    if path.exists() {
        let bytes = input_file::read(WHAT, &path, FILE_BYTES_MAX)?;
        parse(&bytes, &path)
    } else {
        parse(BUILT_IN.as_bytes(), Path::new("built-in"))
    }
}

/// The fixes in these bytes, which were read from the file at `path`.
fn parse(bytes: &[u8], path: &Path) -> Result<Vec<Fix>, FixesError> {
    let list = || {
        if bytes.len() > FILE_BYTES_MAX {
            return Err(format!("is larger than {FILE_BYTES_MAX} bytes"));
        }
        let list: List = toml::from_slice(bytes).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = bytes.iter().take(start);
            let line = before.filter(|byte| **byte == b'\n').count() + 1;
            format!("line {line}: {}", error.message())
        })?;
        fixes(list.fix)
    };
    list().map_err(|problem| FixesError::Wrong {
        path: path.to_owned(),
        problem,
    })
}

fn fixes(entries: Vec<Entry>) -> Result<Vec<Fix>, String> {
    if entries.len() > FIXES_MAX {
        return Err(format!("has more than {FIXES_MAX} fixes"));
    }
    let mut ids = HashSet::new();
    let mut fixes = Vec::with_capacity(entries.len());
    for entry in entries {
        let id = entry.id.clone();
        let of_entry = |problem: String| format!("fix {id:?}: {problem}");
        fixes.push(fix(entry).map_err(of_entry)?);
        if !ids.insert(id.clone()) {
            return Err(of_entry("another fix has this `id`".to_owned()));
        }
    }
    fixes.sort_by(|one: &Fix, other| (other.date, &one.id).cmp(&(one.date, &other.id)));
    Ok(fixes)
}

fn fix(entry: Entry) -> Result<Fix, String> {
    let is_id = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let is_line = |text: &str| {
        (1..=LINE_CHARS_MAX).contains(&text.trim().chars().count())
            && !text.contains(char::is_control)
    };
    let day = entry.date.parse::<Date>().ok();
    let day = day.filter(|day| day.to_string() == entry.date);
    let rules = [
        (
            (1..=64).contains(&entry.id.len()) && entry.id.bytes().all(is_id),
            "`id` must be 1 to 64 lower-case letters, digits and hyphens",
        ),
        (
            is_line(&entry.software) && entry.software.to_lowercase() == entry.software,
            "`software` must be NodeInfo's name in lower case",
        ),
        (
            is_line(&entry.title),
            "`title` must be one line of at most 200 characters",
        ),
        (
            is_line(&entry.link)
                && entry.link.starts_with("https://")
                && entry.link.bytes().all(|byte| byte.is_ascii_graphic()),
            "`link` must be an `https://` address of at most 200 characters of ASCII",
        ),
    ];
    if let Some((_, rule)) = rules.into_iter().find(|(is_kept, _)| !is_kept) {
        return Err(rule.to_owned());
    }
    Ok(Fix {
        id: entry.id,
        software: entry.software,
        date: day.ok_or("`date` must be a day such as \"2026-01-20\"")?,
        title: entry.title,
        link: entry.link,
        fixed: releases(&entry.fixed)?,
    })
}

fn releases(fixed: &[String]) -> Result<Vec<Release>, String> {
    let mut branches = HashSet::new();
    let mut releases = Vec::new();
    for text in fixed {
        let release = Release::parse(text)
            .ok_or_else(|| format!("`fixed`: {text:?} is no version such as \"4.5.5\""))?;
        if !branches.insert(release.branch()) {
            return Err(format!(
                "`fixed`: {text:?} is the second version of its branch, the first two numbers"
            ));
        }
        releases.push(release);
    }
    if releases.is_empty() {
        return Err("`fixed` must name a version".to_owned());
    }
    Ok(releases)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = r#"[[fix]]
id = "cve-1"
software = "mastodon"
date = "2026-01-20"
title = "A flaw"
link = "https://a.example/1"
fixed = ["4.5.5", "4.4.12"]
"#;

    fn check(text: &str, expect: &str) {
        let error = parse(text.as_bytes(), Path::new("x")).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("list of fixes x: "), "{said}");
        assert!(said.contains(expect), "{expect}: {said}");
    }

    #[test]
    fn a_file_replaces_the_built_in_fixes() {
        let folder = tempfile::tempdir().unwrap();
        let fixes = read(folder.path()).unwrap();
        assert!(fixes.len() >= 4);
        assert!(fixes.is_sorted_by(|one, other| one.date >= other.date));
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, ENTRY).unwrap();
        let fixes = read(folder.path()).unwrap();
        assert_eq!((fixes.len(), fixes[0].id.as_str()), (1, "cve-1"));
        std::fs::write(&path, "").unwrap();
        assert_eq!(read(folder.path()).unwrap(), []);
        std::fs::write(&path, "fix = 1").unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("/fixes.toml: line 1: "), "{error}");
    }

    #[test]
    fn an_error_names_the_entry_and_what_is_wrong() {
        for (from, to, expect) in [
            ("cve-1", "CVE-1", "fix \"CVE-1\": `id` must"),
            ("cve-1", "../x", "`id` must"),
            ("2026-01-20", "20 January", "fix \"cve-1\": `date` must"),
            ("2026-01-20", "2026-01-20T10:00", "`date`"),
            ("mastodon", "Mastodon", "`software` must"),
            ("A flaw", "", "`title` must"),
            ("https:", "http:", "`link` must"),
            ("4.4.12", "4.5.4", "\"4.5.4\" is the second version"),
            ("4.4.12", "v4", "\"v4\" is no version"),
            ("\"4.5.5\", \"4.4.12\"", "", "`fixed` must name"),
            ("title", "name", "line 5: "),
        ] {
            check(&ENTRY.replace(from, to), expect);
        }
        check(&ENTRY.repeat(2), "fix \"cve-1\": another fix has this `id`");
        let many = (0..=FIXES_MAX).map(|n| ENTRY.replace("cve-1", &n.to_string()));
        check(&many.collect::<String>(), "more than 100 fixes");
        check(&"#".repeat(FILE_BYTES_MAX + 1), "larger than 65536 bytes");
    }
}

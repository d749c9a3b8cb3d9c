//! Versions of software, which are any text: their first two numbers, and where one stands towards
//! a fix that was released for some branches.

use std::fmt;

/// Listed hosts that run one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionHosts {
    /// `None` if the hosts name none.
    pub version: Option<String>,
    /// The fork; `None` if nothing names one.
    pub variant: Option<String>,
    pub hosts: u64,
}

/// The variant of hosts whose versions are not counted apart. No fork's word has brackets.
pub const REST: &str = "(rest)";

impl VersionHosts {
    /// Hosts whose versions are not counted apart; `None` if there are none.
    pub fn rest(hosts: u64) -> Option<Self> {
        (hosts > 0).then(|| Self {
            version: None,
            variant: Some(REST.to_owned()),
            hosts,
        })
    }
}

/// A version of numbers alone. Its branch is the first two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    branch: (u32, u32),
    patch: u32,
}

/// Where a version stands towards a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The fixed version of its branch or a later one, or a branch newer than all fixed ones.
    Fixed,
    /// Before the fixed version of its branch.
    Behind,
    /// An older branch, for which there is no fix.
    Without,
    /// No numbers, a nightly build, or a pre-release that may have the fix or not.
    Unclear,
}

impl Release {
    /// `4.5.5` or `0.19`; `None` if anything else is in the text.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.starts_with(|letter: char| letter.is_ascii_digit());
        let (release, rest) = split(text)?;
        (is_plain && rest.is_empty()).then_some(release)
    }

    pub fn branch(self) -> (u32, u32) {
        self.branch
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.branch;
        write!(f, "{major}.{minor}.{}", self.patch)
    }
}

/// Where a version stands towards the fixed version of each branch.
pub fn standing(version: &str, fixed: &[Release]) -> Standing {
    let Some((release, rest)) = split(version) else {
        return Standing::Unclear;
    };
    if rest.to_ascii_lowercase().contains("nightly") {
        return Standing::Unclear;
    }
    // `-rc1`, `~beta`, `rc1`. What follows a `+` or a space names a build.
    let is_early = rest.starts_with(|letter: char| "-~".contains(letter) || letter.is_alphabetic());
    match fixed.iter().find(|fix| fix.branch == release.branch) {
        Some(fix) if release.patch < fix.patch => Standing::Behind,
        Some(fix) if release.patch > fix.patch => Standing::Fixed,
        None if fixed.iter().any(|fix| fix.branch > release.branch) => Standing::Without,
        Some(_) | None if is_early => Standing::Unclear,
        Some(_) | None => Standing::Fixed,
    }
}

/// The numbers that a version begins with, and the text after them. `None` without two numbers.
fn split(version: &str) -> Option<(Release, &str)> {
    let minor = minor(version);
    let branch = numbers(minor)?;
    let rest = version.get(minor.len()..)?;
    let (patch, rest) = match rest.strip_prefix('.') {
        Some(after) => {
            let (number, rest) = after.split_at_checked(digits(after))?;
            (number.parse().ok()?, rest)
        }
        None => (0, rest),
    };
    Some((Release { branch, patch }, rest))
}

/// `4.5` of `4.5.1+glitch`: the first two numbers and the text before them. A version that does not
/// begin with two numbers stays unchanged.
pub fn minor(version: &str) -> &str {
    let start = usize::from(version.starts_with('v'));
    let found = || {
        let rest = version.get(start..)?;
        let major = digits(rest);
        let rest = rest.get(major..)?.strip_prefix('.')?;
        let minor = digits(rest);
        (major > 0 && minor > 0).then(|| {
            version
                .len()
                .saturating_sub(rest.len())
                .saturating_add(minor)
        })
    };
    found()
        .and_then(|end| version.get(..end))
        .unwrap_or(version)
}

/// The numbers of what [`minor`] returns; `None` if there are not two.
pub fn numbers(minor: &str) -> Option<(u32, u32)> {
    let (major, minor) = minor.strip_prefix('v').unwrap_or(minor).split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Length of the digits that a text begins with.
fn digits(text: &str) -> usize {
    text.find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_collapse_to_their_first_two_numbers() {
        for (version, expect) in [
            ("4.5.1", "4.5"),
            ("4.5.0+glitch", "4.5"),
            ("v1.2.3-beta", "v1.2"),
            ("2025.11.0", "2025.11"),
            ("4.10", "4.10"),
            ("7", "7"),
            ("", ""),
            ("v", "v"),
            (".5", ".5"),
            ("4.x", "4.x"),
            ("dev-4.5", "dev-4.5"),
            ("４.５", "４.５"),
        ] {
            assert_eq!(minor(version), expect);
        }
    }

    #[test]
    fn only_two_or_three_numbers_are_a_release() {
        for text in ["4.5.5", "0.19.0", "2024.11.0"] {
            assert_eq!(Release::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Release::parse("0.19"), Release::parse("0.19.0"));
        let wrong = "v4.5.5, 4, 4.5., 4.5.5.1, 4.5.5-rc1, 4.5.5 , 4.5.4294967296, ";
        for text in wrong.split(", ") {
            assert_eq!(Release::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_version_is_compared_within_its_branch() {
        use Standing::{Behind, Fixed, Unclear, Without};
        let (mastodon, lemmy, misskey) = ("4.5.5 4.4.12 4.3.18", "0.19", "2024.11.0 2024.9.3");
        for (fixed, expect, versions) in [
            (mastodon, Fixed, "4.5.5, 4.5.10, 4.4.12, 4.3.18, v4.5.5"),
            (mastodon, Fixed, "4.6.0, 4.10.0, 5.0, 4.5.6-rc1"),
            (mastodon, Fixed, "4.5.5+glitch, 4.5.5 (compatible; x)"),
            (
                mastodon,
                Behind,
                "4.5.4, 4.4.11, 4.3, 4.5.4+glitch.1, 4.5.4-rc1",
            ),
            (mastodon, Without, "4.2.30, 3.5.19, 4.2.0-rc1"),
            (
                mastodon,
                Unclear,
                "4.5.5-rc1, 4.5.5rc1, 4.5.5~rc1, 4.6.0-alpha.1",
            ),
            (
                mastodon,
                Unclear,
                "4.6.0-alpha.1+glitch, 4.5.0-nightly.2025-10-01",
            ),
            (
                mastodon,
                Unclear,
                "nightly.2024-02-02-security, main, 4, 4.5.x, ",
            ),
            (mastodon, Unclear, "4.5.99999999999"),
            (lemmy, Fixed, "0.19, 0.19.0, 0.19.1"),
            (lemmy, Unclear, "0.19-rc.1"),
            (lemmy, Without, "0.18.5"),
            (misskey, Fixed, "2024.11.0, 2025.1.0"),
            (misskey, Behind, "2024.9.2"),
            (misskey, Without, "2024.10.1"),
            (misskey, Unclear, "2025.1.0-alpha.0"),
        ] {
            let fixed: Vec<_> = fixed.split(' ').filter_map(Release::parse).collect();
            for version in versions.split(", ") {
                assert_eq!(standing(version, &fixed), expect, "{version}");
            }
        }
    }
}

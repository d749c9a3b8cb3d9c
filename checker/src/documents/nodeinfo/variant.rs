//! The fork of a software that an instance runs, in one lower-case word: as its version names it
//! after a `+`, or else the owner of its repository, unless that is the software's own.

/// The owners of each software's own repositories. A software that is missing here has no known
/// owner, so its repository names no fork.
const OWNERS: [(&str, &[&str]); 16] = [
    ("akkoma", &["akkoma", "akkomagang"]),
    ("firefish", &["firefish"]),
    ("friendica", &["friendica"]),
    ("funkwhale", &["funkwhale"]),
    ("gotosocial", &["superseriousbusiness"]),
    ("iceshrimp", &["iceshrimp"]),
    ("lemmy", &["lemmynet"]),
    ("mastodon", &["mastodon", "tootsuite"]),
    ("mbin", &["mbinorg"]),
    ("misskey", &["misskey-dev", "syuilo"]),
    ("mitra", &["silverpill"]),
    ("peertube", &["chocobozzz", "framasoft"]),
    ("piefed", &["rimu"]),
    ("pixelfed", &["pixelfed"]),
    ("pleroma", &["pleroma"]),
    ("sharkey", &["sharkey", "transfem-org"]),
];

/// Owners and words of versions that stand for the same fork, and that fork's word.
const SAME: [(&str, &str); 4] = [
    ("glitch-soc", "glitch"),
    ("glitchsoc", "glitch"),
    ("hometown-fork", "hometown"),
    ("soapbox-pub", "soapbox"),
];

/// Words after a `+` that name a build and no fork.
const BUILDS: [&str; 13] = [
    "build", "custom", "debian", "dev", "develop", "docker", "git", "local", "main", "master",
    "nightly", "release", "stable",
];

/// Forges allow owners of about this length: GitHub 39 bytes.
const WORD_BYTES_MAX: usize = 40;

pub(crate) fn variant(
    software: &str,
    version: Option<&str>,
    repository: Option<&str>,
) -> Option<String> {
    let named = version
        .and_then(fork_in_version)
        .or_else(|| fork_by_owner(software, repository?))?;
    let same = SAME.iter().find(|(word, _)| *word == named);
    let word = same.map_or(named, |(_, word)| (*word).to_owned());
    (word != software).then_some(word)
}

/// `4.5.2+glitch.1` has `glitch`. Numbers and hashes of commits are no words.
fn fork_in_version(version: &str) -> Option<String> {
    let (_, build) = version.split_once('+')?;
    let word = build
        .split(|character: char| !character.is_ascii_alphanumeric())
        .next()?;
    let word = word.to_ascii_lowercase();
    let is_word = (3..=WORD_BYTES_MAX).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !BUILDS.contains(&word.as_str());
    is_word.then_some(word)
}

/// The first part of the repository's path, as `https://forge.example/owner/name`.
fn fork_by_owner(software: &str, repository: &str) -> Option<String> {
    let (_, own) = OWNERS.iter().find(|(name, _)| *name == software)?;
    let address = repository
        .strip_prefix("https://")
        .or_else(|| repository.strip_prefix("http://"))?;
    let (_, path) = address.split_once('/')?;
    let (owner, name) = path.split_once('/')?;
    let owner = owner.to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_owner = !name.is_empty()
        && (1..=WORD_BYTES_MAX).contains(&owner.len())
        && owner.bytes().all(is_plain);
    (is_owner && !own.contains(&owner.as_str())).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_is_named_by_version_or_owner() {
        // Software, version, repository, fork.
        let table = "
            mastodon  4.5.2                      -                                        -
            mastodon  4.5.2+glitch               -                                        glitch
            mastodon  4.3.0-alpha.0+Glitch.th    -                                        glitch
            mastodon  4.5.2+glitchsoc            -                                        glitch
            pleroma   2.7.2_(Pleroma_2.5+soapbox) -                                       soapbox
            hometown  4.0.6+hometown-1.1.1       -                                        -
            forgejo   1.24.0+dev-512-g1a2b3c4d5e -                                        -
            gotosocial 0.17.3+git-17b6e2d        -                                        -
            mastodon  4.5.2+                     -                                        -
            mastodon  4.5.2+20240101             -                                        -
            mastodon  4.5.2+a1b2c3d              -                                        -
            misskey   2026.11.0                  https://github.com/misskey-dev/misskey   -
            misskey   2026.11.0                  https://github.com/MisskeyIO/misskey     misskeyio
            mastodon  4.5.2                      https://github.com/glitch-soc/mastodon   glitch
            mastodon  4.5.2+ecko                 https://github.com/glitch-soc/mastodon   ecko
            unknown   1                          https://github.com/somebody/unknown      -
        ";
        for line in table.lines().filter(|line| !line.trim().is_empty()) {
            let fields: Vec<_> = line.split_whitespace().collect();
            let [software, version, repository, expect] = fields[..] else {
                panic!("{line}");
            };
            let found = variant(software, Some(version), Some(repository));
            assert_eq!(found.as_deref().unwrap_or("-"), expect, "{line}");
        }
    }

    #[test]
    fn an_owner_is_one_plain_part_of_a_path() {
        let long = format!("https://github.com/{}/b", "a".repeat(WORD_BYTES_MAX + 1));
        for repository in [
            "",
            "github.com/a/b",
            "git@github.com:a/b",
            "https://github.com",
            "https://github.com/a",
            "https://github.com/a/",
            "https://github.com//b",
            "https://github.com/<b>/b",
            "https://github.com/\u{e9}/b",
            &long,
        ] {
            assert_eq!(
                variant("mastodon", None, Some(repository)),
                None,
                "{repository}"
            );
        }
    }
}

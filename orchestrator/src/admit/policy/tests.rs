use admission::DomainName;

use super::*;
use crate::config::{Config, Values};

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

fn files() -> Files {
    let limit = |number| Limit::new(number).unwrap();
    Files {
        limits: Limits {
            source: limit(1),
            shared_suffix: limit(2),
            total: limit(3),
        },
        ..Files::default()
    }
}

#[test]
fn without_files_the_built_in_rules_are_in_force() {
    let terms = files().read().unwrap();
    let public = terms.policy.rules.public.as_ref().unwrap();
    assert_eq!(public.limit.get(), 20);
    assert_eq!(
        files().in_words(&terms),
        "built-in rules (20 a registered domain and day); 1 a source, 2 a shared suffix, 3 in all; 0 denied, 0 allowed, 16 hosters"
    );
    let lab = Files {
        reserved: Reserved::AllowInLab,
        ..files()
    };
    assert_eq!(lab.read().unwrap().policy.rules.domains.len(), 2);
}

#[test]
fn the_setting_decides_on_the_test_domain_and_is_off_by_default() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (text, expect) in [
        ("", TestDomain::Refuse),
        ("[lab]\ntest_domain = true\n", TestDomain::Allow),
    ] {
        std::fs::write(file.path(), text).unwrap();
        let values = Values::gather(|_| None, |_| None, Some(file.path())).unwrap();
        let files = Config::new(&values).unwrap().admission;
        assert_eq!(files.read().unwrap().policy.test_domain, expect);
    }
}

#[test]
fn every_wrong_line_of_every_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    };
    let wrong = Files {
        rules: file("rules", "public default 20\ndomain a\npublic default 30\n"),
        deny: file("deny", "*.a.example\nb.example\n"),
        allow: Some(folder.path().join("missing")),
        hosters: file("hosters", "a.example\nb example\n"),
        ..files()
    };
    let error = wrong.read().unwrap_err().to_string();
    for part in [
        "/rules:2: ",
        "/rules:3: ",
        "/deny:1: ",
        "/hosters:2: ",
        "allow-list",
        "/missing: can't be read",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!error.contains("/deny:2: "), "{error}");
    let right = Files {
        deny: file("deny", "b.example # why\n"),
        allow: file("allow", "c.example\nd.example\n"),
        hosters: file("hosters", "e.example\n"),
        ..files()
    };
    let terms = right.read().unwrap();
    let lists = [&terms.deny, &terms.allow, &terms.hosters];
    assert_eq!(lists.map(DomainList::len), [1, 2, 1]);
}

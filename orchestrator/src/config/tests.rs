use admission::Limits;

use super::*;

fn config(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let flags = |key: &str| {
        pairs
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| (*value).to_owned())
    };
    Config::new(&Values::gather(flags, |_| None, None)?)
}

fn from_file(text: &str) -> Result<Config, ConfigError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    Config::new(&Values::gather(|_| None, |_| None, Some(file.path()))?)
}

fn problem(key: &str, value: &str) -> String {
    config(&[(key, value)])
        .expect_err("must be refused")
        .to_string()
}

#[test]
fn the_defaults_are_valid() {
    let config = config(&[]).expect("defaults");
    assert_eq!(config.checks.least, 2);
    assert!(
        (4..=32).contains(&config.checks.most),
        "{:?}",
        config.checks
    );
    assert!(config.require_contact().is_err(), "no contact by default");
}

/// Benchmarks and simulations use these limits, and operators read about them.
#[test]
fn the_ordinary_limits_are_those_of_the_settings_and_of_the_documents() {
    let ordinary = Limits::ORDINARY;
    assert_eq!(config(&[]).unwrap().admission.limits, ordinary);
    let Limits {
        source,
        shared_suffix,
        total,
    } = ordinary;
    for (document, says) in [
        (
            "docs/admission.md",
            format!("each source {source}, and all together {total}."),
        ),
        (
            "docs/admission-rules.md",
            format!("`source_limit`, {source} a day."),
        ),
        (
            "docs/admission-rules.md",
            format!("a fiftieth of the total: {shared_suffix} a day."),
        ),
        (
            "docs/admission-rules.md",
            format!("`admissions_limit`, {total} a day."),
        ),
    ] {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let text = std::fs::read_to_string(Path::new(path).join(document)).unwrap();
        assert!(text.contains(&says), "{document} does not say `{says}`");
    }
}

#[test]
fn a_bad_value_names_the_setting_the_place_and_the_bounds() {
    assert_eq!(
        problem("checks_max", "0"),
        "setting `checks_max` (flag): `0` must be a whole number from 1 to 64"
    );
    assert_eq!(
        problem("seeds", "a.example,https://b.example"),
        "setting `seeds` (flag): `a.example,https://b.example` contains `https://b.example`: it has more than a host name (a scheme, port, path or user part)"
    );
    for contact in [
        "me\r\nX-Evil: 1",
        "foo",
        "@",
        "me@here",
        "example.org/about",
    ] {
        assert!(
            problem("contact", contact).contains("a mail address"),
            "{contact}"
        );
    }
    assert!(problem("resolvers", "dns.example").contains("not an IP address"));
    let mistyped = Values::gather(
        |key| (key == "log").then(|| "warning".to_owned()),
        |_| None,
        None,
    )
    .unwrap();
    assert!(mistyped.log().is_err(), "it would silence everything");
    for limit in ["-1", "2147483648", "", "2k"] {
        let problem = problem("source_limit", limit);
        assert!(
            problem.ends_with("must be a whole number from 0 to 2147483647"),
            "{problem}"
        );
    }
    assert!(problem("deny_addresses", "10.0.0.0/99").contains("10.0.0.0/99"));
    let long = format!("LicenseRef-{}", "a".repeat(100));
    for licence in ["foo bar", "", &long] {
        assert!(
            problem("data_licence", licence).contains("SPDX"),
            "{licence}"
        );
    }
    let licence = |text: &str| config(&[("data_licence", text)]).is_ok();
    assert!(licence("CC0-1.0 OR MIT") && licence("LicenseRef-ours"));
}

/// No value of any setting removes the profile; a path only adds where Podman finds it.
#[test] // S8
fn no_setting_removes_the_seccomp_profile() {
    let profile = |pairs: &[(&str, &str)]| {
        let settings = config(pairs).unwrap().launcher_settings;
        settings.confinement.seccomp.unwrap()
    };
    let ours = launcher::spec::SeccompProfile::ours;
    assert_eq!(profile(&[]), ours(None));
    let path = "/etc/fedicensus/seccomp.json";
    assert_eq!(
        profile(&[("seccomp_path", path)]),
        ours(Some(path.to_owned()))
    );
    for no_path in ["unconfined", "seccomp.json"] {
        assert_eq!(
            problem("seccomp_path", no_path),
            format!(
                "setting `seccomp_path` (flag): `{no_path}` must be an absolute path, which begins with `/`"
            )
        );
    }
}

#[test]
fn checks_trust_further_roots_in_the_lab_only() {
    let trusted = |lab: &str| from_file(lab).unwrap().launcher_settings.extra_roots;
    assert!(!trusted(""));
    assert!(!trusted("[lab]\nallow_private = true\n"));
    assert!(trusted("[lab]\nextra_ca = \"/lab/ca.pem\"\n"));
}

#[test]
fn gateway_grants_turns_only_with_a_second_one() {
    for (second, expect) in [("", None), ("/s", Some("/r/ledger/ledger.sock"))] {
        let config = config(&[("run_dir", "/r"), ("second_gateway", second)]).unwrap();
        let granting = config.gateway_settings.ledger_socket;
        assert_eq!(granting.as_deref(), expect.map(Path::new));
    }
}

/// A variable left over in an environment must not open a census to private networks.
#[test]
fn neither_flags_nor_the_environment_set_anything_of_the_lab() {
    let anything = |_: &str| Some("true".to_owned());
    let values = Values::gather(|_| None, |_| None, None).unwrap();
    let defaults: Vec<_> = lab_values(&values);
    for values in [
        Values::gather(anything, |_| None, None),
        Values::gather(|_| None, anything, None),
    ] {
        assert_eq!(lab_values(&values.unwrap()), defaults);
    }
    assert!(
        defaults
            .iter()
            .all(|(_, origin)| *origin == Origin::Default)
    );
}

fn lab_values(values: &Values) -> Vec<(String, Origin)> {
    let lab = values
        .iter()
        .filter(|(key, ..)| key.starts_with(LAB_PREFIX));
    let lab: Vec<_> = lab
        .map(|(_, value, origin)| (value.to_owned(), origin.clone()))
        .collect();
    assert_eq!(lab.len(), LAB_SETTINGS.len());
    lab
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fedicensus.toml");
    std::fs::write(
        &file,
        "checks_max = 2\nsource_limit = 20\nseeds = [\"a.example\", \"b.example\"]\n",
    )
    .unwrap();
    let flags = |key: &str| (key == "checks_max").then(|| "3".to_owned());
    let environment = |name: &str| {
        (name == "FEDICENSUS_CHECKS_MAX" || name == "FEDICENSUS_SOURCE_LIMIT")
            .then(|| "30".to_owned())
    };
    let values = Values::gather(flags, environment, Some(&file)).unwrap();
    let config = Config::new(&values).unwrap();
    assert_eq!(
        (
            config.checks.most,
            config.admission.limits.source.get(),
            config.seeds.len()
        ),
        (3, 30, 2)
    );
}

#[test]
fn an_unknown_key_in_the_file_is_refused() {
    for (text, key) in [
        ("check_max = 2\n", "check_max"),
        ("[lab]\npace_divisr = 2\n", "lab.pace_divisr"),
    ] {
        let error = from_file(text).expect_err("must be refused").to_string();
        assert!(
            error.contains(&format!("`{key}` is not a setting")),
            "{error}"
        );
    }
}

#[test]
fn the_intake_takes_the_test_domain_only_when_the_setting_says_so() {
    use token::TestDomain::{Allow, Refuse};
    for (lab, expect) in [
        ("", Refuse),
        ("[lab]\ntest_domain = true\n", Allow),
        ("[lab]\ntest_domain = false\n", Refuse),
    ] {
        let config = from_file(lab).unwrap();
        assert_eq!(config.intake_settings.test_domain, expect, "{lab:?}");
    }
    let error = from_file("[lab]\ntest_domain = \"yes\"\n").expect_err("no boolean");
    let told = error.to_string();
    assert!(told.starts_with("setting `lab.test_domain` (/"), "{told}");
    assert!(told.ends_with("`yes` must be `true` or `false`"), "{told}");
}

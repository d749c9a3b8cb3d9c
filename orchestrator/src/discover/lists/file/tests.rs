use super::*;
use proptest::prelude::*;

fn wrong(text: &str) -> String {
    parse(text.as_bytes(), Path::new("s.toml"))
        .unwrap_err()
        .to_string()
}

#[test]
fn sources_are_read_with_their_defaults() {
    let text = r#"
# what others list
[[source]]
name = "the-federation"
url = "https://the-federation.info/pods.json"
format = "json"

[[source]]
name = "own.list_2"
url = "https://B\u00fccher.example/l?x=%23y"
format = "csv"
interval_hours = 6
limit = 250_000
"#;
    let sources = parse(text.as_bytes(), Path::new("s.toml")).unwrap();
    let [first, second] = &sources[..] else {
        panic!("{sources:?}");
    };
    assert_eq!(first.name.as_str(), "the-federation");
    assert_eq!(first.path.as_str(), "/pods.json");
    assert_eq!(first.interval, Duration::from_secs(24 * 3600));
    assert_eq!(first.names_max, 100_000);
    assert_eq!(second.host.as_str(), "xn--bcher-kva.example");
    assert_eq!(second.path.as_str(), "/l?x=%23y");
    assert_eq!(second.interval, Duration::from_secs(6 * 3600));
    assert_eq!(second.names_max, 250_000);
    let order = second.list();
    assert_eq!((order.format, order.names_max), (ListFormat::Csv, 250_000));
    assert_eq!(parse(b"", Path::new("s.toml")).unwrap(), []);
}

#[test]
fn every_wrong_entry_is_named_with_its_line() {
    let text = r#"colour = "red"
[[source]]
name = "a b"
url = "http://a.example/"
format = "xml"
interval_hours = 5
limit = 0
shape = 7

[[source]]
name = 7
url = "https://a.example:8443/x"
format = "lines"
limit = 250001

[[source]]
url = "https://a.example/a b"
interval_hours = "24"

[[source]]
name = "d"
"#;
    let expect = "\
sources s.toml:1: `colour` is unknown; sources are written as `[[source]]`
sources s.toml:3: `name` must be 1 to 63 letters, digits, `-`, `_` or `.`
sources s.toml:4: `url` `http://a.example/` must begin with `https://`
sources s.toml:5: `format` `xml` is not a format of a list: lines, json, ndjson, csv or suffixes
sources s.toml:6: `interval_hours` must be a whole number from 6 to 8784
sources s.toml:7: `limit` must be a whole number from 1 to 250000
sources s.toml:8: `shape` is unknown; a source has name, url, format, interval_hours and limit
sources s.toml:11: `name` must be a text in quotes
sources s.toml:12: `url` `https://a.example:8443/x` has no valid host (without a port or a user): ";
    let told = wrong(text);
    assert!(told.starts_with(expect), "{told}");
    let rest = told.lines().skip(9).collect::<Vec<_>>();
    assert_eq!(
        rest,
        [
            "sources s.toml:14: `limit` must be a whole number from 1 to 250000",
            "sources s.toml:17: `url` `https://a.example/a b` has a path that contains a character that a path can't have: a space, a backslash, `#`, or one beyond ASCII (write it percent-encoded)",
            "sources s.toml:18: `interval_hours` must be a whole number from 6 to 8784",
            "sources s.toml:20: a source lacks its `url`",
            "sources s.toml:20: a source lacks its `format`",
        ]
    );
}

#[test]
fn a_hosts_proof_is_no_source() {
    let told = wrong(
        "[[source]]\nname = \"a\"\nurl = \"https://a.example/.well-known/fedicensus\"\nformat = \"proof\"\n",
    );
    let expect =
        "sources s.toml:4: `format` `proof` is not a format of a list, but of an owner's file";
    assert!(told.starts_with(expect), "{told}");
    assert!(
        told.ends_with("lines, json, ndjson, csv or suffixes"),
        "{told}"
    );
}

#[test]
fn what_two_sources_may_not_share_is_named() {
    let source = |name: &str, path: &str, format: &str| {
        format!(
            "[[source]]\nname = \"{name}\"\nurl = \"https://a.example{path}\"\nformat = \"{format}\"\n"
        )
    };
    let told = wrong(
        &[
            source("a", "/1", "suffixes"),
            source("a", "/2", "lines"),
            source("b", "/1", "suffixes"),
        ]
        .concat(),
    );
    assert_eq!(
        told,
        "sources s.toml:5: there is another source named `a`\n\
         sources s.toml:9: source `a` has the same url\n\
         sources s.toml:9: source `a` is already a list of public suffixes; only one is allowed"
    );
    let many: String = (0..=SOURCES_MAX)
        .map(|number| source(&format!("s{number}"), &format!("/{number}"), "csv"))
        .collect();
    assert_eq!(
        wrong(&many),
        "sources s.toml:401: there are more than 100 sources"
    );
}

#[test]
fn what_is_no_such_file_is_refused() {
    for (text, expect) in [
        ("[[source]\n", "sources s.toml:1: "),
        (
            "\n[source]\nname = \"a\"\n",
            "sources s.toml:2: sources are written as `[[source]]`, with two brackets",
        ),
        (
            "source = [7]\n",
            "sources s.toml:1: sources are written as `[[source]]`, with two brackets",
        ),
        (
            "[[source]]\nname = \"a\"\nname = \"b\"\n",
            "sources s.toml:3: ",
        ),
    ] {
        let told = wrong(text);
        assert!(told.starts_with(expect), "{told}");
    }
    let bytes = parse(b"\n# \xff", Path::new("s.toml")).unwrap_err();
    assert_eq!(bytes.to_string(), "sources s.toml:2: is not UTF-8");
    let large = parse(&vec![b'\n'; FILE_BYTES_MAX + 1], Path::new("s.toml"));
    assert!(matches!(large, Err(SourcesError::TooLarge(_))));
    let missing = read(Path::new("/nonexistent/s.toml")).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("sources /nonexistent/s.toml: can't be read")
    );
}

proptest! {
    #[test]
    fn no_address_leads_elsewhere_than_it_says(text in "https?://[a-z.@:/\\\\#?%]{0,30}") {
        if let Ok((host, path)) = address(&text) {
            let written = text.trim_start_matches("https://");
            prop_assert!(written == host.as_str() || written.starts_with(&format!("{host}{path}")) || written.starts_with(&format!("{host}./")) || written == format!("{host}."), "{} {}", host, path);
        }
    }
}

//! Pages of security fixes.

use super::*;
use crate::fixes::Spread;
use crate::fixes::tests::fix;

/// Facts with a fix of this software, counted on each day.
fn with_fix(days: usize, software: &str) -> Facts {
    let mut facts = facts(days);
    let tally = [30, 50, 15, 5];
    let minors = vec![("4.5".to_owned(), 60), ("4.4".to_owned(), 40)];
    let days: Vec<_> = facts.history.iter().map(|day| day.day).collect();
    let minors = days.iter().map(|day| (*day, minors.clone())).collect();
    facts.versions.minors.insert(software.to_owned(), minors);
    facts.versions.fixes.push(Spread {
        fix: fix(software),
        days: days.into_iter().map(|day| (day, tally)).collect(),
        variants: [(String::new(), tally), ("glitch".to_owned(), tally)].into(),
    });
    facts
}

#[test]
fn a_fix_has_a_page_that_names_no_host() {
    let rows = [instance("a.example", "software0", "4.5.4")];
    let folder = written(with_fix(3, "software0"), rows);
    let page = read(folder.path(), "fixes/cve-1.html");
    for there in [
        "&lt;Suspended&gt; accounts</h1>",
        "href=\"https://advisories.example/1\"",
        "4.5.5, 4.4.12, 4.3.18, released on 2026-11-10",
        "30.0\u{a0}% of 100 instances run a fixed version, 12 days after the release",
        "data-name=\"fixed\" data-values=\"30 30 30\"",
        "data-name=\"behind\" data-values=\"50 50 50\"",
        "data-name=\"without\" data-values=\"15 15 15\"",
        "<th scope=\"row\">2026-11-22</th><td class=\"number\">30</td>",
        "<bdi>glitch</bdi>",
        "href=\"/data/fixes/cve-1.csv\"",
    ] {
        assert!(page.contains(there), "{there}: {page}");
    }
    assert!(!page.contains("a.example") && !page.contains("/?software="));
    for (name, there) in [
        ("software/software0.html", "/fixes/cve-1.html"),
        ("software/software0.html", "data-values=\"40 40 40\""),
        ("sitemap.xml", "/fixes/cve-1.html"),
        ("software.html", "/fixes/cve-1.html"),
        ("data.html", "/software.html#fixes"),
    ] {
        let page = read(folder.path(), name);
        assert!(page.contains(there), "{name}: {there}");
    }
}

#[test]
fn page_of_a_fix_without_counts_gives_the_reason() {
    for (days, software, expect) in [
        (0, "software0", "Counts begin with the next list"),
        (1, "rare", "is not among them now"),
    ] {
        let folder = written(with_fix(days, software), []);
        let page = read(folder.path(), "fixes/cve-1.html");
        assert!(page.contains(expect), "{page}");
    }
}

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use census::state::StateName;
use dump::{ListedRow, ListedState, Moment};
use flate2::write::GzEncoder;
use jiff::civil::date;
use proptest::prelude::*;
use protocol::Instance;
use publish::{Cancel, Disk, Tree, TreeError};

use super::assets::{ASSETS, PUSH_ASSETS};
use super::*;
use crate::answers::answer::{Answer, Salt};
use crate::answers::shards::Shape;
use crate::answers::why::{Place, Why};
use crate::answers::words::{FOUND, found_word};
use crate::error::SiteError;
use crate::facts::{ByState, Facts, Intake, Push};
use crate::history::{DAYS_MAX, Day, fit};
use crate::list::List;
use crate::software::{Candidates, rank};
use crate::text::shown;
use crate::write::tests::tree;
use crate::write::{Site, Written};
use dump::slugs::sha256;

mod fixes;

const MADE: i64 = 1_795_000_000_000;

fn by_state(alive: u64) -> ByState {
    [
        (StateName::Alive, alive),
        (StateName::Dead, 7 * alive),
        (StateName::OptedOut, 3),
    ]
    .into()
}

fn facts(days: usize) -> Facts {
    let before = jiff::Span::new().days(i64::try_from(days).unwrap());
    let mut day = date(2026, 11, 22).checked_sub(before).unwrap();
    let history = (0..days as u64)
        .map(|number| {
            day = day.tomorrow().unwrap();
            let wave = number * 7919 % 977;
            Day {
                day,
                by_state: by_state(20_000 + wave * 3),
                by_software: (0..20)
                    .map(|rank| (format!("software{rank}"), 9000 / (rank + 1) + wave))
                    .collect(),
                others: wave,
                appeared: wave % 90,
                left: wave % 70,
            }
        })
        .collect();
    Facts {
        made: Moment::from_milliseconds(MADE),
        rows_read: Moment::from_milliseconds(MADE),
        user_agent: "Fedicensus/0.1.0 (+https://census.example/about)".to_owned(),
        contact: "https://census.example/about".to_owned(),
        address: Some("https://census.example".to_owned()),
        intake: Intake::Open,
        push: Push::Open,
        known: by_state(21_000),
        salt: Salt::from_random(days as u128),
        history,
        ..crate::write::tests::facts()
    }
}

fn instance(host: &str, software: &str, version: &str) -> ListedRow {
    ListedRow {
        host: host.to_owned(),
        state: ListedState::Alive,
        instance: Instance {
            open_registrations: Some(true),
            ..kit::software(software, version)
        },
        first_seen: Moment::from_milliseconds(MADE - 86_400_000_000),
        last_alive: Moment::from_milliseconds(MADE - 3_600_000),
    }
}

struct Pages {
    tree: Tree,
    _folder: tempfile::TempDir,
}

impl Pages {
    fn path(&self) -> &Path {
        self.tree.folder()
    }
}

fn written(facts: Facts, rows: impl IntoIterator<Item = ListedRow>) -> Pages {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path());
    let mut site = Site::begin(&tree, facts).unwrap();
    for row in rows {
        site.instance(&row).unwrap();
    }
    site.finish().unwrap();
    Pages {
        tree,
        _folder: folder,
    }
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn pages_that_are_newer_than_their_list_say_so() {
    let foot = |facts| {
        let page = read(written(facts, []).path(), "index.html");
        page.split_once("<footer>").unwrap().1.to_owned()
    };
    assert!(!foot(facts(1)).contains("the list as of"));
    let held_back = Facts {
        rows_read: Moment::from_milliseconds(MADE - 86_400_000),
        ..facts(1)
    };
    assert!(foot(held_back).contains("the list as of <time datetime=\"2026-11-17T11:06:40Z\">"));
}

#[test]
fn start_page_promises_a_list_only_if_a_name_is_known() {
    let page = |known: ByState, progress: Option<&str>| {
        let facts = Facts {
            known,
            progress: progress.map(str::to_owned),
            ..facts(0)
        };
        read(written(facts, []).path(), "index.html")
    };
    let empty = page(ByState::new(), None);
    assert!(empty.contains("knows no servers yet") && !empty.contains("The list appears"));
    let seeds = [(StateName::Discovered, 5)].into();
    let first = page(seeds, Some("0 of 5 known names checked"));
    assert!(first.contains("The list appears here as soon as one of them has responded"));
    assert!(first.contains("UTC</time>: 0 of 5 known names checked."));
}

#[test]
fn pages_of_a_small_world() {
    let rows = [
        instance("a.example", "software0", "4.5.1"),
        instance("b.example", "software0", "4.5.0+glitch"),
        instance("c.example", "<b>\"Lemmy\" & co</b>", "0.19"),
    ];
    let facts = Facts {
        progress: Some("3 of 5 known names checked; 1 held".to_owned()),
        ..facts(3)
    };
    let folder = written(facts, rows);
    let pages = "index why owners data 404 429 software software/software0";
    for page in pages.split(' ').map(|page| format!("{page}.html")) {
        // One element per line, so that changes are readable.
        let text = read(folder.path(), &page).replace('>', ">\n");
        insta::assert_snapshot!(page.replace('/', "-"), text);
    }
}

#[test]
fn no_page_holds_anything_that_the_policy_forbids() {
    let folder = written(facts(40), [instance("a.example", "software0", "1")]);
    let mut pages = 0;
    for entry in ["", "software"] {
        for page in std::fs::read_dir(folder.path().join(entry)).unwrap() {
            let path = page.unwrap().path();
            if path.extension().is_some_and(|end| end == "html") {
                pages += 1;
                let text = std::fs::read_to_string(&path).unwrap();
                for never in [
                    " style=",
                    "<style",
                    " onclick=",
                    "javascript:",
                    "<script>",
                    "<iframe",
                    "<form action",
                ] {
                    assert!(!text.contains(never), "{}: {never}", path.display());
                }
                for source in text.split(" src=\"").skip(1) {
                    let is_here = source.starts_with('/') && !source.starts_with("//");
                    assert!(is_here, "{source:.40}");
                }
            }
        }
    }
    assert_eq!(pages, 10);
}

#[test]
fn files_of_plots_have_all_days_and_nothing_active() {
    let mut facts = facts(400);
    facts.title = "<script>".to_owned();
    facts.history[399].by_software = [("=1+1,\"x\"", 7), ("", 8)]
        .map(|(name, count)| (name.to_owned(), count))
        .to_vec();
    // The software of former days is none of the last.
    let software = "2026-11-22,\"'=1+1,\"\"x\"\"\",7\r\n2026-11-22,,8";
    let last = [
        ("listed", 401, "2026-11-22,78"),
        ("new-and-gone", 401, "2026-11-22,63,63"),
        ("software", 3, software),
        ("states", 401, "2026-11-22,0,20189,0,141323,0,0,3"),
    ];
    let mut pictures = 0;
    for (path, bytes) in plot_files(&facts) {
        let text = String::from_utf8(bytes).unwrap();
        if path.ends_with(".svg") {
            pictures += 1;
            assert!(text.contains("&lt;script&gt; https://census.example 2026-11-18</text>"));
            for never in ["<script", "<style", "style=", "class=", "href"] {
                assert!(!text.contains(never), "{path}: {never}");
            }
            continue;
        }
        let of_path = |(name, ..): &&(&str, _, _)| path == format!("plots/{name}.csv");
        let (_, count, end) = last.iter().find(of_path).unwrap();
        assert_eq!(text.lines().count(), *count, "{path}");
        assert!(text.ends_with(&format!("\r\n{end}\r\n")), "{path}");
    }
    assert_eq!(pictures, 3);
}

#[test]
fn links_to_files_of_plots_lead_to_them() {
    for (days, expect) in [(0, 0), (1, 1), (2, 6), (3, 8)] {
        let folder = written(facts(days), [instance("a.example", "software0", "1")]);
        let pages = ["index.html", "software/software0.html"].map(|page| read(folder.path(), page));
        let links = pages
            .iter()
            .flat_map(|page| page.split("href=\"/plots/").skip(1));
        let links: Vec<_> = links.filter_map(|link| link.split('"').next()).collect();
        assert_eq!(links.len(), expect, "{links:?}");
        for link in links {
            assert!(folder.path().join("plots").join(link).exists(), "{link}");
        }
        let files = plot_files(&facts(days));
        assert_eq!(files.len(), [1, 1, 5, 7][days]);
    }
}

#[test]
fn owners_page_without_an_intake_says_what_owners_can_do() {
    let page = owners(&Facts {
        intake: Intake::Closed,
        ..facts(0)
    });
    for says in ["robots.txt", "metadata.private", "write again"] {
        assert!(page.contains(says), "{says}");
    }
    assert!(!page.contains("/proof") && !page.contains("<form"));
}

#[test]
fn every_word_of_an_answer_stands_on_the_page_once() {
    let page = why(&facts(0), Shape::of(0));
    let found = FOUND
        .iter()
        .map(|found| format!("found-{}", found_word(*found)));
    let ids = Place::ALL
        .iter()
        .map(|place| format!("state-{}", place.as_str()))
        .chain(Why::ALL.iter().map(|why| format!("why-{}", why.as_str())))
        .chain(["why-unknown".to_owned(), "why-unknown-advice".to_owned()])
        .chain(found);
    for id in ids {
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
    }
}

/// The size of a file that nginx sends to a client that accepts gzip.
fn wire(bytes: &[u8]) -> usize {
    let mut zipped = GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut zipped, bytes).unwrap();
    zipped.finish().unwrap().len()
}

/// What only other pages load, or readers who press the button.
const OF_OTHER_PAGES: [&str; 8] = [
    "why.js",
    "owners.js",
    "sha256.js",
    "known.js",
    "hosts.js",
    "peers.js",
    "noscript.css",
    "notify.js",
];

#[test]
fn the_start_page_stays_below_60_kb_with_three_years_and_200_kinds_of_software() {
    let rows = (0..2000).map(|number| {
        let software = format!("software{}", number % 200);
        instance(&format!("h{number:05}.example"), &software, "1.0")
    });
    let folder = written(facts(DAYS_MAX), rows);
    let page = read(folder.path(), "index.html");
    let assets: usize = ASSETS
        .iter()
        .chain(&PUSH_ASSETS)
        .filter(|(name, _)| !OF_OTHER_PAGES.contains(name))
        .map(|(_, content)| wire(content.as_bytes()))
        .sum();
    let bytes = wire(page.as_bytes()) + assets;
    let plain = page.len();
    println!("start page: {plain} plain, {bytes} with all that it loads on the wire");
    assert!(bytes <= 60_000, "{bytes}");
    assert!(plain <= 400_000, "{plain}");
}

/// Without push, a site is byte for byte the same except for what the button needs.
#[test]
fn without_push_no_page_has_a_button_and_no_script_of_it_is_there() {
    let made = |push| {
        let facts = Facts { push, ..facts(3) };
        let folder = written(facts, [instance("a.example", "software0", "1")]);
        let name = |path: PathBuf| path.strip_prefix(folder.path()).unwrap().to_owned();
        let files = files(folder.path()).into_iter();
        let named = files.map(|(path, bytes)| (name(path), bytes));
        named.collect::<BTreeMap<_, _>>()
    };
    let (with, without) = (made(Push::Open), made(Push::Closed));
    let more = with.keys().filter(|path| !without.contains_key(*path));
    let scripts = ["notify.js", "notify.js.gz", "push.js", "push.js.gz"];
    assert!(more.eq(&scripts.map(PathBuf::from)));
    let mut buttons = 0;
    for (path, bytes) in &without {
        if path.extension().is_some_and(|end| end == "gz") {
            continue;
        }
        let [had, has] = [&with[path], bytes].map(|bytes| String::from_utf8_lossy(bytes));
        buttons += usize::from(had.contains("id=\"notify\""));
        assert_eq!(without_button(&had), has, "{}", path.display());
    }
    assert_eq!(buttons, 3);
}

#[test]
fn the_buttons_scripts_are_there_with_push_alone() {
    for (push, expect) in [(Push::Open, true), (Push::Closed, false)] {
        let folder = written(Facts { push, ..facts(0) }, []);
        for script in ["notify.js", "push.js", "push.js.gz"] {
            assert_eq!(folder.path().join(script).exists(), expect, "{script}");
        }
    }
}

/// A page without its notification button, the button's script and the text about it.
fn without_button(page: &str) -> String {
    let page = page
        .replace("<script type=\"module\" src=\"/push.js\"></script>", "")
        .replace(" unless you turn notifications on", "")
        .replace("<h3>Notifications</h3>", "");
    match page.split_once("<div class=\"scripted\"><p><button id=\"notify\"") {
        Some((before, rest)) => {
            let (_, after) = rest.split_once("</div>").unwrap();
            [before, after].concat()
        }
        None => page,
    }
}

/// Invariant I7: no file names a host that is not listed, whatever the answers contain.
#[test]
fn who_has_an_answer_is_named_nowhere_but_by_its_hash() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path());
    let mut site = Site::begin(&tree, facts(0)).unwrap();
    let host = protocol::Host::parse("left-alone.example").unwrap();
    site.answer(&host, &Answer::WITHHELD).unwrap();
    let written = site.finish().unwrap();
    assert_eq!((written.rows, written.answers), (0, 1));
    let files = files(tree.folder());
    for (path, bytes) in &files {
        let text = String::from_utf8_lossy(bytes);
        assert!(!text.contains("left-alone"), "{}", path.display());
    }
    // A shard for each first digit among them.
    assert!(files.len() > 16, "{}", files.len());
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// A million hosts have thousands of files and pages. Writing them takes longer than the time that
/// a container has to stop.
#[test]
fn a_cancelled_site_ends_at_any_look() {
    let hosts = ["a.example", "b.example"];
    let folder = tempfile::tempdir().unwrap();
    let made = |cancel: &Cancel| -> Result<(Written, usize), SiteError> {
        let tree = Tree::begin(Disk::hooked(|_call| Ok(())), folder.path(), cancel)?;
        let mut site = Site::begin(&tree, facts(2))?;
        for host in &hosts {
            site.instance(&instance(host, "software0", "1"))?;
            let answer = Answer {
                place: Place::Waiting,
                why: Why::Waiting,
                ..Answer::WITHHELD
            };
            site.answer(&protocol::Host::parse(host).unwrap(), &answer)?;
        }
        Ok((site.finish()?, files(tree.folder()).len()))
    };
    let mut looks = 0;
    let files = loop {
        match made(&Cancel::after(looks)) {
            Ok((_written, files)) => break files,
            Err(SiteError::Tree(TreeError::Cancelled)) => looks += 1,
            Err(error) => panic!("{looks}: {error}"),
        }
    };
    let readings = 3;
    let all = hosts.len() + files + readings * hosts.len();
    assert_eq!(usize::try_from(looks), Ok(all));
}

#[test]
fn a_contact_is_a_link_only_where_it_is_an_address() {
    let link = |contact: &str| {
        Facts {
            contact: contact.to_owned(),
            ..facts(0)
        }
        .contact_link()
    };
    let web = "https://a.example";
    assert_eq!(link(web).as_deref(), Some(web));
    assert_eq!(link("me@a.example").as_deref(), Some("mailto:me@a.example"));
    for contact in ["javascript:alert(1)//@", "data:text/html,x@y", "call us"] {
        assert_eq!(link(contact), None, "{contact}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn rendered(software_name: &str, version: &str) -> String {
    let mut facts = facts(2);
    for day in &mut facts.history {
        day.by_software = vec![(software_name.to_owned(), 7)];
    }
    facts.history = fit(facts.history);
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path());
    let mut list = List::new(&tree).unwrap();
    let mut candidates = Candidates::default();
    let row = instance("a.example", software_name, version);
    candidates.add(list.push(&row).unwrap().0.unwrap());
    let mut listed = list.finish().unwrap();
    // The one number that depends on the names' length.
    listed.wire_bytes = 0;
    let ranking = rank(candidates, &mut listed, sha256).unwrap();
    let page = &ranking.pages[0];
    let of_version = page
        .versions
        .minors
        .first()
        .map(|(minor, _)| page.query_of(minor).replace('&', "&amp;"));
    let text = [
        start(&facts, &listed, &ranking),
        all_software(&facts, 1, &ranking),
        software(&facts, 1, page),
    ]
    .concat()
    .replace(&format!("software/{}.", page.slug), "SLUG");
    let text = of_version.map_or(text.clone(), |query| text.replace(&query, "OF_VERSION"));
    text.replace(&page.query(), "QUERY")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A page with any names equals the page with plain names and the escaped names in their
    /// places: no part of them is markup.
    #[test]
    fn whatever_strangers_call_their_software_is_escaped_and_cut(
        name in prop_oneof![".{1,100}", "[<>&\"'/ =]{1,20}", Just("</title><script>alert(1)</script>".to_owned()), Just("\u{202e}x".repeat(5000))],
        // Not a number: numbers are cut to their minor version.
        version in prop_oneof!["x.{0,100}", Just("\"><img src=x>".to_owned())],
    ) {
        let plain = rendered("QQnameQQ", "QQversionQQ");
        if let Some(name_shown) = shown(&name) {
            let got = rendered(&name, &version);
            let expect = match shown(&version) {
                Some(version) => plain.replace("QQversionQQ", &escaped(&version)),
                None => return Ok(()),
            };
            // Not by prop_assert_eq: nobody reads two whole pages.
            prop_assert!(got == expect.replace("QQnameQQ", &escaped(&name_shown)), "{name_shown:?}");
        }
    }
}

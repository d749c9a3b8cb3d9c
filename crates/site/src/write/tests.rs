use std::fs;
use std::path::Path;

use dump::{ListedState, Moment};
use publish::{Cancel, Disk};

use super::*;
use crate::answers::answer::Salt;
use crate::facts::{ByState, Intake, Push, Reading};
use crate::fixes::VersionHistory;

pub(crate) fn facts() -> Facts {
    Facts {
        made: Moment::from_milliseconds(0),
        rows_read: Moment::from_milliseconds(0),
        user_agent: "Fedicensus".to_owned(),
        title: "Fedicensus".to_owned(),
        operator: None,
        licence: "CC0-1.0".to_owned(),
        contact: "https://census.example".to_owned(),
        address: None,
        intake: Intake::Closed,
        push: Push::Closed,
        reading: Reading::Instances,
        known: ByState::new(),
        progress: None,
        trouble: None,
        salt: Salt::from_random(7),
        history: Vec::new(),
        versions: VersionHistory::default(),
        published: dump::PublishedSet::default(),
    }
}

pub(crate) fn instance(host: &str, software: &str) -> ListedRow {
    ListedRow {
        host: host.to_owned(),
        state: ListedState::Alive,
        instance: kit::software(software, ""),
        first_seen: Moment::from_milliseconds(0),
        last_alive: Moment::from_milliseconds(0),
    }
}

pub(crate) fn tree(public: &Path) -> Tree {
    Tree::begin(Disk::hooked(|_call| Ok(())), public, &Cancel::default()).unwrap()
}

fn write(tree: &Tree, facts: Facts, rows: &[ListedRow]) {
    let mut site = Site::begin(tree, facts).unwrap();
    for row in rows {
        site.instance(row).unwrap();
    }
    site.finish().unwrap();
}

#[test]
fn each_software_has_its_instances_as_files() {
    let folder = tempfile::tempdir().unwrap();
    // More than a buffer holds.
    let row = |number: usize| {
        let software = ["lemmy", "a b"][number % 2];
        instance(&format!("h{number:04}.example"), software)
    };
    let rows: Vec<_> = (0..2000).map(row).collect();
    let tree = tree(folder.path());
    write(&tree, facts(), &rows);
    let names = fs::read(tree.path("software/lemmy.json")).unwrap();
    let names: Vec<String> = serde_json::from_slice(&names).unwrap();
    let expect: Vec<_> = rows.iter().step_by(2).collect();
    assert!(names.iter().eq(expect.iter().map(|row| &row.host)));
    let lines = fs::read_to_string(tree.path("software/lemmy.ndjson")).unwrap();
    let read = |line| serde_json::from_str(line).unwrap();
    let read: Vec<ListedRow> = lines.lines().map(read).collect();
    assert!(read.iter().eq(expect));
    let packed = fs::File::open(tree.path("software/lemmy.ndjson.gz")).unwrap();
    let unpacked = std::io::read_to_string(flate2::read::GzDecoder::new(packed));
    assert_eq!(unpacked.unwrap(), lines);
    let other = fs::read_dir(tree.path("software")).unwrap();
    // The page, names and rows, each plain and compressed.
    assert_eq!(other.count(), 2 * 6);
}

#[test]
fn a_sitemap_goes_with_the_address_that_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [instance("a.example", "mastodon")];
    let written = |address: Option<&str>| {
        let address = address.map(str::to_owned);
        let tree = tree(folder.path());
        write(&tree, Facts { address, ..facts() }, &rows);
        ["sitemap.xml", "robots.txt"].map(|name| fs::read_to_string(tree.path(name)))
    };
    let [map, robots] = written(Some("https://census.example"));
    let map = map.unwrap();
    for path in ["/", "/why.html", "/software/mastodon.html"] {
        let url = format!("<loc>https://census.example{path}</loc>");
        assert!(map.contains(&url), "{map}");
    }
    let line = "Sitemap: https://census.example/sitemap.xml\n";
    assert!(robots.unwrap().ends_with(line));
    let [map, robots] = written(None);
    assert!(map.is_err());
    assert_eq!(robots.unwrap(), "User-agent: *\nAllow: /\n");
}

/// Invariant I7.
#[test]
fn kept_pages_name_no_host_that_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let former = tree(folder.path());
    let hosts = ["a.example", "aa.example", "b.example"];
    let rows = hosts.map(|host| instance(host, if host == "b.example" { "lemmy" } else { "x" }));
    write(&former, facts(), &rows);
    former.publish().unwrap();
    let kept = |left: &[&str]| {
        let tree = tree(folder.path());
        crate::keep(&tree, |host| Ok::<_, SiteError>(left.contains(&host))).unwrap();
        let read = |name: &str| fs::read_to_string(tree.path(name)).ok();
        let names = |host: &str, name: &str| read(name).map(|text| text.contains(host));
        let list = hosts.map(|host| names(&format!("\n{host}\t"), "list.txt"));
        let there = [
            "software/x.html",
            "software/x.json.gz",
            "software/lemmy.ndjson",
            "index.html",
            "list.txt.gz",
            "why/index.json",
            "data.html",
        ];
        (list, there.map(|name| tree.path(name).exists()))
    };
    let all = [Some(true); 3];
    assert_eq!(kept(&[]), (all, [true; 7]));
    let list = [Some(false), Some(true), Some(true)];
    let there = [false, false, true, false, true, false, true];
    assert_eq!(kept(&["a.example"]), (list, there));
    // Pages without a list may name anyone.
    fs::remove_file(publish::current(folder.path()).join("list.txt")).unwrap();
    assert_eq!(kept(&[]), ([None; 3], [false; 7]));
}

#[test]
fn two_kinds_of_software_with_one_hash_both_have_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path());
    let mut list = List::new(&tree).unwrap();
    let mut candidates = Candidates::default();
    for (number, name) in ["AAAA", "BBBB"].iter().enumerate() {
        let row = instance(&format!("h{number}.example"), name);
        candidates.add(list.push(&row).unwrap().0.unwrap());
    }
    let mut listed = list.finish().unwrap();
    let ranking = software::rank(candidates, &mut listed, |_name| [7; 32]).unwrap();
    let [one, other] = &ranking.pages[..] else {
        panic!("{ranking:?}");
    };
    assert_ne!(one.slug, other.slug);
}

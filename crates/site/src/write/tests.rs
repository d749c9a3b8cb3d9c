use std::fs;
use std::io::Read as _;

use dump::{ListedState, Moment};

use super::*;
use crate::answers::answer::Salt;
use crate::facts::{ByState, Intake, Push, Reading};

fn facts() -> Facts {
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
        salt: Salt::from_random(7),
        history: Vec::new(),
        published: dump::PublishedSet::default(),
    }
}

fn instance(host: &str, software: &str) -> ListedRow {
    ListedRow {
        host: host.to_owned(),
        state: ListedState::Alive,
        instance: kit::software(software, ""),
        first_seen: Moment::from_milliseconds(0),
        last_alive: Moment::from_milliseconds(0),
    }
}

/// Publishes the pages of these kinds of software, whose names all have the same hash.
fn ranked(folder: &Path, software: &[&str]) -> (Ranking, Vec<Skipped>) {
    let mut staging = Staging::new(folder, Cancel::default());
    let mut list = List::new(folder, &mut staging).unwrap();
    let mut candidates = Candidates::default();
    for (number, name) in software.iter().enumerate() {
        let row = instance(&format!("h{number}.example"), name);
        candidates.add(list.push(&row).unwrap().unwrap());
    }
    let mut listed = list.finish().unwrap();
    let mut ranking = software::rank(candidates, &mut listed, |_name| [7; 32]).unwrap();
    write_software(&mut staging, &facts(), listed.rows, &mut ranking).unwrap();
    (ranking, staging.publish().unwrap())
}

#[test]
fn each_software_has_its_instances_as_files() {
    let folder = tempfile::tempdir().unwrap();
    // More than a buffer holds.
    let rows: Vec<_> = (0..2000)
        .map(|number| {
            instance(
                &format!("h{number:04}.example"),
                ["lemmy", "a b"][number % 2],
            )
        })
        .collect();
    let mut site = Site::begin(folder.path(), facts(), &Cancel::default()).unwrap();
    for row in &rows {
        site.instance(row).unwrap();
    }
    site.finish().unwrap().publish().unwrap();
    let names = fs::read(folder.path().join("software/lemmy.json")).unwrap();
    let names: Vec<String> = serde_json::from_slice(&names).unwrap();
    let expect: Vec<_> = rows.iter().step_by(2).collect();
    assert!(names.iter().eq(expect.iter().map(|row| &row.host)));
    let lines = fs::read_to_string(folder.path().join("software/lemmy.ndjson")).unwrap();
    let read: Vec<ListedRow> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(read.iter().eq(expect));
    let mut unpacked = String::new();
    let packed = fs::File::open(folder.path().join("software/lemmy.ndjson.gz")).unwrap();
    flate2::read::GzDecoder::new(packed)
        .read_to_string(&mut unpacked)
        .unwrap();
    assert_eq!(unpacked, lines);
    let other = fs::read_dir(folder.path().join("software")).unwrap();
    // The page, names and rows, each plain and compressed.
    assert_eq!(other.count(), 2 * 6);
}

#[test]
fn a_sitemap_goes_with_the_address_that_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name));
    let publish = |address: Option<&str>| {
        let facts = Facts {
            address: address.map(str::to_owned),
            // Each publication has a different salt.
            salt: Salt::from_random(u128::from(address.is_none())),
            ..facts()
        };
        let mut site = Site::begin(folder.path(), facts, &Cancel::default()).unwrap();
        site.instance(&instance("a.example", "mastodon")).unwrap();
        site.finish().unwrap().publish().unwrap();
    };
    publish(Some("https://census.example"));
    let map = read("sitemap.xml").unwrap();
    for path in ["/", "/why.html", "/software/mastodon.html"] {
        let url = format!("<loc>https://census.example{path}</loc>");
        assert!(map.contains(&url), "{map}");
    }
    let line = "Sitemap: https://census.example/sitemap.xml\n";
    assert!(read("robots.txt").unwrap().ends_with(line));
    publish(None);
    assert!(read("sitemap.xml").is_err());
    assert_eq!(read("robots.txt").unwrap(), "User-agent: *\nAllow: /\n");
}

#[test]
fn two_kinds_of_software_with_one_hash_both_have_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let (ranking, skipped) = ranked(folder.path(), &["AAAA", "BBBB"]);
    assert!(skipped.is_empty(), "{skipped:?}");
    assert_eq!(ranking.pages.len(), 2);
    for software in ranking.pages {
        let path = format!("{SOFTWARE_FOLDER}/{}.html", software.slug);
        let page = fs::read_to_string(folder.path().join(path)).unwrap();
        assert!(page.contains(&format!("<h1>{}", software.name)), "{page}");
    }
}

#[test]
fn a_page_that_cannot_take_its_place_is_told_and_the_site_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("software/pleroma.html");
    fs::create_dir_all(in_the_way.join("sub")).unwrap();
    let mut site = Site::begin(folder.path(), facts(), &Cancel::default()).unwrap();
    for (host, software) in [("a.example", "mastodon"), ("b.example", "pleroma")] {
        site.instance(&instance(host, software)).unwrap();
    }
    let skipped = site.finish().unwrap().publish().unwrap();
    let pages: Vec<_> = skipped
        .iter()
        .map(|skipped| skipped.page.as_str())
        .collect();
    assert_eq!(pages, ["software/pleroma.html"]);
    for name in [
        "index.html",
        "list.txt",
        "why/index.json",
        "software/mastodon.html",
    ] {
        assert!(folder.path().join(name).is_file(), "{name}");
    }
}

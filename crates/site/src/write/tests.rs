use std::fs;

use dump::{ListedState, Moment};

use super::*;
use crate::answers::answer::Salt;
use crate::facts::{ByState, Intake};

fn facts() -> Facts {
    Facts {
        made: Moment::from_milliseconds(0),
        rows_read: Moment::from_milliseconds(0),
        user_agent: "Fedicensus".to_owned(),
        contact: "https://census.example".to_owned(),
        address: None,
        intake: Intake::Closed,
        known: ByState::new(),
        salt: Salt::from_random(7),
        history: Vec::new(),
    }
}

fn instance(host: &str, software: &str) -> Instance {
    Instance {
        host: host.to_owned(),
        software: Some(software.to_owned()),
        version: None,
        state: ListedState::Alive,
        first_seen: Moment::from_milliseconds(0),
        last_alive: Moment::from_milliseconds(0),
        open_registrations: None,
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

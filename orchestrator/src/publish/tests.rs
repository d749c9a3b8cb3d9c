use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use census::class::PerClass;
use census::state::{OptedOutBy, State, Verdict};
use census::time::Jitter;
use census::transition::transition;
use protocol::Host;
use protocol::{DeadReason, Instance, Private};
use site::Salt;
use store::{DumpRecord, Store, Writer};

use super::*;

mod faults;
mod full;
mod pages;
mod stops;

use pages::texts_in;

const NOW: Timestamp = Timestamp(1_000_000);

/// A census of some responding hosts, `a.example.org` and so on, and a public folder.
struct Stage {
    folder: tempfile::TempDir,
    reader: Reader,
    writer: Writer,
    cancel: Cancel,
    disk: Disk,
    /// Of all pages, instead of a new one each time.
    salt: Option<Salt>,
    fixes: Vec<Fix>,
    _store: Store,
}

fn imprint(address: Option<&str>) -> Imprint {
    Imprint {
        title: "Fedicensus".to_owned(),
        operator: None,
        contact: "https://a.example/".to_owned(),
        address: address.map(str::to_owned),
        licence: "CC0-1.0".to_owned(),
    }
}

impl Stage {
    async fn new(letters: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("public")).unwrap();
        signature::keys(folder.path()).unwrap();
        let store = store::open(&folder.path().join("census.db")).unwrap();
        let writer = store.writer();
        let hosts = letters.chars().map(|letter| host(&letter.to_string()));
        writer.add_now(hosts.collect(), NOW).await.unwrap();
        let stage = Self {
            reader: store.reader().unwrap(),
            folder,
            writer,
            cancel: Cancel::default(),
            disk: Self::sound_disk(),
            salt: None,
            fixes: Vec::new(),
            _store: store,
        };
        stage.find(Private::No).await;
        stage
    }

    async fn find(&self, private: Private) {
        let alive = Verdict::Alive(Instance {
            private,
            open_registrations: Some(true),
            ..kit::software("mastodon", "=4.4")
        });
        let taken = self
            .writer
            .take_due(
                NOW,
                PerClass::each(|_class| 99),
                vec![Jitter(0); 99],
                Calendar::REAL,
            )
            .await;
        for taken in taken.unwrap() {
            let change = transition(&taken.record, &alive, NOW, Jitter(0), Calendar::REAL);
            self.writer.commit(change).await.unwrap();
        }
    }

    async fn opt_out(&self, name: &str) {
        let host = host(name);
        self.writer
            .opt_out(&host, OptedOutBy::Owner, NOW)
            .await
            .unwrap();
    }

    fn sound_disk() -> Disk {
        Disk::hooked(|_call| Ok(()))
    }

    fn public(&self) -> PathBuf {
        self.folder.path().join("public")
    }

    fn published(&self) -> PathBuf {
        ::publish::current(&self.public())
    }

    /// Asserts that the public folder has one tree and the link to it.
    #[track_caller]
    fn is_tidy(&self) {
        let names = std::fs::read_dir(self.public()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    fn publisher(&self) -> Publisher {
        Publisher {
            disk: self.disk.clone(),
            public_dir: self.public(),
            data_dir: self.folder.path().to_owned(),
            imprint: imprint(Some("https://census.example")),
            fixes: self.fixes.clone(),
        }
    }

    fn publish_without(&self, deny: &str, force: Force) -> Result<u64, PublishError> {
        self.publish_at(NOW, deny, force)
    }

    fn publish_at(&self, now: Timestamp, deny: &str, force: Force) -> Result<u64, PublishError> {
        let deny = DomainList::parse(deny.as_bytes(), Path::new("deny")).unwrap();
        let occasion = Occasion {
            now,
            calendar: Calendar::REAL,
            deny: &deny,
            force,
            cancel: &self.cancel,
        };
        let tree = self.publisher().begin(&self.cancel)?;
        let set = self.publisher().write(&tree, &self.reader, occasion)?;
        if !matches!(
            set,
            Set::HeldBack {
                is_changed: false,
                ..
            }
        ) {
            tree.publish()?;
        }
        match set {
            Set::New {
                names, unsigned, ..
            } => unsigned.map_or(Ok(names), |error| Err(PublishError::Unsigned(error))),
            Set::HeldBack { why, .. } => Err(why.into()),
        }
    }

    async fn publish(&self, force: Force) -> u64 {
        let names = self.publish_without("", force).unwrap();
        self.record(names).await;
        names
    }

    /// Records a full list that was published.
    async fn record(&self, names: u64) {
        let dump = DumpRecord {
            at: NOW,
            names,
            is_full: true,
        };
        self.writer.record_dump(dump).await.unwrap();
    }

    fn is_held_back(&self, deny: &str) {
        let outcome = self.publish_without(deny, Force::No);
        assert!(
            matches!(outcome, Err(PublishError::HeldBack(_))),
            "{outcome:?}"
        );
    }

    async fn die(&self, name: &str) {
        let later = Timestamp(NOW.0 + 30 * 24 * 60 * 60 * 1000);
        let dead = Verdict::Dead {
            reason: DeadReason::Timeout,
            status: None,
            to: None,
        };
        for _ in 0..9 {
            let taken = self
                .writer
                .take_one(&host(name), NOW, Jitter(0), Calendar::REAL)
                .await;
            let record = taken.unwrap().unwrap().record;
            let at = if matches!(record.state, State::Alive) {
                NOW
            } else {
                later
            };
            let change = transition(&record, &dead, at, Jitter(0), Calendar::REAL);
            self.writer.commit(change).await.unwrap();
        }
    }

    /// The files that name it, compressed or not.
    fn naming(&self, letter: &str) -> Vec<String> {
        let name = format!("{letter}.example.org");
        self.files()
            .into_iter()
            .filter(|(place, bytes)| unpacked(place, bytes).contains(&name))
            .map(|(place, _)| place)
            .collect()
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let software = "data/software";
        for folder in ["", "data", software, "data/schema", dump::CHANGES_FOLDER] {
            for entry in std::fs::read_dir(self.published().join(folder)).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_file() {
                    let place = format!("{folder}/{}", entry.file_name().to_str().unwrap());
                    let place = place.trim_start_matches('/').to_owned();
                    files.insert(place, std::fs::read(entry.path()).unwrap());
                }
            }
        }
        files
    }

    fn names(&self) -> Vec<String> {
        serde_json::from_slice(&self.files()[dump::NODES_FILE]).unwrap()
    }

    /// Asserts that each file names exactly these hosts, compressed or not.
    #[track_caller]
    fn holds(&self, letters: &str) {
        let files = self.files();
        for (place, bytes) in &files {
            let text = unpacked(place, bytes);
            let has_rows = ["nodes.json", "instances.", "by-software.", "software/"]
                .iter()
                .any(|name| place.trim_start_matches("data/").starts_with(name));
            for letter in 'a'..='h' {
                let is_there = text.contains(&format!("{letter}.example.org"));
                let expect = has_rows && letters.contains(letter);
                // Files of changes may name listed hosts.
                let may = place.starts_with(dump::CHANGES_FOLDER) && letters.contains(letter);
                assert!(is_there == expect || may, "{letter} in {place}");
            }
            assert!(
                !place.rsplit('/').next().unwrap().starts_with('.'),
                "{place}"
            );
        }
        let count = |place: &str| {
            let value: serde_json::Value = serde_json::from_slice(&files[place]).unwrap();
            value["instances"].as_u64().unwrap()
        };
        let expect = u64::try_from(letters.len()).unwrap();
        assert_eq!(count("data/index.json"), expect);
        assert_eq!(count("data/software.json"), expect);
        // The expected files with their compressed copies: the list, that of one software, a day's
        // changes, the feeds, the index. Then schemas, signature and key.
        let expect = 2 + (6 + 1 + 1 + 2 + 1) * 2 + 6 + 2;
        assert_eq!(files.len(), expect, "{:?}", files.keys());
        self.is_told_and_signed(&files);
    }

    /// The index lists each file except those derived from it, and none that is missing.
    #[track_caller]
    fn is_told_and_signed(&self, files: &BTreeMap<String, Vec<u8>>) {
        let index = &files["data/index.json"];
        let value: serde_json::Value = serde_json::from_slice(index).unwrap();
        let told = value["files"].as_array().unwrap().iter();
        let mut told: Vec<_> = told
            .map(|file| format!("data/{}", file["name"].as_str().unwrap()))
            .collect();
        for (entry, place) in value["files"].as_array().unwrap().iter().zip(&told) {
            let digest = dump::changes::Sha256Hex::of(&files[place]);
            assert_eq!(entry["sha256"], digest.as_str(), "{place}");
        }
        told.extend(
            [
                dump::NODES_FILE,
                "nodes.json.gz",
                "data/index.json",
                "data/index.json.gz",
                "data/index.json.minisig",
                "data/fedicensus.pub",
            ]
            .map(str::to_owned),
        );
        let changes = ["1970-01-01.ndjson", "feed.atom", "weekly.atom"];
        told.extend(changes.map(|name| format!("{}/{name}.gz", dump::CHANGES_FOLDER)));
        told.sort();
        assert_eq!(told, files.keys().cloned().collect::<Vec<_>>());
        let keys = signature::keys(self.folder.path()).unwrap();
        let signature = keys.key().sign(index, dump::INDEX_FILE, moment(NOW));
        assert_eq!(files["data/index.json.minisig"], signature.as_bytes());
        let public = keys.key().public().to_file();
        assert_eq!(files["data/fedicensus.pub"], public.as_bytes());
    }

    fn sections(&self) -> Vec<dump::changes::Section> {
        let place = format!("{}/1970-01-01.ndjson", dump::CHANGES_FOLDER);
        dump::line::parse(&self.files()[&place]).unwrap()
    }
}

fn unpacked(place: &str, bytes: &[u8]) -> String {
    let plain = if place.ends_with(".gz") {
        let mut plain = Vec::new();
        let mut packed = flate2::read::GzDecoder::new(bytes);
        std::io::Read::read_to_end(&mut packed, &mut plain).unwrap();
        plain
    } else {
        bytes.to_vec()
    };
    String::from_utf8_lossy(&plain).into_owned()
}

fn host(letter: &str) -> Host {
    Host::parse(&format!("{letter}.example.org")).unwrap()
}

#[tokio::test]
async fn a_row_says_what_the_census_knows() {
    let stage = Stage::new("a").await;
    stage.publish(Force::No).await;
    let line = &stage.files()["data/instances.ndjson"];
    let row: serde_json::Value = serde_json::from_slice(line).unwrap();
    for (member, expect) in [
        ("host", "a.example.org".into()),
        ("software", "mastodon".into()),
        ("version", "=4.4".into()),
        ("state", "alive".into()),
        ("first_seen", "1970-01-01T00:16:40Z".into()),
        ("last_alive", "1970-01-01T00:16:40Z".into()),
        ("open_registrations", serde_json::Value::from(true)),
    ] {
        assert_eq!(row[member], expect, "{member}");
    }
}

/// Invariant I7.
#[tokio::test]
async fn who_opted_out_or_is_hidden_or_denied_is_in_no_file_of_the_next_set() {
    let stage = Stage::new("abcde").await;
    stage.publish(Force::No).await;
    stage.holds("abcde");
    stage.opt_out("a").await;
    let shown = stage
        .writer
        .take_one(&host("b"), NOW, Jitter(0), Calendar::REAL)
        .await;
    let alive = kit::alive_with(Private::Yes);
    let record = shown.unwrap().unwrap().record;
    let change = transition(&record, &alive, NOW, Jitter(0), Calendar::REAL);
    stage.writer.commit(change).await.unwrap();
    let names = stage.publish_without("c.example.org\n", Force::Yes);
    assert_eq!(names.unwrap(), 2);
    stage.holds("de");
}

/// Invariants I7 and I11 together.
#[tokio::test]
async fn held_back_set_still_drops_opted_out_and_denied_hosts() {
    let stage = Stage::new("abcd").await;
    stage.publish(Force::No).await;
    stage.opt_out("a").await;
    stage.opt_out("b").await;
    stage.is_held_back("d.example.org\n");
    stage.holds("c");
    assert_eq!(
        stage.publish(Force::Yes).await,
        2,
        "the record of whom the operator denied is as it was"
    );
    let published = stage.publish_without("d.example.org\n", Force::Yes);
    assert_eq!(published.unwrap(), 1);
    stage.holds("c");
}

/// Invariant I7: a dead host has no row left to remove, but the changes name it.
#[tokio::test]
async fn who_opts_out_after_dying_is_named_by_no_change_though_the_list_is_held_back() {
    let stage = Stage::new("abcde").await;
    stage.publish(Force::No).await;
    stage.die("a").await;
    assert_eq!(stage.publish(Force::No).await, 4);
    let named = stage.naming("a");
    assert!(
        named.len() == 4,
        "the day's file, the feed, both packed: {named:?}"
    );
    stage.record(1000).await;
    stage.is_held_back("");
    assert_eq!(stage.naming("a"), named);
    stage.opt_out("a").await;
    stage.is_held_back("");
    assert_eq!(stage.naming("a"), Vec::<String>::new());
    stage.holds("bcde");
    let files = stage.files();
    stage.is_held_back("");
    assert!(stage.files() == files, "once is enough");
}

/// A dump that is held back is tried again every five minutes: readers who ask whether it has
/// changed must get "no".
#[tokio::test]
async fn a_set_from_which_nobody_has_to_go_stays_as_it_is() {
    let stage = Stage::new("abcd").await;
    stage.publish(Force::No).await;
    stage.record(1000).await;
    let written = || std::fs::metadata(stage.published().join("data/index.json")).unwrap();
    let (before, files) = (written().modified().unwrap(), stage.files());
    stage.is_held_back("");
    assert_eq!(written().modified().unwrap(), before);
    assert!(stage.files() == files);
}

/// Removing a name must not make last week's rows look new to readers of the index.
#[tokio::test]
async fn the_rows_of_a_set_that_is_held_back_are_as_old_as_they_are() {
    let stage = Stage::new("abcd").await;
    stage.publish(Force::No).await;
    let times = || {
        let index: serde_json::Value =
            serde_json::from_slice(&stage.files()["data/index.json"]).unwrap();
        let time = |member: &str| index[member].as_str().unwrap().to_owned();
        (time("made"), time("rows_read"))
    };
    let read = "1970-01-01T00:16:40Z".to_owned();
    assert_eq!(times(), (read.clone(), read.clone()));
    stage.record(1000).await;
    for (hour, letter, made) in [(1, "a", "01:16:40"), (2, "b", "02:16:40")] {
        stage.opt_out(letter).await;
        let now = Timestamp(NOW.0 + hour * 60 * 60 * 1000);
        stage.publish_at(now, "", Force::No).unwrap_err();
        assert_eq!(times(), (format!("1970-01-01T{made}Z"), read.clone()));
    }
    // Without an index, the last recorded list gives the time.
    std::fs::remove_file(stage.published().join("data/index.json")).unwrap();
    let now = Timestamp(NOW.0 + 3 * 60 * 60 * 1000);
    stage.publish_at(now, "", Force::No).unwrap_err();
    assert_eq!(times(), ("1970-01-01T03:16:40Z".to_owned(), read));
    stage.publish_at(now, "", Force::Yes).unwrap();
    assert_eq!(times().0, times().1);
}

/// The rows stay as published, whatever the census has forgotten since.
#[tokio::test]
async fn a_set_that_is_held_back_keeps_those_whom_the_census_knows_no_more() {
    let before = Stage::new("abcd").await;
    before.publish(Force::No).await;
    let stage = Stage::new("d").await;
    before.opt_out("d").await;
    for (place, bytes) in before.files() {
        let path = stage.public().join(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    stage.record(4).await;
    stage.opt_out("d").await;
    stage.is_held_back("");
    stage.holds("abc");
}

#[tokio::test]
async fn a_damaged_row_goes_and_the_others_stay() {
    let stage = Stage::new("abcd").await;
    stage.publish(Force::No).await;
    let path = stage.published().join("data/instances.ndjson");
    let mut rows = std::fs::read(&path).unwrap();
    rows[0] = b'[';
    std::fs::write(&path, rows).unwrap();
    stage.record(1000).await;
    stage.is_held_back("");
    stage.holds("bcd");
}

/// Invariant I7: not even the changes name a host that opted out, and a mirror of an earlier set
/// drops the name all the same.
#[tokio::test]
async fn what_changed_is_told_from_set_to_set_and_names_nobody_who_left() {
    let stage = Stage::new("abc").await;
    stage.publish(Force::No).await;
    let rows = dump::standing_rows(&stage.published()).unwrap().unwrap();
    let mut mirror = dump::changes::Mirror::new(rows.map(|row| row.unwrap().into()));
    stage.writer.add_now(vec![host("d")], NOW).await.unwrap();
    stage.find(Private::No).await;
    stage.publish(Force::No).await;
    stage.holds("abcd");
    stage.opt_out("a").await;
    stage.opt_out("d").await;
    stage.publish(Force::Yes).await;
    stage.holds("bc");
    let sections = stage.sections();
    let counts: Vec<_> = sections
        .iter()
        .map(|section| (section.header.counts.appeared, section.header.counts.left))
        .collect();
    assert_eq!(counts, [(0, 0), (1, 0), (0, 2)]);
    let place = format!("{}/1970-01-01.ndjson", dump::CHANGES_FOLDER);
    let file = &stage.files()[&place];
    mirror.follow([file.as_slice()]).unwrap();
    let names: Vec<_> = mirror.rows().map(|row| row.host.clone()).collect();
    assert_eq!(names, ["b.example.org", "c.example.org"]);
}

/// An opt-out must not wait until someone has repaired a key.
#[tokio::test]
async fn a_set_that_can_not_be_signed_is_published_and_says_so() {
    let stage = Stage::new("abcd").await;
    stage.publish(Force::No).await;
    let key = stage.folder.path().join("signing.key");
    let whole = std::fs::read(&key).unwrap();
    std::fs::write(&key, "").unwrap();
    stage.opt_out("a").await;
    let is_not_signed = |says: &str| {
        let error = stage.publish_without("", Force::Yes).unwrap_err();
        assert!(matches!(error, PublishError::Unsigned(_)), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        let files = stage.files();
        assert!(String::from_utf8_lossy(&files["data/index.json.minisig"]).contains("not signed"));
        assert!(
            !String::from_utf8_lossy(&files[dump::NODES_FILE]).contains("a.example.org"),
            "whoever left has gone"
        );
    };
    is_not_signed("is empty");
    assert_eq!(
        std::fs::read(&key).unwrap(),
        b"",
        "no key is made in its place"
    );
    std::fs::remove_file(&key).unwrap();
    is_not_signed("is missing");
    assert!(!key.exists(), "it may be in a backup, and readers know it");
    std::fs::write(&key, whole).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    stage.publish(Force::No).await;
    stage.holds("bcd");
}

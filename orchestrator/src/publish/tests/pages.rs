//! The pages next to the set: made from the same rows, with public content only, and independent of
//! failures of the set.

use census::group::Decision;
use census::version::{Release, VersionHosts};
use site::answer::Key;
use site::facts::{Intake, Push, Reading};
use store::{DayCounts, Decided};

use super::*;
use crate::ground::clock::Random;
use crate::inspect::explain::{Entry, explain};
use crate::publish::pages::About;
use crate::publish::round::{Done, Round};
use scheduler::publication::Extent;

impl Stage {
    pub(super) fn round(&self, deny: &str, force: Force) -> Result<u64, PublishError> {
        self.make(deny, force, Extent::Full).names
    }

    pub(super) fn make(&self, deny: &str, force: Force, extent: Extent) -> Done {
        let deny = DomainList::parse(deny.as_bytes(), Path::new("deny")).unwrap();
        let about = About {
            imprint: imprint(None),
            intake: Intake::Closed,
            push: Push::Closed,
            reading: Reading::Instances,
            trouble: None,
        };
        let round = Round {
            publisher: &self.publisher(),
            about: &about,
            reader: &self.reader,
            writer: &self.writer,
            occasion: Occasion {
                now: NOW,
                calendar: Calendar::REAL,
                deny: &deny,
                force,
                cancel: &self.cancel,
            },
            salt: self.salt.unwrap_or_else(|| Random::from_os().salt()),
        };
        tokio::task::block_in_place(|| round.make(extent))
    }

    async fn judge(&self, letter: &str, verdict: &Verdict) {
        let taken = self
            .writer
            .take_one(&host(letter), NOW, Jitter(0), Calendar::REAL)
            .await;
        let record = taken.unwrap().unwrap().record;
        let change = transition(&record, verdict, NOW, Jitter(0), Calendar::REAL);
        self.writer.commit(change).await.unwrap();
    }

    /// Every published file as uncompressed text, by its place.
    pub(super) fn texts(&self) -> BTreeMap<PathBuf, String> {
        texts_in(&self.published())
    }

    /// Asserts that these hosts are on the pages and in the set, and no other host is in any file.
    #[track_caller]
    fn shows(&self, letters: &str) {
        let texts = self.texts();
        for letter in 'a'..='h' {
            let name = format!("{letter}.example.org");
            let there: Vec<_> = texts
                .iter()
                .filter(|(_, text)| text.contains(&name))
                .map(|(place, _)| place.as_path())
                .collect();
            if letters.contains(letter) {
                for place in ["list.txt", "software/mastodon.html", "nodes.json"] {
                    assert!(there.contains(&Path::new(place)), "{name} {there:?}");
                }
            } else {
                assert_eq!(there, Vec::<&Path>::new(), "{name}");
            }
        }
    }

    /// Asserts that pages written again without the set list exactly these hosts, whatever the set
    /// contains.
    #[track_caller]
    fn lists(&self, letters: &str) {
        let done = self.make("", Force::No, Extent::Pages);
        assert!(done.has_pages, "{done:?}");
        let list = std::fs::read_to_string(self.published().join("list.txt")).unwrap();
        let hosts = list.lines().skip(1).filter_map(|line| line.get(..1));
        assert_eq!(hosts.collect::<String>(), letters);
    }

    /// The answer for a host: its state, why, and whether it is listed.
    fn answer(&self, letter: &str) -> (String, String, bool) {
        let entry = self.entry(letter);
        let word = |at: usize| entry[at].as_str().unwrap_or_default().to_owned();
        (word(0), word(1), entry[3].as_bool().unwrap_or_default())
    }

    /// The published answer for a host; null if there is none.
    fn entry(&self, letter: &str) -> serde_json::Value {
        let read = |path: &Path| -> serde_json::Value {
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
        };
        let folder = self.published().join("why");
        let index = read(&folder.join("index.json"));
        let salt = index["salt"].as_str().unwrap();
        let bits = u128::from_str_radix(salt, 16).unwrap();
        let digits = Key::of(Salt::from_random(bits), &host(letter)).digits();
        // The stage has only a few hosts, so one digit names a file.
        let (shard, key) = (digits.split_at(1).0, digits.split_at(3).1);
        let shard = read(&folder.join(salt).join(format!("{shard}.json")));
        shard["hosts"][key].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fix_has_a_page_and_a_file_in_the_index() {
    let mut stage = Stage::new("abcd").await;
    stage.judge("a", &kit::alive()).await;
    stage.fixes = vec![Fix {
        id: "cve-1".to_owned(),
        software: "mastodon".to_owned(),
        date: jiff::civil::date(1969, 12, 31),
        title: "A flaw".to_owned(),
        link: "https://advisories.example/1".to_owned(),
        fixed: vec![Release::parse("4.5.5").unwrap()],
    }];
    let fixed = VersionHosts {
        version: Some("4.5.5".to_owned()),
        variant: None,
        hosts: 2,
    };
    let versions = SoftwareVersions {
        software: "mastodon".to_owned(),
        versions: [fixed].into_iter().chain(VersionHosts::rest(1)).collect(),
        minors: vec![("4.5".to_owned(), 2)],
    };
    let yesterday = DayCounts {
        day: -1,
        by_state: Vec::new(),
        by_software: vec![("mastodon".to_owned(), 3)],
        others: 0,
        appeared: 0,
        died: 0,
        versions: vec![versions],
    };
    stage.writer.record_day(yesterday).await.unwrap();
    let file = |stage: &Stage, place: &str| stage.texts().remove(Path::new(place)).unwrap();
    // The one that "=4.4" is can't be told.
    let expect = "day,variant,fixed,behind,without,unclear\r\n\
        1969-12-31,,2,0,0,0\r\n\
        1969-12-31,(rest),0,0,0,1\r\n\
        1970-01-01,,0,0,0,3\r\n\
        1970-01-01,glitch,0,1,0,0\r\n";
    stage.round("", Force::No).unwrap();
    assert_eq!(file(&stage, "data/fixes/cve-1.csv"), expect);
    assert_eq!(file(&stage, "data/fixes/cve-1.csv.gz"), expect);
    let index = file(&stage, "data/index.json");
    assert!(index.contains("\"fixes/cve-1.csv\"") && index.contains("\"fixes/cve-1.csv.gz\""));
    let page = file(&stage, "fixes/cve-1.html");
    let finding = "0.0\u{a0}% of 4 instances run a fixed version, 1 day after the release";
    assert!(page.contains(finding), "{page}");
    let software = file(&stage, "software/mastodon.html");
    assert!(software.contains("id=\"minors\"") && software.contains("/fixes/cve-1.html"));
    // A list that is held back records nothing.
    stage.record(1000).await;
    stage.opt_out("a").await;
    stage.round("", Force::No).unwrap_err();
    assert_eq!(file(&stage, "data/fixes/cve-1.csv"), expect);
    assert!(file(&stage, "fixes/cve-1.html").contains(finding));
}

/// Every file in a tree as uncompressed text, by its place.
pub(super) fn texts_in(tree: &Path) -> BTreeMap<PathBuf, String> {
    // Followed once, like a reader who opens a folder.
    let tree = tree.canonicalize().unwrap();
    let mut folders = vec![tree.clone()];
    let mut texts = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let place = path.strip_prefix(&tree).unwrap();
            let text = unpacked(place.to_str().unwrap(), &bytes);
            texts.insert(place.to_owned(), text);
        }
    }
    texts
}

/// Invariant I7.
#[tokio::test(flavor = "multi_thread")]
async fn who_opted_out_or_is_denied_is_on_no_page_and_can_be_asked_for() {
    let stage = Stage::new("abcde").await;
    stage.round("", Force::No).unwrap();
    stage.shows("abcde");
    let listed = ("alive".to_owned(), "lives".to_owned(), true);
    assert_eq!(stage.answer("a"), listed);
    stage.opt_out("a").await;
    assert_eq!(stage.round("b.example.org # spam", Force::Yes).unwrap(), 3);
    stage.shows("cde");
    let owner = ("withheld".to_owned(), "withheld".to_owned(), false);
    assert_eq!(stage.answer("a"), owner);
    let denied = ("withheld".to_owned(), "withheld".to_owned(), false);
    assert_eq!(stage.answer("b"), denied);
    assert_eq!(stage.answer("f"), Default::default());
}

/// Anyone with a list of names can look each of them up.
#[tokio::test(flavor = "multi_thread")] // S73
async fn page_does_not_reveal_who_left_a_host_out() {
    let stage = Stage::new("abcdefg").await;
    for (letter, by) in [
        ("a", OptedOutBy::Owner),
        ("b", OptedOutBy::Moderator),
        ("c", OptedOutBy::Robots),
    ] {
        stage.writer.opt_out(&host(letter), by, NOW).await.unwrap();
    }
    stage.judge("d", &Verdict::OptedOut).await;
    let hides = kit::alive_with(Private::Yes);
    stage.judge("e", &hides).await;
    stage.round("f.example.org # spam", Force::Yes).unwrap();
    let expect = serde_json::json!(["withheld", "withheld", null, false, null, null]);
    for letter in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(stage.entry(letter), expect, "{letter}");
    }
    assert_eq!(stage.entry("g")[1], "lives");
    // Now only its last verdict says that it had opted out.
    stage.writer.park(&host("d"), NOW).await.unwrap();
    stage.round("", Force::Yes).unwrap();
    assert_eq!(stage.entry("d"), expect, "parked");
    let back = stage.writer.unpark(|_| true, NOW, 7, Calendar::REAL);
    assert_eq!(back.await.unwrap(), 1);
    stage.round("", Force::Yes).unwrap();
    let back = stage.entry("d");
    assert_eq!(
        (&back[0], &back[2]),
        (&"discovered".into(), &serde_json::Value::Null)
    );
}

/// Invariants I7 and I11 together. 410 is one way to opt out.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_set_that_is_held_back_let_go_of_who_opted_out() {
    let stage = Stage::new("abcd").await;
    stage.round("", Force::No).unwrap();
    stage.opt_out("a").await;
    stage.judge("b", &Verdict::Gone).await;
    let outcome = stage.round("", Force::No);
    assert!(
        matches!(outcome, Err(PublishError::HeldBack(_))),
        "{outcome:?}"
    );
    stage.shows("cd");
    let gone = ("dying".to_owned(), "gone".to_owned(), false);
    assert_eq!(stage.answer("b"), gone);
}

/// Invariant I7 for hosts that neither opted out nor are on the deny-list, also while no set can be
/// written.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_set_that_is_held_back_let_go_of_who_hides_and_of_a_denied_group() {
    let stage = Stage::new("abcd").await;
    let names = crate::admit::gate::tests::names();
    stage.writer.group_new(names, 0).await.unwrap();
    stage.round("", Force::No).unwrap();
    let hides = kit::alive_with(Private::Yes);
    stage.judge("a", &hides).await;
    stage.lists("bcd");
    stage.record(1000).await;
    stage.round("", Force::No).unwrap_err();
    stage.shows("bcd");
    let hidden = ("withheld".to_owned(), "withheld".to_owned(), false);
    assert_eq!(stage.answer("a"), hidden);

    let denied = Decided {
        at: NOW,
        decision: Decision::Deny,
        reason: "a farm".to_owned(),
        who: "test".to_owned(),
    };
    let domain = "example.org".to_owned();
    let decided = stage.writer.decide_group(domain, denied, Calendar::REAL);
    assert_eq!(decided.await.unwrap().hosts, 4);
    stage.lists("");
    stage.round("", Force::No).unwrap_err();
    stage.shows("");
    let denied = ("withheld".to_owned(), "withheld".to_owned(), false);
    assert_eq!(stage.answer("b"), denied);
}

/// An answer agrees with the files next to it, and with the next list.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_tells_who_stands_on_an_older_list_and_who_is_not_on_it_yet() {
    let stage = Stage::new("abcd").await;
    stage.round("", Force::No).unwrap();
    for letter in ["a", "b"] {
        let to = host("x");
        stage.judge(letter, &Verdict::Moved { to }).await;
    }
    stage
        .writer
        .add_now(vec![host("e"), host("x")], NOW)
        .await
        .unwrap();
    stage.find(Private::No).await;
    stage.record(1000).await;
    stage.round("", Force::No).unwrap_err();
    stage.shows("abcd");
    let answer = |state: &str, why: &str, listed| (state.to_owned(), why.to_owned(), listed);
    assert_eq!(stage.answer("a"), answer("moving", "leaves_next", true));
    assert_eq!(stage.answer("c"), answer("alive", "lives", true));
    assert_eq!(stage.answer("e"), answer("alive", "next_list", false));
    stage.round("", Force::Yes).unwrap();
    assert_eq!(
        stage.answer("a"),
        answer("moving", "moved_to_listed", false)
    );
    assert_eq!(stage.answer("e"), answer("alive", "lives", true));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stands_on_the_list_and_is_not_known_any_more_has_an_answer_too() {
    let before = Stage::new("ab").await;
    before.round("", Force::No).unwrap();
    let stage = Stage::new("b").await;
    for (place, bytes) in before.files() {
        let path = stage.public().join(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    stage.record(1000).await;
    stage.round("", Force::No).unwrap_err();
    stage.shows("ab");
    let leaves = ("alive".to_owned(), "leaves_next".to_owned(), true);
    assert_eq!(stage.answer("a"), leaves);
}

/// Mirrors fetch each new set, and pages are thousands of files.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_tried_again_makes_no_more_anew_than_it_must() {
    let stage = Stage::new("abcd").await;
    stage.round("", Force::No).unwrap();
    let written = |place: &str| {
        let file = std::fs::metadata(stage.published().join(place)).unwrap();
        std::os::unix::fs::MetadataExt::ino(&file)
    };
    let both = || (written("data/index.json"), written("why/index.json"));
    let (set, pages) = both();
    let done = stage.make("", Force::No, Extent::Pages);
    assert_eq!(done.names.unwrap(), 4);
    assert!(
        done.has_pages && written("data/index.json") == set && written("why/index.json") != pages
    );

    stage.record(1000).await;
    let former = both();
    let done = stage.make("", Force::No, Extent::ListFirst);
    assert!(matches!(done.names, Err(PublishError::HeldBack(_))));
    assert!(done.has_pages && both() == former);
    stage.opt_out("a").await;
    let done = stage.make("", Force::No, Extent::ListFirst);
    assert!(matches!(done.names, Err(PublishError::HeldBack(_))));
    assert!(done.has_pages);
    stage.shows("bcd");
    let done = stage.make("", Force::Yes, Extent::ListFirst);
    assert_eq!(done.names.unwrap(), 3);
    stage.shows("bcd");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_without_a_signature_is_recorded_and_has_its_pages_and_is_told_of() {
    let stage = Stage::new("abc").await;
    std::fs::remove_file(stage.folder.path().join("signing.key")).unwrap();
    let outcome = stage.round("", Force::No);
    assert!(
        matches!(outcome, Err(PublishError::Unsigned(_))),
        "{outcome:?}"
    );
    stage.shows("abc");
    let recorded = stage.reader.last_dump().unwrap().unwrap();
    assert_eq!(recorded.names, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_listed_when_explain_does() {
    let stage = Stage::new("abcd").await;
    stage.opt_out("b").await;
    stage.writer.add_now(vec![host("e")], NOW).await.unwrap();
    stage.round("", Force::No).unwrap();
    for letter in ["a", "b", "c", "d", "e"] {
        let stored = stage.reader.record(&host(letter)).unwrap().unwrap();
        let entry = Entry::Known(&stored);
        let explained = explain(&host(letter), entry, None, NOW, Calendar::REAL);
        let (state, _, listed) = stage.answer(letter);
        assert_eq!(listed, explained.listed, "{letter}");
        // Only the operator sees more about a host that opted out.
        let is_told = explained.state != "opted_out";
        let expect = if is_told {
            explained.state.as_str()
        } else {
            "withheld"
        };
        assert_eq!(state, expect, "{letter}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_days_counts_are_those_of_its_last_list_and_all_who_came_and_went() {
    let stage = Stage::new("ab").await;
    // There is no former list, so no host counts as new.
    stage.round("", Force::No).unwrap();
    stage.writer.add_now(vec![host("c")], NOW).await.unwrap();
    stage.find(Private::No).await;
    stage.opt_out("a").await;
    stage.round("", Force::Yes).unwrap();
    let days = stage.reader.days(NOW).unwrap();
    assert_eq!(days.len(), 1);
    assert_eq!(days[0].by_software, [("mastodon".to_owned(), 2)]);
    assert_eq!((days[0].appeared, days[0].died, days[0].others), (1, 1, 0));
    let page = std::fs::read_to_string(stage.published().join("index.html")).unwrap();
    assert!(page.contains("1970-01-01"));
}

//! Cancels a dump at every possible place: at its first look at the cancellation, at its second,
//! and so on.

use super::*;
use scheduler::publication::Extent;

/// Files that are compressed and measured: the list at the root, five of data, five schemas.
const FILES: u64 = 1 + 5 + 5;

impl Stage {
    /// Cancels `make` at each of its looks until it ends well, and returns how many looks it takes.
    /// Each time, the published files stay, and no other files are left.
    fn stopped_at_each_look(&mut self, make: impl Fn(&Self) -> Result<u64, PublishError>) -> u64 {
        let stood = self.texts();
        let mut looks = 0;
        loop {
            self.cancel = Cancel::after(looks);
            match make(self) {
                Ok(_names) => return looks,
                Err(error) => assert!(is_stopped(&error), "{looks}: {error}"),
            }
            assert!(self.texts() == stood, "{looks}");
            self.is_tidy();
            looks += 1;
        }
    }

    /// Compares the hosts listed now with the published set, and publishes nothing.
    fn compare(&self) -> Result<u64, PublishError> {
        let tree = self.publisher().begin(&self.cancel)?;
        let mut draft = dump::write(&tree, moment(NOW), |row| {
            let take = |listed: Listed<'_>| -> Result<(), PublishError> {
                Ok(row(&public(listed).unwrap())?)
            };
            self.reader.listed(NOW, Calendar::REAL, take).map(drop)
        })?;
        let witness = changes::Witness {
            reader: &self.reader,
            deny: &DomainList::default(),
            now: NOW,
            calendar: Calendar::REAL,
            cancel: &self.cancel,
        };
        let about = changes::about(&imprint(None));
        Ok(changes::write(&mut draft, &tree, &about, &witness)?.hosts)
    }
}

fn is_stopped(error: &PublishError) -> bool {
    matches!(
        error,
        PublishError::Dump(DumpError::Tree(TreeError::Cancelled))
    )
}

/// A list that is held back is not an error here.
fn held_back(outcome: Result<u64, PublishError>) -> Result<u64, PublishError> {
    match outcome {
        Err(PublishError::HeldBack(_)) => Ok(0),
        outcome => outcome,
    }
}

#[tokio::test]
async fn a_list_is_stopped_at_any_row_or_change_or_file_and_the_one_before_stays() {
    let mut stage = Stage::new("ab").await;
    stage.publish(Force::No).await;
    stage.writer.add_now(vec![host("c")], NOW).await.unwrap();
    stage.find(Private::No).await;
    stage.publish(Force::No).await;
    stage.opt_out("c").await;
    let compared = stage.stopped_at_each_look(Stage::compare);
    let looks = stage.stopped_at_each_look(|stage| stage.publish_without("", Force::Yes));
    assert!(looks > compared + 2 * FILES, "{looks} {compared}");
    stage.holds("ab");
}

#[tokio::test]
async fn a_list_that_is_held_back_is_stopped_at_any_look_and_is_then_as_it_was() {
    let mut stage = Stage::new("abcd").await;
    stage.publish(Force::No).await;
    stage.record(1000).await;
    let held = |stage: &Stage| held_back(stage.publish_without("", Force::No));
    let unchanged = stage.stopped_at_each_look(held);
    stage.opt_out("a").await;
    let looks = stage.stopped_at_each_look(held);
    assert!(looks > unchanged + FILES, "{looks} {unchanged}");
    stage.holds("bcd");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_stopped_at_any_answer_or_file_and_those_before_stay() {
    let mut stage = Stage::new("abcd").await;
    stage.round("", Force::No).unwrap();
    stage.opt_out("a").await;
    let looks = stage.stopped_at_each_look(|stage| stage.make("", Force::No, Extent::Pages).names);
    let (answers, shards) = (4, 16);
    assert!(looks > answers + shards, "{looks}");
    let list = std::fs::read_to_string(stage.published().join("list.txt")).unwrap();
    assert!(!list.contains("a.example.org"), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_is_stopped_at_any_look_and_nothing_is_recorded() {
    let mut stage = Stage::new("abcd").await;
    stage.round("", Force::No).unwrap();
    stage.opt_out("a").await;
    stage.stopped_at_each_look(|stage| {
        let outcome = stage.round("", Force::Yes);
        if outcome.is_err() {
            assert_eq!(stage.reader.last_dump().unwrap().unwrap().names, 4);
        }
        outcome
    });
    assert_eq!(stage.names().len(), 3);
    assert_eq!(stage.reader.last_dump().unwrap().unwrap().names, 3);
}

/// A dump of a million hosts takes longer than a container has to stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_dump_that_is_to_stop_leaves_what_stood_and_nothing_beside_it() {
    let stage = Stage::new("abcd").await;
    stage.round("", Force::No).unwrap();
    let stood = stage.texts();
    stage.opt_out("a").await;
    stage.cancel.cancel();
    for (force, extent) in [
        (Force::Yes, Extent::Full),
        (Force::No, Extent::Full),
        (Force::No, Extent::Pages),
    ] {
        let done = stage.make("", force, extent);
        assert!(is_stopped(&done.names.unwrap_err()), "{extent:?}");
        assert!(!done.has_pages);
    }
    assert!(stage.texts() == stood);
    stage.is_tidy();
}

//! Cancels a dump at every possible place: at its first look at the cancellation, at its second,
//! and so on.

use site::SiteError;

use super::*;
use crate::publish::pages::PagesError;
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
            looks += 1;
        }
    }

    /// Compares the hosts listed now with the published set, and publishes nothing.
    fn compare(&self) -> Result<u64, PublishError> {
        let mut draft = dump::write(&self.public(), moment(NOW), |row| {
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
        let staged = changes::stage(&mut draft, &self.public(), &about, &witness)?;
        Ok(staged.outcome().hosts)
    }
}

fn is_stopped(error: &PublishError) -> bool {
    matches!(
        error,
        PublishError::Dump(DumpError::Cancelled)
            | PublishError::Pages(PagesError::Site(SiteError::Cancelled))
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
    let (rows, compared) = (2, stage.stopped_at_each_look(Stage::compare));
    assert_eq!(compared, rows + 2, "who left, and what named it before");
    let looks = stage.stopped_at_each_look(|stage| stage.publish_without("", Force::Yes));
    assert_eq!(looks, rows + compared + FILES);
    stage.holds("ab");
}

#[tokio::test]
async fn a_list_that_is_held_back_is_stopped_at_any_look_and_is_then_as_it_was() {
    let mut stage = Stage::new("abcd").await;
    stage.publish(Force::No).await;
    stage.writer.record_dump(NOW, 1000).await.unwrap();
    let held = |stage: &Stage| held_back(stage.publish_without("", Force::No));
    let (rows, standing) = (4, 4);
    assert_eq!(stage.stopped_at_each_look(held), rows + standing);
    stage.opt_out("a").await;
    let (rows, compared) = (3, 3 + 1);
    // The first published host has to go, and all rows are read again.
    let looks = rows + 1 + standing + compared + FILES;
    assert_eq!(stage.stopped_at_each_look(held), looks);
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
    let list = std::fs::read_to_string(stage.public().join("list.txt")).unwrap();
    assert!(!list.contains("a.example.org"), "{list}");
}

/// The next dump is measured by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_out_is_recorded_though_all_that_follows_is_stopped() {
    let mut stage = Stage::new("abcd").await;
    stage.round("", Force::No).unwrap();
    let pages = |stage: &Stage| std::fs::read(stage.public().join("list.txt")).unwrap();
    let stood = pages(&stage);
    stage.opt_out("a").await;
    stage.stopped_at_each_look(|stage| match stage.round("", Force::Yes) {
        Err(error @ PublishError::Pages(_)) if is_stopped(&error) => Ok(0),
        outcome => outcome,
    });
    assert_eq!(stage.names().len(), 3);
    assert_eq!(stage.reader.last_dump().unwrap().unwrap().names, 3);
    assert!(pages(&stage) == stood);
}

/// A dump of a million hosts takes longer than a container has to stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_dump_that_is_to_stop_leaves_what_stood_and_nothing_beside_it() {
    let stage = Stage::new("abcd").await;
    stage.round("", Force::No).unwrap();
    let stood = stage.texts();
    stage.opt_out("a").await;
    stage.cancel.cancel();
    for force in [Force::Yes, Force::No] {
        let done = stage.make("", force, Extent::Full);
        assert!(
            matches!(done.names, Err(PublishError::Dump(DumpError::Cancelled))),
            "{done:?}"
        );
        assert!(!done.has_pages);
    }
    let done = stage.make("", Force::No, Extent::Pages);
    assert!(
        matches!(done.names, Err(PublishError::Pages(_))),
        "{done:?}"
    );
    assert!(stage.texts() == stood);
}

use census::group::Wildcard;

use super::*;

const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
const CALENDAR_DAY: Duration = Duration::from_secs(24 * 3600);

impl Census {
    async fn not_looked_at(&self, now: Timestamp) -> Vec<String> {
        let found = self.writer.groups_not_looked_at(now, REAL, 10).await;
        found.unwrap()
    }

    async fn keep(&self, domain: &str, outcome: Result<Wildcard, &str>, at: Timestamp) {
        let outcome = outcome.map_err(str::to_owned);
        let kept = self.writer.keep_wildcard(domain.to_owned(), outcome, at);
        kept.await.unwrap();
    }
}

fn below(domain: &str, count: u32) -> Vec<Host> {
    let names = (0..count).map(|n| host(&format!("n{n}.{domain}")));
    names.collect()
}

#[tokio::test]
async fn groups_that_are_held_are_looked_at_once_a_week_and_others_never() {
    let census = Census::new();
    census.add(below("small.example", 3), NOW).await;
    assert_eq!(census.not_looked_at(NOW).await, Vec::<String>::new());
    census.add(below("farm.example", 12), NOW).await;
    assert_eq!(census.not_looked_at(NOW).await, ["farm.example"]);
    census
        .keep("farm.example", Ok(Wildcard::SamePlace), NOW)
        .await;
    let just_before = Timestamp(NOW.plus(WEEK).0 - 1);
    assert_eq!(
        census.not_looked_at(just_before).await,
        Vec::<String>::new()
    );
    assert_eq!(census.not_looked_at(NOW.plus(WEEK)).await, ["farm.example"]);
    // A clock that was set back must not delay the check for years.
    let set_back = Timestamp(NOW.0 - 1);
    assert_eq!(census.not_looked_at(set_back).await, ["farm.example"]);
    census.decide(Decision::Allow, NOW).await;
    assert_eq!(
        census.not_looked_at(NOW.plus(WEEK)).await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn who_was_never_looked_at_comes_first_and_then_who_waited_longest() {
    let census = Census::new();
    for domain in ["one.example", "two.example", "farm.example"] {
        census.add(below(domain, 12), NOW).await;
    }
    let later = NOW.plus(Duration::from_secs(60));
    census.keep("two.example", Ok(Wildcard::No), NOW).await;
    census.keep("one.example", Ok(Wildcard::No), later).await;
    let due = census.not_looked_at(later.plus(WEEK)).await;
    assert_eq!(due, ["farm.example", "two.example", "one.example"]);
    let first = census.writer.groups_not_looked_at(later, REAL, 1).await;
    assert_eq!(first.unwrap(), ["farm.example"]);
}

#[tokio::test]
async fn trouble_is_kept_beside_what_was_found_before_and_tried_again_after_a_day() {
    let census = Census::new();
    census.add(farm(0..12), NOW).await;
    assert_eq!(census.farm().wildcard, WildcardLook::default());
    for found in Wildcard::ALL {
        census.keep("farm.example", Ok(found), NOW).await;
        let expect = WildcardLook {
            found: Some((found, NOW)),
            tried: Some(NOW),
            trouble: None,
        };
        assert_eq!(census.farm().wildcard, expect);
    }
    let later = NOW.plus(WEEK);
    census
        .keep("farm.example", Err("no answer in time"), later)
        .await;
    let expect = WildcardLook {
        found: Some((Wildcard::Apart, NOW)),
        tried: Some(later),
        trouble: Some("no answer in time".to_owned()),
    };
    assert_eq!(census.farm().wildcard, expect);
    let just_before = Timestamp(later.plus(CALENDAR_DAY).0 - 1);
    assert_eq!(
        census.not_looked_at(just_before).await,
        Vec::<String>::new()
    );
    let again = later.plus(CALENDAR_DAY);
    assert_eq!(census.not_looked_at(again).await, ["farm.example"]);
    census.keep("farm.example", Ok(Wildcard::No), again).await;
    assert_eq!(census.farm().wildcard.trouble, None);
}

/// The result of a wildcard check neither holds nor frees a group.
#[tokio::test]
async fn what_made_up_names_show_decides_nothing() {
    let census = Census::new();
    census.add(farm(0..12), NOW).await;
    census.check_due(NOW, 50).await;
    let before = census.farm();
    for found in Wildcard::ALL {
        census.keep("farm.example", Ok(found), NOW).await;
        let after = census.farm();
        assert_eq!(
            (after.group, after.held_back),
            (before.group, before.held_back)
        );
        assert_eq!(census.listed(NOW), Vec::<String>::new());
    }
    // A group that was deleted during the check.
    census.keep("gone.example", Ok(Wildcard::No), NOW).await;
    let reader = census.store.reader().unwrap();
    assert_eq!(reader.group("gone.example").unwrap(), None);
}

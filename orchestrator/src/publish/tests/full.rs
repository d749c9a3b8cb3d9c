//! Full lists, with which the guard compares (invariant I11), and the first round of checks.

use scheduler::publication::Extent;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn guard_compares_with_full_and_forced_lists_only() {
    let stage = Stage::new("abcd").await;
    let add = |letter| stage.writer.add_now(vec![host(letter)], NOW);
    let recorded = || {
        let last = stage.reader.last_dump().unwrap().unwrap();
        (last.names, last.is_full)
    };
    add("e").await.unwrap();
    assert_eq!(stage.round("", Force::No).unwrap(), 4);
    assert_eq!(recorded(), (4, false), "one is due and was never checked");
    let two = "a.example.org\nb.example.org\n";
    assert_eq!(stage.round(two, Force::No).unwrap(), 2);
    stage.find(Private::No).await;
    assert_eq!(stage.round("", Force::No).unwrap(), 5);
    assert_eq!(recorded(), (5, true));
    add("f").await.unwrap();
    let outcome = stage.round(two, Force::No);
    assert!(matches!(outcome, Err(PublishError::HeldBack(_))));
    assert_eq!(stage.round(two, Force::Yes).unwrap(), 3);
    assert_eq!(recorded(), (3, true), "an operator accepted its size");
    assert_eq!(stage.round(two, Force::No).unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn start_page_shows_progress_until_names_are_checked() {
    let stage = Stage::new("").await;
    let shows = |text: &str| {
        let done = stage.make("", Force::No, Extent::Full);
        done.names.unwrap();
        let page = std::fs::read_to_string(stage.published().join("index.html")).unwrap();
        (page.contains(text), done.has_names)
    };
    assert_eq!(shows("knows no servers yet"), (true, false));
    let hosts = ["a", "b", "c"].map(host).to_vec();
    stage.writer.add_now(hosts, NOW).await.unwrap();
    let text = "0 of 3 known names checked";
    assert_eq!(shows(text), (true, false));
    stage.find(Private::No).await;
    stage.writer.add_now(vec![host("d")], NOW).await.unwrap();
    assert_eq!(shows("3 of 4 known names checked"), (true, true));
    stage.find(Private::No).await;
    assert_eq!(shows("known names checked"), (false, true));
}

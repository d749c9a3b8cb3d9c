//! Full lists, with which the guard compares (invariant I11).

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

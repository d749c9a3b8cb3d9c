use super::*;
use crate::net::resolve::once::{Once, WORKED_WITHIN};

#[tokio::test]
async fn a_name_that_is_looked_up_once_is_not_remembered_and_its_failures_are_not_counted() {
    let server = Server::start(zone).await;
    let resolver = server.resolver();
    let once = async |name: &str| resolver.look_up_once(&host(name), &BOTH).await;
    let targets = ["[2606:4700::1111]:443", "8.8.8.8:443"].map(|text| text.parse().unwrap());
    assert_eq!(once("both.test").await, Once::Found(targets.to_vec()));
    assert_eq!(once("nowhere.test").await, Once::Nothing);
    assert_eq!(once("empty.test").await, Once::Nothing);
    for _ in 0..5 {
        assert_eq!(once("servfail.test").await, Once::ServerFailed);
    }
    let memory = resolver.memory();
    assert!(memory.cache.is_empty() && memory.failing.is_empty());
}

#[tokio::test]
async fn a_failure_is_the_names_only_while_others_are_answered() {
    let server = Server::start(zone).await;
    let resolver = server.resolver();
    let once = async |name: &str| resolver.look_up_once(&host(name), &BOTH).await;
    assert_eq!(once("servfail.test").await, Once::OwnFailure);
    resolver.resolve(&host("both.test"), &BOTH).await;
    assert_eq!(once("servfail.test").await, Once::ServerFailed);
    tokio::time::pause();
    tokio::time::advance(WORKED_WITHIN + Duration::from_secs(1)).await;
    assert_eq!(once("servfail.test").await, Once::OwnFailure);
}

//! Hosts that say what they want in a file on the host.

use census::state::{OptedOutBy, State};
use intake::wire::{Answer, Census, Request};
use orchestrator::ground::clock::Clock;
use orchestrator::serve::intake::proofs::Seen;

use crate::stage::{Stage, Standing, host, records};

const SOCIAL: &str = r#"{"host":"social.a.example"}"#;
const NAME: &str = "social.a.example";
const RECORD: &str = "_fedicensus.social.a.example";

#[tokio::test] // S56
async fn host_without_dns_records_submits_and_opts_out_by_file() {
    let stage = Stage::start().await;
    let reply = stage.post("/submit", "", SOCIAL).await;
    reply.has_code(403, "no_proof");
    let told = reply.json["detail"].as_str().unwrap();
    let line =
        "put the line `fedicensus-proof=submit` in https://social.a.example/.well-known/fedicensus";
    assert!(
        told.contains(line) && told.contains("(its host answers 404)"),
        "{told}"
    );
    assert_eq!(stage.state(NAME), None);

    stage.file_says(NAME, &["fedicensus-proof=submit"]);
    assert_eq!(stage.post("/submit", "", SOCIAL).await.status, 202);
    assert_eq!(stage.state(NAME), Some(State::Discovered));
    let no = stage.post("/opt-out", "", SOCIAL).await;
    assert_eq!(no.status, 403, "it says something else: {no:?}");
    stage.file_says(NAME, &["fedicensus-proof=opt-out"]);
    let out = stage.post("/opt-out", "", SOCIAL).await;
    out.has_state(200, "opted_out");
}

/// A visit costs the host more than a look-up costs us.
#[tokio::test]
async fn a_host_is_visited_only_where_its_dns_says_nothing() {
    let stage = Stage::start().await;
    stage.file_says(NAME, &["fedicensus-proof=opt-out"]);
    let silent = records(&["4cb5abf6"]);
    let contrary = records(&["fedicensus-proof=opt-in"]);
    let both = records(&["fedicensus-proof=opt-out", "fedicensus-proof=submit"]);
    for (record, status, visits) in [(contrary, 403, 0), (both, 403, 0), (silent, 200, 1)] {
        stage.publish(RECORD, record.clone());
        let reply = stage.post("/opt-out", "", SOCIAL).await;
        assert_eq!(reply.status, status, "{record:?}: {reply:?}");
        assert_eq!(stage.visited().len(), visits, "{record:?}");
    }
    let stage = Stage::start().await;
    stage.publish(RECORD, records(&["fedicensus-proof=submit"]));
    assert_eq!(stage.post("/submit", "", SOCIAL).await.status, 202);
    assert_eq!(stage.visited(), [""; 0]);
}

/// Invariant I7: leaving a host alone includes its file, even if someone claims that the file has
/// changed.
#[tokio::test] // S19
async fn opted_out_held_and_invalid_names_are_never_visited() {
    let stage = Stage::start().await;
    stage.file_says(NAME, &["fedicensus-proof=opt-in"]);
    stage.bring_in(NAME).await;
    let (writer, now, name) = (stage.store.writer(), Standing.now(), host(NAME));
    let census = Census::new(stage.census.clone());
    let ask = async |of: &str| {
        let host = host(of);
        census.ask(&Request::ReadProof { host }).await.unwrap()
    };
    let why = "this census requests nothing from this host".to_owned();
    let not_asked = Answer::NoProof { why };
    for by in [OptedOutBy::Owner, OptedOutBy::Moderator] {
        writer.opt_out(&name, by, now).await.unwrap();
        assert_eq!(ask(NAME).await, not_asked);
        writer.opt_in(&name, by, now).await.unwrap();
    }
    writer.park(&name, now).await.unwrap();
    assert_eq!(ask(NAME).await, not_asked);
    assert!(matches!(ask("co.uk").await, Answer::NotAdmitted { .. }));
    assert_eq!(stage.visited(), [""; 0]);
    let other = ask("other.a.example").await;
    assert!(matches!(other, Answer::NoProof { .. }), "{other:?}");
    assert_eq!(stage.visited(), ["other.a.example"]);
}

#[tokio::test]
async fn a_visit_to_a_host_that_was_never_alive_is_one_to_a_stranger() {
    let stage = Stage::start().await;
    let (writer, now) = (stage.store.writer(), Standing.now());
    stage.bring_in(NAME).await;
    writer
        .add_now(vec![host("new.a.example")], now)
        .await
        .unwrap();
    for name in [NAME, "new.a.example", "unknown.a.example"] {
        let body = format!(r#"{{"host":"{name}"}}"#);
        assert_eq!(stage.post("/opt-out", "", &body).await.status, 403);
    }
    assert_eq!(stage.seen(), [Seen::Alive, Seen::Never, Seen::Never]);
}

#[tokio::test] // S19
async fn denied_host_is_never_visited() {
    let stage = Stage::that_denies("a.example\n").await;
    let census = Census::new(stage.census.clone());
    let host = host(NAME);
    let answer = census.ask(&Request::ReadProof { host }).await.unwrap();
    let why = "this census requests nothing from this host".to_owned();
    assert_eq!(answer, Answer::NoProof { why });
    assert_eq!(stage.visited(), [""; 0]);
}

#[tokio::test]
async fn what_could_not_be_read_now_is_put_off() {
    let stage = Stage::start().await;
    let why = "some reason".to_owned();
    let retry_after_s = 61;
    let not_now = Answer::NotNow {
        why: why.clone(),
        retry_after_s,
    };
    let cannot_tell = Answer::CannotTell {
        why: why.clone(),
        retry_after_s,
    };
    for (told, status, code, retry) in [
        (not_now, 429, "read_lately", "61"),
        (cannot_tell, 503, "file_not_read", "61"),
        (Answer::Failed { why }, 503, "census_away", "30"),
    ] {
        stage.file(NAME, told);
        let reply = stage.post("/opt-out", "", SOCIAL).await;
        reply.has_code(status, code);
        assert_eq!(reply.retry_after(), Some(retry), "{reply:?}");
        reply.is_problem();
    }
    assert_eq!(stage.state(NAME), None);
}

//! Owners who prove a host by the secret of a record.

use std::time::Duration;

use census::state::{OptedOutBy, State};
use gateway::control::{Answer as Dns, Texts};
use intake::secret::{Secret, record};
use intake::wire::{Act, Answer, Census, HashInHex, Request};
use orchestrator::ground::clock::Clock as _;
use store::SeenProof;

use crate::stage::{ANY, Reply, Stage, Standing, host, records};

const NAME: &str = "social.a.example";
const PLACE: &str = "_fedicensus.social.a.example";
const DAY: Duration = Duration::from_secs(86_400);

/// One of several secrets.
fn secret(number: u8) -> Secret {
    Secret(HashInHex([number; 32]))
}

fn record_of(name: &str, number: u8) -> String {
    record(&secret(number).hash(&host(name)))
}

/// Publishes the record of a secret at the host's name.
fn publish(stage: &Stage, number: u8) {
    stage.publish(PLACE, records(&[&record_of(NAME, number)]));
}

async fn send(stage: &Stage, number: u8, act: &str) -> Reply {
    let secret = String::from(secret(number).0);
    let body = format!(r#"{{"host":"{NAME}","secret":"{secret}","act":"{act}"}}"#);
    stage.post("/proof", "", &body).await
}

/// Why an owner with this secret can't leave.
async fn refused(stage: &Stage, number: u8) -> String {
    let reply = send(stage, number, "leave").await;
    reply.has_code(403, "no_proof");
    reply.json["detail"].as_str().unwrap().to_owned()
}

async fn listed() -> Stage {
    let stage = Stage::start().await;
    stage.bring_in(NAME).await;
    stage
}

#[track_caller]
fn says(reply: &Reply, state: &str, words: &str) {
    reply.has_state(200, state);
    let said = reply.json["words"].as_str().unwrap();
    assert!(said.contains(words), "{said}");
}

/// Invariant I7: the file at the host that opted out is never read, whatever it may say.
#[tokio::test] // S57
async fn owner_leaves_and_comes_back_by_one_secret_without_a_visit() {
    let stage = listed().await;
    publish(&stage, 1);
    stage.file_says(NAME, &["fedicensus-proof=opt-in"]);
    let look = send(&stage, 1, "look").await;
    says(&look, "alive", "social.a.example is listed.");
    assert_eq!(stage.lookups(), 2, "the record, and a random name");
    send(&stage, 1, "leave").await.has_state(200, "opted_out");
    assert!(stage.listed().is_empty());
    let look = send(&stage, 1, "look").await;
    says(&look, "opted_out", "Its owner opted out.");
    send(&stage, 1, "join").await.has_state(200, "waiting");
    assert_eq!(stage.state(NAME), Some(State::Discovered));
    assert_eq!(stage.lookups(), 2, "once proved is enough for a day");
    assert_eq!(stage.visited(), [""; 0]);
}

#[tokio::test] // S57
async fn secret_works_for_a_day_and_never_again() {
    let stage = listed().await;
    let (writer, now) = (stage.store.writer(), Standing.now());
    let see = async |number, first_seen| {
        let hash = secret(number).hash(&host(NAME));
        let proof = SeenProof { hash, first_seen };
        writer.see_proof(&host(NAME), proof).await.unwrap();
    };
    see(1, now.minus(DAY - Duration::from_millis(1))).await;
    send(&stage, 1, "look").await.has_state(200, "alive");
    see(2, now.minus(DAY)).await;
    // Seen again, it keeps its first time.
    see(2, now).await;
    publish(&stage, 2);
    let why = refused(&stage, 2).await;
    assert!(why.contains("no longer works"), "{why}");
    assert_eq!(stage.lookups(), 0);

    // The used one returns together with its successor, in any order.
    let both = [record_of(NAME, 2), record_of(NAME, 3)];
    for [first, second] in [[0, 1], [1, 0]] {
        stage.publish(PLACE, records(&[&both[first], &both[second]]));
        let why = refused(&stage, 3).await;
        assert!(why.contains("remove the other"), "{why}");
    }
    publish(&stage, 3);
    send(&stage, 3, "look").await.has_state(200, "alive");
    let why = refused(&stage, 2).await;
    let found = record_of(NAME, 3);
    assert!(why.contains(PLACE) && why.contains(&found), "{why}");
    assert_eq!(stage.listed(), [NAME]);
}

#[tokio::test] // S57
async fn nobody_acts_without_the_secret_of_this_host() {
    let stage = listed().await;
    let why = refused(&stage, 1).await;
    assert!(why.contains("DNS has no TXT record there"), "{why}");
    publish(&stage, 1);
    let why = refused(&stage, 2).await;
    assert!(why.contains(&record_of(NAME, 2)), "{why}");
    assert!(why.contains(&record_of(NAME, 1)), "{why}");
    let other = record_of("other.a.example", 1);
    stage.publish(PLACE, records(&[&other]));
    assert!(refused(&stage, 1).await.contains(&other), "another host's");
    let own = records(&[&record_of(NAME, 1)]);
    stage.publish(ANY, own.clone());
    stage.publish(PLACE, own);
    let why = refused(&stage, 1).await;
    assert!(why.contains("a wildcard's"), "{why}");

    // A taken-over intake has no more to show.
    let request = Request::Prove {
        host: host(NAME),
        secret: secret(1),
        act: Act::Look,
    };
    let answer = Census::new(stage.census.clone()).ask(&request).await;
    assert!(matches!(answer, Ok(Answer::NoProof { .. })), "{answer:?}");

    // What is unknown is no proof.
    stage.publish(ANY, Dns::Txt(Texts::ServerFailed {}));
    let unknown = send(&stage, 1, "leave").await;
    unknown.has_code(503, "dns_failed");
    assert_eq!(stage.listed(), [NAME]);
}

/// Invariant I7: only the party that made an opt-out can undo it.
#[tokio::test] // S17
async fn proven_owner_undoes_neither_robots_txt_nor_a_moderator() {
    let stage = listed().await;
    publish(&stage, 1);
    let (writer, now) = (stage.store.writer(), Standing.now());
    let by = OptedOutBy::Robots;
    writer
        .opt_out(&host(NAME), by, now.plus(DAY))
        .await
        .unwrap();
    let due = || {
        let stored = stage.store.reader().unwrap().record(&host(NAME));
        stored.unwrap().unwrap().record.due
    };
    assert_eq!(due(), Some(now.plus(DAY)));
    let look = send(&stage, 1, "look").await;
    says(&look, "opted_out", "Its robots.txt asks us to stay away.");
    let join = send(&stage, 1, "join").await;
    says(&join, "waiting", "robots.txt is read again");
    assert_eq!(due(), Some(now));
    assert_eq!(stage.state(NAME), Some(State::OptedOut { by }));

    let by = OptedOutBy::Moderator;
    stage.opt_out(NAME, by).await;
    let look = send(&stage, 1, "look").await;
    says(&look, "opted_out", "A moderator of this census removed it.");
    let join = send(&stage, 1, "join").await;
    join.has_code(403, "not_theirs");
    assert_eq!(stage.state(NAME), Some(State::OptedOut { by }));
    assert_eq!(stage.visited(), [""; 0]);
}

#[tokio::test]
async fn owner_of_an_unknown_or_denied_host_sees_it_and_submits() {
    let stage = Stage::start().await;
    publish(&stage, 1);
    let look = send(&stage, 1, "look").await;
    says(&look, "unknown", "We do not know this name.");
    send(&stage, 1, "join").await.has_state(202, "waiting");
    assert_eq!(stage.state(NAME), Some(State::Discovered));
    let stage = Stage::that_denies("a.example\n").await;
    publish(&stage, 1);
    let look = send(&stage, 1, "look").await;
    says(&look, "unknown", "The operator of this census keeps out");
    send(&stage, 1, "join").await.has_code(403, "refused");
}

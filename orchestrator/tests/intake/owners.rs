//! Decisions that only owners make.

use std::sync::Arc;

use census::state::{OptedOutBy, State};
use gateway::control::{Answer, Texts};
use intake::wire::{self, Census, Request};
use orchestrator::check::slot_queue::SlotQueue;
use orchestrator::config::{Config, Values};
use orchestrator::daemon::{Live, Order};
use orchestrator::ground::clock::{Clock, Random};
use orchestrator::serve::control::Handler;
use protocol::egress::Deferral;
use token::{Purpose, SecretKey};

use crate::stage::{NOW, Stage, Standing, host, key, records, sigsum_token, token};

const SOCIAL: &str = r#"{"host":"social.a.example"}"#;
const UNDO: &str = r#"{"host":"social.a.example","undo":true}"#;

fn opt_out() -> String {
    token(Purpose::OptOut, "a.example", "social.a.example")
}

fn opt_in() -> String {
    token(Purpose::OptIn, "a.example", "social.a.example")
}

/// A host on the list, with its domain's key in DNS.
async fn listed() -> Stage {
    let stage = Stage::start().await;
    stage.bring_in("social.a.example").await;
    stage.publish_key("_fedicensus", "a.example");
    assert_eq!(stage.listed(), ["social.a.example"]);
    stage
}

/// Invariant I7.
#[tokio::test]
async fn an_owner_is_off_the_next_dump_at_once_and_comes_back_by_the_same_way() {
    let stage = listed().await;
    let reply = stage.post("/opt-out", &opt_out(), SOCIAL).await;
    reply.has_state(200, "opted_out");
    assert!(stage.listed().is_empty());
    let again = stage.post("/opt-out", &opt_out(), SOCIAL).await;
    again.has_state(200, "opted_out");

    let back = stage.post("/opt-out", &opt_in(), UNDO).await;
    back.has_state(200, "waiting");
    assert_eq!(stage.state("social.a.example"), Some(State::Discovered));
    let nothing_left = stage.post("/opt-out", &opt_in(), UNDO).await;
    nothing_left.has_state(200, "known");
}

/// A check in progress ends at once too.
#[tokio::test]
async fn the_loop_is_told_to_leave_the_host_alone() {
    let (orders, mut told) = tokio::sync::mpsc::channel(4);
    let stage = Stage::start_with(None, |store, gate| {
        let values = Values::gather(|_| None, |_| None, None).unwrap();
        let config = Config::new(&values).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(Standing);
        let (random, slots) = (Random::from_os(), SlotQueue::unlimited());
        let services = config.services(store.writer(), gate, clock.clone(), random, slots);
        let live = Live::new(clock.now(), services.meters.clone());
        Handler::with_daemon(&services, orders, Arc::new(live))
    })
    .await;
    stage.publish_key("_fedicensus", "a.example");
    assert_eq!(stage.post("/opt-out", &opt_out(), SOCIAL).await.status, 200);
    match told.recv().await {
        Some(Order::LeaveAlone { host: left }) => assert_eq!(left, host("social.a.example")),
        other => panic!("{other:?}"),
    }
}

/// Every bit of the claim and of the signature, as the header carries them.
#[tokio::test] // S56
async fn one_changed_bit_takes_nobody_out() {
    let stage = listed().await;
    let header = opt_out();
    let value = header.trim_start_matches("Fedicensus-Token: ").trim_end();
    for bit in 0..value.len() * 8 {
        let mut flipped = value.as_bytes().to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let client = format!("x-real-ip: 198.51.{}.{}\r\n", bit >> 8, bit & 0xff);
        let length = SOCIAL.len();
        let head = format!(
            "POST /opt-out HTTP/1.1\r\nhost: x\r\n{client}content-type: application/json\r\ncontent-length: {length}\r\nFedicensus-Token: "
        );
        let request = [head.as_bytes(), &flipped, b"\r\n\r\n", SOCIAL.as_bytes()];
        let reply = stage.raw(request.concat()).await;
        let is_refused = matches!(reply.status, 400 | 403);
        assert!(is_refused, "bit {bit}: {reply:?}");
    }
    assert_eq!(stage.listed(), ["social.a.example"]);
    assert_eq!(stage.post("/opt-out", &header, SOCIAL).await.status, 200);
}

#[tokio::test]
async fn a_key_that_has_not_signed_takes_nobody_out() {
    let stage = listed().await;
    let other = SecretKey::from_seed(&[8; 32]).public().to_string();
    stage.publish("_fedicensus.a.example", records(&[&other]));
    let reply = stage.post("/opt-out", &opt_out(), SOCIAL).await;
    reply.has_code(400, "not_signed");
    reply.is_problem();
    assert_eq!(stage.listed(), ["social.a.example"]);
}

#[tokio::test]
async fn a_token_that_is_repeated_after_its_time_is_refused_before_dns_is_asked() {
    let stage = listed().await;
    assert_eq!(stage.post("/opt-out", &opt_out(), SOCIAL).await.status, 200);
    assert_eq!(stage.post("/opt-out", &opt_in(), UNDO).await.status, 200);
    let asked = stage.lookups();
    stage.time_is(NOW + 3600);
    let reply = stage.post("/opt-out", &opt_out(), SOCIAL).await;
    reply.has_code(400, "token_expired");
    stage.time_is(NOW - 2 * 86400);
    let reply = stage.post("/opt-out", &opt_out(), SOCIAL).await;
    reply.has_code(400, "token_not_yet");
    assert_eq!(stage.lookups(), asked);
    assert_eq!(stage.state("social.a.example"), Some(State::Discovered));
}

#[tokio::test] // S56
async fn a_token_for_something_else_is_refused_before_dns_is_asked() {
    let stage = listed().await;
    stage.publish_key("_fedicensus", "b.example");
    stage.publish_key("_sigsum_v1", "a.example");
    let other_host = token(Purpose::OptOut, "a.example", "other.a.example");
    let other_domain = token(Purpose::OptOut, "b.example", "social.a.example");
    let below = token(Purpose::OptOut, "www.social.a.example", "social.a.example");
    let submit = token(Purpose::Submit, "a.example", "social.a.example");
    for (header, body, code) in [
        (&submit, SOCIAL, "wrong_purpose"),
        (&opt_in(), SOCIAL, "wrong_purpose"),
        (&opt_out(), UNDO, "wrong_purpose"),
        (&other_host, SOCIAL, "wrong_host"),
        (&other_domain, SOCIAL, "not_the_owner"),
        (&below, SOCIAL, "not_the_owner"),
        (&sigsum_token("a.example"), SOCIAL, "wrong_purpose"),
        (&sigsum_token("a.example"), UNDO, "wrong_purpose"),
    ] {
        let reply = stage.post("/opt-out", header, body).await;
        reply.has_code(403, code);
    }
    assert_eq!(stage.lookups(), 0);
    assert_eq!(stage.listed(), ["social.a.example"]);
}

/// Another owner may have the suffix itself, or a name in its zone.
#[tokio::test] // S55
async fn a_key_at_a_public_suffix_decides_for_no_host_below_it() {
    for (suffix, name) in [
        ("github.io", "me.github.io"),
        ("github.io", "www.me.github.io"),
        ("co.uk", "me.co.uk"),
    ] {
        let stage = Stage::start().await;
        stage.bring_in(name).await;
        stage.publish_key("_fedicensus", suffix);
        for (purpose, undo) in [(Purpose::OptOut, false), (Purpose::OptIn, true)] {
            let header = token(purpose, suffix, name);
            let body = format!(r#"{{"host":"{name}","undo":{undo}}}"#);
            let reply = stage.post("/opt-out", &header, &body).await;
            reply.has_code_for(&format!("{suffix} {name}"), 403, "not_the_owner");
        }
        assert_eq!(stage.lookups(), 0, "DNS is not asked");
        assert_eq!(stage.listed(), [name]);
    }
    // An intake with an older list of suffixes than the daemon's would accept it.
    let stage = Stage::start().await;
    stage.bring_in("me.github.io").await;
    for undo in [false, true] {
        let request = Request::OptOut {
            host: host("me.github.io"),
            undo,
            domain: Some(host("github.io")),
        };
        let answer = Census::new(stage.census.clone()).ask(&request).await;
        let is_refused = matches!(answer, Ok(wire::Answer::NotTheirs { .. }));
        assert!(is_refused, "{answer:?}");
    }
    assert_eq!(stage.listed(), ["me.github.io"]);
    let stage = Stage::start().await;
    stage.bring_in("www.me.github.io").await;
    stage.publish_key("_fedicensus", "me.github.io");
    let header = token(Purpose::OptOut, "me.github.io", "www.me.github.io");
    let body = r#"{"host":"www.me.github.io"}"#;
    assert_eq!(stage.post("/opt-out", &header, body).await.status, 200);
}

#[tokio::test] // S55
async fn parents_key_does_not_decide_for_a_host_with_a_record() {
    let stage = listed().await;
    let own = "_fedicensus.social.a.example";
    let key = SecretKey::from_seed(&[8; 32]).public().to_string();
    for record in [key.as_str(), "fedicensus-proof=submit"] {
        stage.publish(own, records(&["v=spf1 -all", record]));
        let reply = stage.post("/opt-out", &opt_out(), SOCIAL).await;
        reply.has_code_for(record, 403, "not_the_owner");
    }
    stage.publish(own, Answer::Txt(Texts::ServerFailed {}));
    let unknown = stage.post("/opt-out", &opt_out(), SOCIAL).await;
    assert_eq!(unknown.status, 503, "{unknown:?}");
    assert_eq!(stage.listed(), ["social.a.example"]);

    // A wildcard of the zone is not a statement of the host.
    stage.publish(own, records(&["v=spf1 -all"]));
    let reply = stage.post("/opt-out", &opt_out(), SOCIAL).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

/// The record is left from an earlier time, and anyone can point the census to it.
#[tokio::test] // S57
async fn a_record_that_opts_in_undoes_no_opt_out() {
    let stage = listed().await;
    let own = "_fedicensus.social.a.example";
    let (writer, now) = (stage.store.writer(), Standing.now());
    let name = host("social.a.example");
    let by = OptedOutBy::Owner;
    assert_eq!(stage.post("/opt-out", &opt_out(), SOCIAL).await.status, 200);
    for spoken in [false, true] {
        if spoken {
            writer.opt_out(&name, by, now).await.unwrap();
        }
        stage.publish(own, records(&["fedicensus-proof=opt-in"]));
        stage.file_says(name.as_str(), &["fedicensus-proof=opt-in"]);
        let asked = stage.lookups();
        let reply = stage.post("/opt-out", "", UNDO).await;
        reply.has_code(403, "no_proof");
        let told = reply.json["detail"].as_str().unwrap();
        assert!(told.contains("only a token"), "{told}");
        assert_eq!(stage.lookups(), asked);
        let state = stage.state(name.as_str());
        assert_eq!(state, Some(State::OptedOut { by }), "spoken: {spoken}");
        writer.opt_in(&name, by, now).await.unwrap();
    }
    assert_eq!(stage.visited(), [""; 0]);
}

/// The gateway looks up one name of a domain in ten seconds, and a parent's token needs two.
#[tokio::test]
async fn the_second_look_up_of_a_domain_is_waited_for() {
    let stage = listed().await;
    let late = Answer::Deferred {
        why: Deferral::GroupPace,
        retry_after_ms: 1,
    };
    let none = Answer::Txt(Texts::NoSuchName {});
    stage.publish_in_turn("_fedicensus.social.a.example", &[late.clone(), none]);
    let reply = stage.post("/opt-out", &opt_out(), SOCIAL).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    stage.publish("_fedicensus.social.a.example", late);
    let reply = stage.post("/opt-out", &opt_in(), UNDO).await;
    assert_eq!(reply.status, 429, "once: {reply:?}");
}

#[tokio::test] // S56
async fn host_without_a_token_needs_one_clear_dns_record() {
    let stage = listed().await;
    let place = "_fedicensus.social.a.example";
    let says_no = async |why: &str| {
        let reply = stage.post("/opt-out", "", SOCIAL).await;
        reply.has_code_for(why, 403, "no_proof");
        assert_eq!(stage.listed(), ["social.a.example"], "{why}");
    };
    says_no("nothing is published").await;
    stage.prove("a.example", "opt-out");
    says_no("another name says so").await;
    stage.prove("social.a.example", "opt-in");
    says_no("it says the contrary").await;
    let both = ["fedicensus-proof=opt-out", "fedicensus-proof=submit"];
    stage.publish(place, records(&both));
    says_no("it says both").await;
    stage.publish(place, records(&["4cb5abf6", "fedicensus-proof=opt-out"]));
    assert_eq!(stage.post("/opt-out", "", SOCIAL).await.status, 200);
    assert!(stage.listed().is_empty());

    stage.publish_key("_fedicensus", "a.example");
    let back = stage.post("/opt-out", &opt_in(), UNDO).await;
    assert_eq!(back.status, 403, "the record still says opt-out: {back:?}");
    let digits = key().public().to_string();
    stage.publish(place, records(&[&digits, "fedicensus-proof=opt-in"]));
    let own = token(Purpose::OptIn, "social.a.example", "social.a.example");
    assert_eq!(stage.post("/opt-out", &own, UNDO).await.status, 200);
    let replayed = stage.post("/opt-out", "", SOCIAL).await;
    assert_eq!(replayed.status, 403, "the latest wish counts: {replayed:?}");
}

/// Invariant I7: only the party that made an opt-out can undo it.
#[tokio::test] // S17
async fn owner_undoes_no_opt_out_of_a_moderator_or_robots_txt() {
    let stage = listed().await;
    let name = "social.a.example";
    stage.opt_out(name, OptedOutBy::Robots).await;
    let reply = stage.post("/opt-out", &opt_in(), UNDO).await;
    reply.has_code(403, "not_theirs");
    let by = OptedOutBy::Moderator;
    stage.opt_out(name, by).await;
    assert_eq!(stage.post("/opt-out", &opt_out(), SOCIAL).await.status, 200);
    assert_eq!(stage.post("/opt-out", &opt_in(), UNDO).await.status, 403);
    assert_eq!(stage.state(name), Some(State::OptedOut { by }));
}

#[tokio::test] // S18
async fn one_key_cannot_fill_the_database_with_invented_names() {
    let stage = Stage::start().await;
    stage.publish_key("_fedicensus", "a.example");
    stage.bring_in("social.a.example").await;
    let mut statuses = Vec::new();
    for number in 0..22 {
        let name = format!("n{number}.a.example");
        let header = token(Purpose::OptOut, "a.example", &name);
        let body = format!(r#"{{"host":"{name}"}}"#);
        let client = format!("192.0.2.{number}");
        let reply = stage.post_from(&client, "/opt-out", &header, &body).await;
        statuses.push(reply.status);
    }
    assert_eq!(statuses, [vec![200; 20], vec![429; 2]].concat());
    assert_eq!(stage.state("n20.a.example"), None);
    // A known host is free.
    assert_eq!(stage.post("/opt-out", &opt_out(), SOCIAL).await.status, 200);
}

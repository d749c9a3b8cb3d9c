//! How hosts are admitted by submission.

use admission::TestDomain;
use census::state::{OptedOutBy, State};
use gateway::control::{Answer, Texts};
use orchestrator::ground::clock::Clock as _;
use protocol::Private;
use protocol::egress::Deferral;
use token::Purpose;

use crate::stage::{Stage, Standing, host, records, sigsum_token, token};

const SOCIAL: &str = r#"{"host":"social.a.example"}"#;

/// From Sigsum's documentation: its private key is public.
const KNOWN_TOKEN: &str = "test.sigsum.org 7eb7ebc84046d87b60a885e276bc24854e766dff5be1f21bac96b96eacd02a3d2028fab8d6cbecd7459dbfbb320a9d772c0afe42e9a38e86233e04266219030a";

#[tokio::test]
async fn whoever_has_a_key_submits_any_host_and_is_told_where_it_stands() {
    let stage = Stage::start().await;
    stage.publish_key("_fedicensus", "friend.example");
    assert_eq!(stage.get("/submit/social.a.example").await.status, 404);
    let header = token(Purpose::Submit, "friend.example", "social.a.example");
    let reply = stage.post("/submit", &header, SOCIAL).await;
    reply.has_state(202, "waiting");
    assert_eq!(stage.state("social.a.example"), Some(State::Discovered));
    let state = stage.get("/submit/Social.A.example.").await;
    state.has_state(200, "known");
    assert_eq!(stage.post("/submit", &header, SOCIAL).await.status, 200);
}

/// The rules apply to the key that vouches, or to its domain, whatever host it vouches for; known
/// hosts cost nothing.
#[tokio::test]
async fn submissions_enter_within_the_limits_of_whoever_vouches() {
    let stage = Stage::with_rules("domain friend.example 2\ndomain foe.example 0\n").await;
    for domain in ["friend.example", "foe.example", "stranger.example"] {
        stage.publish_key("_fedicensus", domain);
    }
    let mut client = 0;
    let mut submit = async |domain: &str, host: &str| {
        client += 1;
        let header = token(Purpose::Submit, domain, host);
        let body = format!(r#"{{"host":"{host}"}}"#);
        let from = format!("198.51.100.{client}");
        stage.post_from(&from, "/submit", &header, &body).await
    };
    assert_eq!(submit("friend.example", "a.example").await.status, 202);
    assert_eq!(submit("friend.example", "a.example").await.status, 200);
    assert_eq!(submit("friend.example", "b.example").await.status, 202);
    let full = submit("friend.example", "c.example").await;
    assert_eq!(full.status, 429, "{full:?}");
    assert!(full.head.contains("retry-after: 86400"), "{full:?}");
    for (domain, host) in [
        ("foe.example", "d.example"),
        ("stranger.example", "d.example"),
        // A name that a line bans is never admitted.
        ("friend.example", "d.foe.example"),
    ] {
        let refused = submit(domain, host).await;
        assert_eq!(refused.status, 403, "{domain} {host}: {refused:?}");
    }
    for (host, is_in) in [
        ("a.example", true),
        ("b.example", true),
        ("c.example", false),
        ("d.example", false),
        ("d.foe.example", false),
    ] {
        assert_eq!(stage.state(host).is_some(), is_in, "{host}");
    }
}

#[tokio::test]
async fn hosts_that_prove_themselves_need_room_below_their_domain() {
    let stage = Stage::with_rules("domain a.example 1\n").await;
    for (name, client, expect) in [("one", 1, 202), ("two", 2, 429)] {
        let host = format!("{name}.a.example");
        stage.prove(&host, "submit");
        let body = format!(r#"{{"host":"{host}"}}"#);
        let from = format!("198.51.100.{client}");
        let reply = stage.post_from(&from, "/submit", "", &body).await;
        assert_eq!(reply.status, expect, "{reply:?}");
    }
}

#[tokio::test]
async fn sigsums_tools_submit_under_either_of_their_labels() {
    for (label, lookups) in [("_sigsum_v1", 1), ("_sigsum_v0", 2)] {
        let stage = Stage::start().await;
        stage.publish_key(label, "friend.example");
        let header = sigsum_token("friend.example");
        let reply = stage.post("/submit", &header, SOCIAL).await;
        assert_eq!(reply.status, 202, "{reply:?}");
        assert_eq!(stage.lookups(), lookups, "{label}");
    }
}

/// Public key of [`KNOWN_TOKEN`].
const KNOWN_KEY: &str = "4cb5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aedf0a5ba29";

#[tokio::test]
async fn the_known_token_vouches_where_daemon_and_intake_both_take_the_test_domain() {
    use TestDomain::{Allow, Refuse};
    let rules = "domain test.sigsum.org 1\n";
    for (of_daemon, of_intake, status, part) in [
        (Allow, Allow, 202, "accepted"),
        (Refuse, Allow, 403, "whose private key is published"),
        (Allow, Refuse, 400, "secret key is public"),
    ] {
        let stage = Stage::with_test_domain(rules, [of_daemon, of_intake]).await;
        stage.publish("_sigsum_v1.test.sigsum.org", records(&[KNOWN_KEY]));
        let header = format!("Sigsum-Token: {KNOWN_TOKEN}\r\n");
        let reply = stage.post("/submit", &header, SOCIAL).await;
        let case = format!("{of_daemon:?} {of_intake:?}: {reply:?}");
        assert_eq!(reply.status, status, "{case}");
        assert!(reply.body.contains(part), "{reply:?}");
        assert_eq!(stage.state("social.a.example").is_some(), status == 202);
    }
}

#[tokio::test]
async fn the_known_token_vouches_for_nobody() {
    let stage = Stage::start().await;
    stage.publish("_sigsum_v1.test.sigsum.org", records(&[KNOWN_KEY]));
    let header = format!("Sigsum-Token: {KNOWN_TOKEN}\r\n");
    let reply = stage.post("/submit", &header, SOCIAL).await;
    reply.has_code(400, "token_malformed");
    assert_eq!(stage.lookups(), 0);
}

#[tokio::test]
async fn a_host_without_a_token_submits_itself_by_its_dns_and_a_known_one_needs_nothing() {
    let stage = Stage::start().await;
    assert_eq!(stage.post("/submit", "", SOCIAL).await.status, 403);
    assert_eq!(stage.state("social.a.example"), None);
    stage.prove("social.a.example", "submit");
    assert_eq!(stage.post("/submit", "", SOCIAL).await.status, 202);
    let asked = stage.lookups();
    assert_eq!(stage.post("/submit", "", SOCIAL).await.status, 200);
    assert_eq!(stage.lookups(), asked);
}

#[tokio::test]
async fn who_opted_out_is_not_brought_back_by_a_submission() {
    let stage = Stage::start().await;
    stage.publish_key("_fedicensus", "a.example");
    let out = token(Purpose::OptOut, "a.example", "social.a.example");
    assert_eq!(stage.post("/opt-out", &out, SOCIAL).await.status, 200);
    let header = token(Purpose::Submit, "a.example", "social.a.example");
    let reply = stage.post("/submit", &header, SOCIAL).await;
    reply.has_state(200, "known");
    let state = stage.state("social.a.example");
    assert!(matches!(state, Some(State::OptedOut { .. })));
}

/// Trouble with DNS says nothing about a token: the client gets a time to try again.
#[tokio::test]
async fn what_dns_does_not_tell_now_is_put_off_and_what_it_denies_is_refused() {
    let stage = Stage::start().await;
    let deferred = |why| Answer::Deferred {
        why,
        retry_after_ms: 9001,
    };
    let header = token(Purpose::Submit, "friend.example", "social.a.example");
    for (answer, token_gives, proof_gives, retry) in [
        (Answer::Txt(Texts::ServerFailed {}), 503, 503, Some("60")),
        (Answer::Txt(Texts::TimedOut {}), 503, 503, Some("60")),
        (Answer::Offline {}, 503, 503, Some("60")),
        (deferred(Deferral::Dns), 503, 503, Some("60")),
        (deferred(Deferral::GroupPace), 429, 429, Some("10")),
        (deferred(Deferral::Full), 429, 429, Some("10")),
        (Answer::Txt(Texts::NoSuchName {}), 400, 403, None),
        (Answer::Txt(Texts::NoData {}), 400, 403, None),
        (records(&["no key"]), 400, 403, None),
    ] {
        stage.publish("_fedicensus.friend.example", answer.clone());
        stage.publish("_fedicensus.social.a.example", answer.clone());
        for (header, expect) in [(header.as_str(), token_gives), ("", proof_gives)] {
            let from = format!("198.51.100.{}", stage.lookups());
            let reply = stage.post_from(&from, "/submit", header, SOCIAL).await;
            assert_eq!(reply.status, expect, "{answer:?}: {reply:?}");
            assert_eq!(reply.retry_after(), retry, "{answer:?}");
        }
    }
    assert_eq!(stage.state("social.a.example"), None);
}

#[tokio::test] // S20
async fn names_that_cannot_be_in_the_census_are_never_looked_up() {
    let stage = Stage::start().await;
    for name in "a.internal a.corp a.local router.home.arpa co.uk".split(' ') {
        let body = format!(r#"{{"host":"{name}"}}"#);
        let header = token(Purpose::Submit, name, "social.a.example");
        let sigsum = sigsum_token(name);
        for (path, header, body) in [
            ("/submit", "", body.as_str()),
            ("/opt-out", "", body.as_str()),
            ("/submit", header.as_str(), SOCIAL),
            ("/submit", sigsum.as_str(), SOCIAL),
        ] {
            let from = format!("{name}{path}{header}").len();
            let from = format!("198.51.100.{from}");
            let reply = stage.post_from(&from, path, header, body).await;
            let case = format!("{path} {body} {header}");
            reply.has_code_for(&case, 400, "not_admitted");
        }
    }
    assert_eq!(stage.lookups(), 0);
    assert_eq!(stage.visited(), [""; 0]);
}

/// From these answers, anyone with a list of names learns which of them the census knows, and
/// nothing more.
#[tokio::test] // S64
async fn answer_about_a_host_does_not_reveal_who_left_it_out() {
    let mut told = Vec::new();
    for how in 0..7 {
        let stage = match how {
            1 => Stage::that_denies("a.example\n").await,
            _ => Stage::start().await,
        };
        let (writer, now) = (stage.store.writer(), Standing.now());
        let name = host("social.a.example");
        let private = if how == 2 { Private::Yes } else { Private::No };
        stage.bring_in_that_is(private, name.as_str()).await;
        let by = match how {
            3 => Some(OptedOutBy::Owner),
            4 => Some(OptedOutBy::Moderator),
            5 => Some(OptedOutBy::Robots),
            _ => None,
        };
        if let Some(by) = by {
            stage.opt_out(name.as_str(), by).await;
        }
        if how == 6 {
            writer.park(&name, now).await.unwrap();
        }
        stage.publish_key("_fedicensus", "friend.example");
        let header = token(Purpose::Submit, "friend.example", name.as_str());
        let replies = [
            stage.get("/submit/social.a.example").await,
            stage.post("/submit", "", SOCIAL).await,
            stage.post("/submit", &header, SOCIAL).await,
        ];
        for reply in replies {
            assert_eq!(reply.status, 200, "{how}: {reply:?}");
            told.push(reply.bytes());
        }
    }
    let unseen = Stage::start().await;
    let (writer, now) = (unseen.store.writer(), Standing.now());
    let added = vec![host("social.a.example")];
    writer.add_now(added, now).await.unwrap();
    told.push(unseen.get("/submit/social.a.example").await.bytes());
    told.dedup();
    assert_eq!(told.len(), 1, "{told:#?}");
}

#[tokio::test]
async fn what_is_no_submission_is_refused_with_a_reason() {
    let stage = Stage::start().await;
    stage.publish_key("_fedicensus", "a.example");
    let own = token(Purpose::Submit, "a.example", "social.a.example");
    let both = own + &sigsum_token("a.example");
    let suffix = token(Purpose::Submit, "a.example", "co.uk");
    for (header, body, code) in [
        ("", "", "body_malformed"),
        ("", "[]", "body_malformed"),
        ("", r#"{"host":"a.example","more":1}"#, "body_malformed"),
        ("", r#"{"host":"192.0.2.1"}"#, "not_a_host"),
        ("", r#"{"host":"a.example:443"}"#, "not_a_host"),
        ("Fedicensus-Token: v2 x\r\n", SOCIAL, "token_malformed"),
        (&both, SOCIAL, "two_tokens"),
        (&suffix, r#"{"host":"co.uk"}"#, "not_admitted"),
    ] {
        let reply = stage.post("/submit", header, body).await;
        reply.has_code(400, code);
        assert_eq!(reply.json["status"], 400);
    }
    assert_eq!(stage.get("/submit/a%2Fb").await.status, 400);
    assert_eq!(stage.get("/submit").await.status, 405);
    assert_eq!(stage.get("/elsewhere").await.status, 404);
    assert_eq!(stage.get("/elsewhere").await.json["code"], "no_such_page");
}

use super::*;

#[tokio::test]
async fn an_endpoint_of_a_channel_that_is_gone_is_gone() {
    let (push, mut client, endpoint) = rig().await;
    assert_eq!(client.unregister().await["status"], 200);
    let refused = push.send(&endpoint, 60).await;
    assert_eq!(refused.refusal(), (410, json!(106)));
    assert_eq!(refused.header("cache-control"), "max-age=86400");
}

#[tokio::test]
async fn an_endpoint_that_is_none_is_not_found() {
    let (push, _client, endpoint) = rig().await;
    let token = endpoint.rsplit('/').next().unwrap();
    for path in [
        "/wpush/v1/rubbish".to_owned(),
        format!("/wpush/v2/{token}"),
        format!("/wpush/v3/{token}"),
        format!("/wpush/v1/{token}A"),
    ] {
        let refused = push.ask("POST", &path, &[("ttl", "1")], b"").await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(refused.body, "");
    }
    // The form without a version is the first one.
    let old = push
        .ask("POST", &format!("/wpush/{token}"), &[("ttl", "1")], b"")
        .await;
    assert_eq!(old.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_body_comes_as_it_was_sent_with_what_its_encryption_needs() {
    let (push, mut client, endpoint) = rig().await;
    let headers = [
        ("ttl", "60"),
        ("content-encoding", "aesgcm"),
        ("encryption", r#"salt="AAAA==""#),
        ("crypto-key", r#"dh="BBBB""#),
    ];
    let send = async |body: &[u8]| push.ask("POST", path(&endpoint), &headers, body).await;
    let sent = send(&[0xfb; 5630]).await;
    assert_eq!(sent.status, StatusCode::CREATED);
    assert_eq!(sent.header("ttl"), "60");
    let message = client.heard().await;
    let expected =
        json!({"encoding": "aesgcm", "encryption": "salt=AAAA", "crypto_key": "dh=BBBB"});
    assert_eq!(message["headers"], expected);
    assert!(message["data"].as_str().unwrap().starts_with("-_v7"));
    for bytes in [5631, 60_000] {
        assert_eq!(send(&vec![0; bytes]).await.refusal(), (413, json!(104)));
    }
}

#[tokio::test]
async fn each_wrong_header_has_its_number() {
    let (push, _client, endpoint) = rig().await;
    let (ttl, aes128gcm) = (("ttl", "1"), ("content-encoding", "aes128gcm"));
    for (headers, status, errno) in [
        (vec![], 400, 111),
        (vec![("ttl", "1.5")], 400, 111),
        (vec![("ttl", "-1"), aes128gcm], 400, 114),
        (vec![ttl, aes128gcm, ("topic", "")], 400, 113),
        (vec![ttl, aes128gcm, ("topic", "a b")], 400, 113),
        (vec![ttl], 400, 110),
        (vec![ttl, ("content-encoding", "gcm")], 400, 110),
        (vec![ttl, ("content-encoding", "aesgcm")], 400, 110),
        (vec![ttl, aes128gcm, ("encryption", "salt=AA")], 400, 110),
        (vec![ttl, aes128gcm, ("authorization", "Bearer")], 401, 109),
    ] {
        let refused = push.ask("POST", path(&endpoint), &headers, b"body").await;
        assert_eq!(refused.refusal(), (status, json!(errno)), "{headers:?}");
    }
}

#[tokio::test]
async fn a_full_channel_takes_no_more_for_now() {
    let (push, client, endpoint) = rig().await;
    push.dismissed(client).await;
    for _ in 0..Limits::ORDINARY.channel_messages {
        assert_eq!(push.send(&endpoint, 60).await.status, StatusCode::CREATED);
    }
    let full = push.send(&endpoint, 60).await;
    assert_eq!(full.refusal(), (503, json!(201)));
    assert_eq!(full.header("retry-after"), "120");
}

#[tokio::test]
async fn a_nearly_full_file_cuts_the_time_and_says_so() {
    let (push, _client, endpoint) = rig().await;
    let [file, copy] = ["push.db", "copy.db"].map(|name| push.folder.path().join(name));
    push.storage().back_up(&copy).unwrap();
    let used = i64::try_from(copy.metadata().unwrap().len()).unwrap();
    let limits = Limits {
        file_bytes: used * 4 / 3,
        ..Limits::ORDINARY
    };
    let storage = Arc::new(Sqlite::open(&file, limits).unwrap());
    let fuller = Service::new(settings(Rules::AUTOPUSH), storage, None, now()).unwrap();
    let fuller = public(Arc::new(fuller));
    for (ttl, is_cut) in [("86400", false), ("2592000", true)] {
        let (path, ttl_header) = (path(&endpoint), [("ttl", ttl)]);
        let sent = ask(fuller.clone(), "POST", path, &ttl_header, b"").await;
        assert_eq!(sent.status, StatusCode::CREATED);
        assert_eq!(sent.header("ttl") != ttl, is_cut);
    }
}

#[tokio::test]
async fn a_storage_that_fails_is_the_services_own_failure() {
    let (push, client, endpoint) = rig().await;
    push.dismissed(client).await;
    let database = push.database();
    database.execute_batch("DROP TABLE messages").unwrap();
    let failed = push.send(&endpoint, 60).await;
    assert_eq!(failed.refusal(), (500, json!(201)));
}

#[tokio::test]
async fn a_user_that_goes_while_a_message_is_stored_is_gone() {
    let push = Push::new(Rules::AUTOPUSH);
    let (mut node, endpoint) = SlowNode::start(&push, "/push/{uaid}").await;
    let database = push.database();
    let removed = async {
        let asked = node.asked().await;
        database.execute_batch("DELETE FROM users").unwrap();
        drop(asked);
    };
    let (refused, ()) = tokio::join!(push.send(&endpoint, 60), removed);
    assert_eq!(refused.refusal(), (410, json!(105)));
}

#[tokio::test] // S28
async fn an_endpoint_for_one_key_takes_no_unsigned_message() {
    let push = Push::new(Rules::AUTOPUSH);
    let (_client, endpoint) = subscribed(&push, Some("BAAA")).await;
    assert!(path(&endpoint).starts_with("/wpush/v2/"));
    let refused = push.send(&endpoint, 60).await;
    assert_eq!(refused.refusal(), (401, json!(109)));
}

#[tokio::test]
async fn a_message_that_waits_can_be_withdrawn() {
    let (push, client, endpoint) = rig().await;
    let uaid = push.dismissed(client).await;
    let sent = push.send(&endpoint, 60).await;
    let location = sent.header("location");
    let withdrawn = push.ask("DELETE", path(location), &[], b"").await;
    assert_eq!(withdrawn.status, StatusCode::NO_CONTENT);
    let again = push.ask("DELETE", path(location), &[], b"").await;
    assert_eq!(again.status, StatusCode::NO_CONTENT);
    let mut client = push.greeted(&uaid).await;
    client.hears_nothing().await;
    let rubbish = push.ask("DELETE", "/m/rubbish", &[], b"").await;
    assert_eq!(rubbish.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn old_endpoints_live_on_under_new_keys() {
    let (push, client, endpoint) = rig().await;
    let uaid = push.dismissed(client).await;
    let rotated = push.another(Settings {
        keys: Keys::parse(&format!("[{},{}]", keys(2), keys(1))).unwrap(),
        ..settings(Rules::AUTOPUSH)
    });
    let send = async |node: &Arc<Service>| {
        let router = public(Arc::clone(node));
        let sent = ask(router, "POST", path(&endpoint), &[("ttl", "60")], b"");
        sent.await.status
    };
    assert_eq!(send(&rotated).await, StatusCode::CREATED);
    let mut client = Client::connect(public(rotated)).await;
    client.hello(&uaid).await;
    client.heard().await;
    assert_ne!(client.register(None).await, endpoint);
    let forgotten = push.another(Settings {
        keys: Keys::parse(&keys(2)).unwrap(),
        ..settings(Rules::AUTOPUSH)
    });
    assert_eq!(send(&forgotten).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn pages_of_other_sites_may_send() {
    let (push, _client, endpoint) = rig().await;
    // `*` does not cover `Authorization` (Fetch standard, CORS protocol).
    let wanted = ("access-control-request-headers", "authorization,ttl");
    let asked = push.ask("OPTIONS", path(&endpoint), &[wanted], b"").await;
    assert_eq!(asked.status, StatusCode::OK);
    assert_eq!(asked.header("access-control-allow-origin"), "*");
    assert_eq!(asked.header("access-control-allow-headers"), wanted.1);
    let wrong = push.ask("GET", path(&endpoint), &[], b"").await;
    assert_eq!(wrong.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(wrong.header("allow"), "POST");
    let sent = push.send(&endpoint, 1).await;
    assert_eq!(sent.header("access-control-allow-origin"), "*");
    let shown = sent.header("access-control-expose-headers");
    assert_eq!(shown, "Location, TTL");
}

#[tokio::test]
async fn a_service_says_how_it_is() {
    let (push, _client, _) = rig().await;
    let status = push.ask("GET", "/status", &[], b"").await.json();
    assert_eq!(status["status"], "OK");
    for path in ["/health", "/__heartbeat__"] {
        let health = push.ask("GET", path, &[], b"").await.json();
        assert_eq!(
            (&health["status"], &health["connections"]),
            (&json!("OK"), &json!(1))
        );
    }
    let error = push.ask("GET", "/__error__", &[], b"").await;
    assert_eq!(error.refusal(), (418, json!(999)));
}

use super::*;

#[tokio::test]
async fn an_endpoint_of_a_channel_that_is_gone_is_gone() {
    let push = Push::new(Rules::AUTOPUSH);
    let (mut client, endpoint) = subscribed(&push, None).await;
    client
        .say(json!({"messageType": "unregister", "channelID": CHANNEL}))
        .await;
    assert_eq!(client.heard().await["status"], 200);
    let refused = push.send(&endpoint, 60).await;
    assert_eq!(refused.status, StatusCode::GONE);
    assert_eq!(refused.json()["errno"], 106);
    assert_eq!(refused.header("cache-control"), "max-age=86400");
}

#[tokio::test]
async fn an_endpoint_that_is_none_is_not_found() {
    let push = Push::new(Rules::AUTOPUSH);
    let (_client, endpoint) = subscribed(&push, None).await;
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
    let push = Push::new(Rules::AUTOPUSH);
    let (mut client, endpoint) = subscribed(&push, None).await;
    let headers = [
        ("ttl", "60"),
        ("content-encoding", "aesgcm"),
        ("encryption", r#"salt="AAAA==""#),
        ("crypto-key", r#"dh="BBBB""#),
    ];
    let sent = push
        .ask("POST", path(&endpoint), &headers, &[0xfb; 5630])
        .await;
    assert_eq!(sent.status, StatusCode::CREATED);
    assert_eq!(sent.header("ttl"), "60");
    let message = client.heard().await;
    let expected =
        json!({"encoding": "aesgcm", "encryption": "salt=AAAA", "crypto_key": "dh=BBBB"});
    assert_eq!(message["headers"], expected);
    assert!(message["data"].as_str().unwrap().starts_with("-_v7"));
    let large = push
        .ask("POST", path(&endpoint), &headers, &[0; 5631])
        .await;
    assert_eq!(
        (large.status.as_u16(), &large.json()["errno"]),
        (413, &json!(104))
    );
    let huge = push
        .ask("POST", path(&endpoint), &headers, &[0; 60_000])
        .await;
    assert_eq!(huge.status.as_u16(), 413);
}

#[tokio::test]
async fn each_wrong_header_has_its_number() {
    let push = Push::new(Rules::AUTOPUSH);
    let (_client, endpoint) = subscribed(&push, None).await;
    let aes128gcm = ("content-encoding", "aes128gcm");
    for (headers, status, errno) in [
        (vec![], 400, 111),
        (vec![("ttl", "1.5")], 400, 111),
        (vec![("ttl", "-1"), aes128gcm], 400, 114),
        (vec![("ttl", "1"), aes128gcm, ("topic", "")], 400, 113),
        (vec![("ttl", "1"), aes128gcm, ("topic", "a b")], 400, 113),
        (vec![("ttl", "1")], 400, 110),
        (vec![("ttl", "1"), ("content-encoding", "gcm")], 400, 110),
        (vec![("ttl", "1"), ("content-encoding", "aesgcm")], 400, 110),
        (
            vec![("ttl", "1"), aes128gcm, ("encryption", "salt=AA")],
            400,
            110,
        ),
        (
            vec![("ttl", "1"), aes128gcm, ("authorization", "Bearer")],
            401,
            109,
        ),
    ] {
        let refused = push.ask("POST", path(&endpoint), &headers, b"body").await;
        assert_eq!(refused.status.as_u16(), status, "{headers:?}");
        assert_eq!(refused.json()["errno"], errno, "{headers:?}");
    }
}

#[tokio::test]
async fn a_full_channel_takes_no_more_for_now() {
    let push = Push::new(Rules::AUTOPUSH);
    let (client, endpoint) = subscribed(&push, None).await;
    client.leave().await;
    until_empty(&push).await;
    for _ in 0..Limits::ORDINARY.channel_messages {
        assert_eq!(push.send(&endpoint, 60).await.status, StatusCode::CREATED);
    }
    let full = push.send(&endpoint, 60).await;
    assert_eq!(full.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(full.json()["errno"], 201);
    assert_eq!(full.header("retry-after"), "120");
}

#[tokio::test]
async fn a_nearly_full_file_cuts_the_time_and_says_so() {
    let push = Push::new(Rules::AUTOPUSH);
    let (_client, endpoint) = subscribed(&push, None).await;
    let path_of_file = push.folder.path().join("push.db");
    let copy = push.folder.path().join("copy.db");
    let used = Sqlite::open(&path_of_file, Limits::ORDINARY).unwrap();
    used.back_up(&copy).unwrap();
    let used = i64::try_from(copy.metadata().unwrap().len()).unwrap();
    let limits = Limits {
        file_bytes: used * 4 / 3,
        ..Limits::ORDINARY
    };
    let storage = Arc::new(Sqlite::open(&path_of_file, limits).unwrap());
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
    let push = Push::new(Rules::AUTOPUSH);
    let (client, endpoint) = subscribed(&push, None).await;
    client.leave().await;
    until_empty(&push).await;
    let database = rusqlite::Connection::open(push.folder.path().join("push.db")).unwrap();
    database.execute_batch("DROP TABLE messages").unwrap();
    let failed = push.send(&endpoint, 60).await;
    assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(failed.json()["errno"], 201);
}

#[tokio::test]
async fn a_user_that_goes_while_a_message_is_stored_is_gone() {
    let push = Push::new(Rules::AUTOPUSH);
    let (mut node, endpoint) = SlowNode::start(&push, "/push/{uaid}").await;
    let database = rusqlite::Connection::open(push.folder.path().join("push.db")).unwrap();
    let removed = async {
        let asked = node.asked().await;
        database.execute_batch("DELETE FROM users").unwrap();
        drop(asked);
    };
    let (refused, ()) = tokio::join!(push.send(&endpoint, 60), removed);
    assert_eq!(refused.status, StatusCode::GONE);
    assert_eq!(refused.json()["errno"], 105);
}

#[tokio::test]
async fn an_endpoint_for_one_key_takes_no_unsigned_message() {
    let push = Push::new(Rules::AUTOPUSH);
    let (_client, endpoint) = subscribed(&push, Some("BAAA")).await;
    assert!(path(&endpoint).starts_with("/wpush/v2/"));
    let refused = push.send(&endpoint, 60).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(refused.json()["errno"], 109);
}

#[tokio::test]
async fn a_message_that_waits_can_be_withdrawn() {
    let push = Push::new(Rules::AUTOPUSH);
    let (client, endpoint) = subscribed(&push, None).await;
    let uaid = client.leave().await;
    until_empty(&push).await;
    let sent = push.send(&endpoint, 60).await;
    let location = sent.header("location");
    let withdrawn = push.ask("DELETE", path(location), &[], b"").await;
    assert_eq!(withdrawn.status, StatusCode::NO_CONTENT);
    let again = push.ask("DELETE", path(location), &[], b"").await;
    assert_eq!(again.status, StatusCode::NO_CONTENT);
    let mut client = push.client().await;
    client.hello(&uaid).await;
    client.hears_nothing().await;
    let rubbish = push.ask("DELETE", "/m/rubbish", &[], b"").await;
    assert_eq!(rubbish.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn old_endpoints_live_on_under_new_keys() {
    let push = Push::new(Rules::AUTOPUSH);
    let (client, endpoint) = subscribed(&push, None).await;
    let uaid = client.leave().await;
    until_empty(&push).await;
    let rotated = push.another(Settings {
        keys: Keys::parse(&format!("[{},{}]", keys(2), keys(1))).unwrap(),
        ..settings(Rules::AUTOPUSH)
    });
    let sent = ask(
        public(Arc::clone(&rotated)),
        "POST",
        path(&endpoint),
        &[("ttl", "60")],
        b"",
    )
    .await;
    assert_eq!(sent.status, StatusCode::CREATED);
    let mut client = Client::connect(public(rotated)).await;
    client.hello(&uaid).await;
    client.heard().await;
    assert_ne!(client.register(None).await, endpoint);
    let forgotten = push.another(Settings {
        keys: Keys::parse(&keys(2)).unwrap(),
        ..settings(Rules::AUTOPUSH)
    });
    let refused = ask(
        public(forgotten),
        "POST",
        path(&endpoint),
        &[("ttl", "60")],
        b"",
    )
    .await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn pages_of_other_sites_may_send() {
    let push = Push::new(Rules::AUTOPUSH);
    let (_client, endpoint) = subscribed(&push, None).await;
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
    let push = Push::new(Rules::AUTOPUSH);
    let (_client, _) = subscribed(&push, None).await;
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
    assert_eq!(
        (error.status.as_u16(), &error.json()["errno"]),
        (418, &json!(999))
    );
}

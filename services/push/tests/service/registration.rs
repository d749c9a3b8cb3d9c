use super::*;

async fn register(push: &Push, body: &Value) -> Answer {
    let body = body.to_string();
    let path = "/v1/webpush/census/registration";
    push.ask("POST", path, &[], body.as_bytes()).await
}

#[tokio::test]
async fn a_program_registers_over_http_and_connects_later() {
    let push = Push::new(Rules::AUTOPUSH);
    let registered = register(&push, &json!({"token": "x", "channelID": CHANNEL})).await;
    assert_eq!(registered.status, StatusCode::OK);
    let registered = registered.json();
    assert_eq!(registered["channelID"], CHANNEL);
    let endpoint = registered["endpoint"].as_str().unwrap();
    assert_eq!(push.send(endpoint, 60).await.status, StatusCode::CREATED);
    let mut client = push.client().await;
    client.hello(registered["uaid"].as_str().unwrap()).await;
    assert_eq!(client.heard().await["channelID"], CHANNEL);
}

#[tokio::test]
async fn only_who_knows_the_secret_changes_a_registration() {
    let push = Push::new(Rules::AUTOPUSH);
    let registered = register(&push, &json!({"token": "x"})).await.json();
    let uaid = registered["uaid"].as_str().unwrap();
    let base = format!("/v1/webpush/census/registration/{uaid}");
    for wrong in ["", "Bearer 00ff"] {
        let headers = [("authorization", wrong)];
        let refused = push.ask("GET", &base, &headers, b"").await;
        assert_eq!(refused.refusal(), (401, json!(109)));
    }
    let secret = format!("Bearer {}", registered["secret"].as_str().unwrap());
    let headers = [("authorization", secret.as_str())];
    let ask = async |method: &str, path: &str| push.ask(method, path, &headers, b"").await;
    let subscribed = ask("POST", &format!("{base}/subscription")).await;
    let channel = subscribed.json()["channelID"].clone();
    let known = ask("GET", &base).await.json();
    let channels = known["channelIDs"].as_array().unwrap();
    assert_eq!(channels.len(), 2);
    assert!(channels.contains(&channel) && channels.contains(&registered["channelID"]));
    for (body, status) in [(r#"{"token": "y"}"#, 200), ("rubbish", 400)] {
        let updated = push.ask("PUT", &base, &headers, body.as_bytes()).await;
        assert_eq!(updated.status.as_u16(), status, "{body}");
    }
    let one = format!("{base}/subscription/{}", channel.as_str().unwrap());
    assert_eq!(ask("DELETE", &one).await.status, StatusCode::OK);
    assert_eq!(ask("DELETE", &one).await.refusal(), (410, json!(106)));
    assert_eq!(ask("DELETE", &base).await.status, StatusCode::OK);
    assert_eq!(ask("GET", &base).await.refusal(), (410, json!(103)));
}

#[tokio::test]
async fn other_routers_and_bodies_are_refused() {
    let push = Push::new(Rules::AUTOPUSH);
    for (router, body, errno) in [
        ("fcm", "{}", json!(108)),
        ("webpush", "rubbish", json!(null)),
    ] {
        let path = format!("/v1/{router}/census/registration");
        let refused = push.ask("POST", &path, &[], body.as_bytes()).await;
        assert_eq!(refused.refusal(), (400, errno));
    }
}

#[tokio::test] // S30
async fn address_has_a_limit_of_users() {
    let push = Push::new(Rules::AUTOPUSH);
    let path = "/v1/webpush/census/registration";
    let mut made = 0;
    let refused = loop {
        let from = [("x-real-ip", "192.0.2.1")];
        let answer = push.ask("POST", path, &from, b"{}").await;
        if answer.status != StatusCode::OK {
            break answer;
        }
        made += 1;
        assert!(made < 1000, "there is no end");
    };
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.header("retry-after"), "120");
    for (from, status) in [("192.0.2.1", 429), ("192.0.2.2", 200)] {
        let mut client = Client::over(open_connection(push.public()), Some(from)).await;
        client.hello("").await;
        client
            .say(json!({"messageType": "register", "channelID": CHANNEL}))
            .await;
        assert_eq!(client.heard().await["status"], status, "{from}");
    }
}

#[tokio::test]
async fn a_body_is_not_read_to_its_end_however_long() {
    let push = Push::new(Rules::AUTOPUSH);
    let long = format!("{{\"key\":\"{}\"}}", "A".repeat(40_000));
    let json = [("content-type", "application/json")];
    for (method, path) in [
        ("POST", "/v1/webpush/census/registration"),
        ("POST", "/subscribe"),
        ("DELETE", "/subscribe"),
    ] {
        let refused = push.ask(method, path, &json, long.as_bytes()).await;
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
    let node = internal(Arc::clone(&push.service));
    let path = format!("/push/{CHANNEL}");
    let refused = ask(node, "PUT", &path, &json, long.as_bytes()).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
}

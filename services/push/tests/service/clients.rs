use push::session::{Acks, Direct};
use tokio::io::AsyncWriteExt as _;

use super::*;

#[tokio::test]
async fn a_message_goes_straight_to_a_client_and_is_not_stored() {
    let (push, mut client, endpoint) = rig().await;
    let sent = push.send(&endpoint, 60).await;
    assert_eq!(sent.status, StatusCode::CREATED);
    let message = client.heard().await;
    assert_eq!(message["messageType"], "notification");
    assert_eq!(message["channelID"], CHANNEL);
    let version = message["version"].as_str().unwrap();
    assert!(sent.header("location").ends_with(version));
    client.acknowledge(&message).await;
    let uaid = push.dismissed(client).await;
    let mut again = push.client().await;
    assert_eq!(again.hello(&uaid).await["uaid"], uaid.as_str());
    again.hears_nothing().await;
}

#[tokio::test]
async fn what_was_not_acknowledged_comes_again_from_the_storage() {
    let (push, mut client, endpoint) = rig().await;
    push.send(&endpoint, 60).await;
    let first = client.heard().await;
    let uaid = push.dismissed(client).await;
    push.send(&endpoint, 60).await;
    let mut again = push.greeted(&uaid).await;
    let mut versions = vec![again.heard().await["version"].clone()];
    versions.push(again.heard().await["version"].clone());
    assert!(versions.contains(&first["version"]), "{versions:?}");
}

#[tokio::test]
async fn a_client_that_connects_again_ends_its_former_connection() {
    let push = Push::new(Rules::AUTOPUSH);
    let (mut former, endpoint) = subscribed(&push, None).await;
    push.send(&endpoint, 60).await;
    let message = former.heard().await;
    let uaid = former.uaid.clone();
    let mut current = push.greeted(&uaid).await;
    assert_eq!(former.closed().await, (1011, "SM".to_owned()));
    // The current connection gets what the former one did not acknowledge.
    assert_eq!(current.heard().await["version"], message["version"]);
    push.send(&endpoint, 60).await;
    current.heard().await;
    drop(former);
}

#[tokio::test]
async fn the_end_of_a_connection_does_not_harm_the_next_one() {
    let (push, mut client, endpoint) = rig().await;
    for _ in 0..100 {
        let uaid = client.uaid.clone();
        drop(client);
        client = push.greeted(&uaid).await;
        assert_eq!(client.uaid, uaid);
        // It is dropped unless the client counts as connected.
        push.send(&endpoint, 0).await;
        let message = client.heard().await;
        client.acknowledge(&message).await;
    }
}

#[tokio::test]
async fn frames_that_clients_do_not_send_end_the_connection() {
    let push = Push::new(Rules::AUTOPUSH);
    for (frame, code, reason) in [
        (Message::binary(vec![1]), 1003, "UnsupportedMessage"),
        (Message::Ping(vec![1].into()), 1003, "UnsupportedMessage"),
        (Message::text("rubbish"), 1011, "Json"),
        (Message::text("{}"), 1011, "SM"),
    ] {
        let mut client = push.client().await;
        client.socket.send(frame).await.unwrap();
        assert_eq!(client.closed().await, (code, reason.to_owned()));
    }
}

#[tokio::test]
async fn bytes_that_are_no_frame_end_the_connection() {
    let push = Push::new(Rules::AUTOPUSH);
    let mut client = push.greeted("").await;
    // Opcode 3 is reserved.
    let rubbish = [0x83, 0x80, 0, 0, 0, 0];
    client.socket.get_mut().write_all(&rubbish).await.unwrap();
    assert_eq!(client.closed().await, (1002, "Protocol".to_owned()));
}

#[tokio::test] // S30
async fn one_sender_never_has_a_client_reset() {
    let (push, mut client, endpoint) = rig().await;
    let uaid = client.uaid.clone();
    let mut sent = 0;
    for _ in 0..3 {
        while push.send(&endpoint, 60).await.status == StatusCode::CREATED {
            sent += 1;
            assert!(sent < 1000, "there is no end");
        }
        drop(client);
        until_empty(&push).await;
        client = push.greeted(&uaid).await;
        assert_eq!(client.uaid, uaid);
    }
    assert!(sent >= Limits::ORDINARY.channel_messages, "{sent}");
    for _ in 0..sent {
        let message = client.heard().await;
        client.acknowledge(&message).await;
    }
}

#[tokio::test]
async fn a_ping_frame_after_hello_is_answered() {
    let push = Push::new(Rules::AUTOPUSH);
    let mut client = push.greeted("").await;
    let ping = Message::Ping(vec![7].into());
    client.socket.send(ping).await.unwrap();
    let pong = timeout(PATIENCE, client.socket.next()).await.unwrap();
    assert_eq!(pong.unwrap().unwrap(), Message::Pong(vec![7].into()));
    client.say(json!({})).await;
    assert_eq!(client.heard().await, json!({}));
    client.say(json!({})).await;
    assert_eq!(client.closed().await, (1011, "SM".to_owned()), "too soon");
}

#[tokio::test]
async fn who_says_nothing_or_answers_no_ping_is_hung_up_on() {
    let impatient = Push::new(Rules {
        hello_within: Duration::from_millis(50),
        ..Rules::AUTOPUSH
    });
    let mut silent = impatient.client().await;
    let expected = (1011, "HandshakeTimeout".to_owned());
    assert_eq!(silent.closed().await, expected);
    let push = Push::new(Rules {
        ping_every: Duration::from_millis(50),
        pong_within: Duration::from_millis(50),
        ..Rules::AUTOPUSH
    });
    // A client that does not read answers no ping.
    let _deaf = push.greeted("").await;
    until_empty(&push).await;
}

#[tokio::test]
async fn broadcasts_reach_those_who_asked() {
    let push = Push::new(Rules {
        ping_every: Duration::from_millis(20),
        ..Rules::AUTOPUSH
    });
    let versions = |version: &str| [("census".to_owned(), version.to_owned())].into();
    push.service.broadcast(versions("1"));
    let mut client = push.client().await;
    client
        .say(json!({"messageType": "hello", "broadcasts": {"census": "0"}}))
        .await;
    assert_eq!(client.heard().await["broadcasts"], json!({"census": "1"}));
    push.service.broadcast(versions("2"));
    let expected = json!({"messageType": "broadcast", "broadcasts": {"census": "2"}});
    assert_eq!(client.heard().await, expected);
    client
        .say(json!({"messageType": "broadcast_subscribe", "broadcasts": {"x": "1"}}))
        .await;
    let expected =
        json!({"messageType": "broadcast", "broadcasts": {"errors": {"x": "Broadcast not found"}}});
    assert_eq!(client.heard().await, expected);
}

#[tokio::test]
async fn messages_that_are_stored_first_survive_the_process() {
    let push = Push::new(Rules {
        direct: Direct::OnlyUnstorable,
        acks: Acks::Each,
        ..Rules::AUTOPUSH
    });
    let (mut client, endpoint) = subscribed(&push, None).await;
    push.send(&endpoint, 60).await;
    let message = client.heard().await;
    // Another process over the same file, while this one never stores anything.
    let other = push.another(settings(Rules::AUTOPUSH));
    let mut again = Client::connect(public(other)).await;
    let uaid = client.uaid.clone();
    again.hello(&uaid).await;
    assert_eq!(again.heard().await["version"], message["version"]);
}

#[tokio::test]
async fn a_message_for_a_client_at_another_node_finds_it_there() {
    let push = Push::new(Rules::AUTOPUSH);
    let (other, listener) = push.node(Rules::AUTOPUSH);
    let router = internal(Arc::clone(&other));
    let node = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, router.clone()));
        }
    });
    let (mut client, endpoint) = subscribed_at(public(other), None).await;
    push.send(&endpoint, 0).await;
    client.heard().await;
    // The node goes away: the message is stored, and the user's record no longer names it.
    node.abort();
    assert!(node.await.is_err());
    let sent = push.send(&endpoint, 60).await;
    assert_eq!(sent.status, StatusCode::CREATED);
    let mut here = push.greeted(&client.uaid).await;
    here.heard().await;
}

#[tokio::test]
async fn messages_arrive_after_a_node_was_unreachable() {
    let push = Push::new(Rules::AUTOPUSH);
    let (other, socket) = push.node(Rules {
        ping_every: Duration::from_millis(100),
        ..Rules::AUTOPUSH
    });
    drop(socket);
    let (mut client, endpoint) = subscribed_at(public(other), None).await;
    for _ in 0..2 {
        let sent = push.send(&endpoint, 60).await;
        let version = client.heard().await["version"].clone();
        assert!(sent.header("location").ends_with(version.as_str().unwrap()));
    }
}

#[tokio::test] // S28
async fn public_cannot_use_the_nodes_socket() {
    let (push, mut client, _) = rig().await;
    let of = |kind: &str, uaid: &str| format!("/{kind}/{uaid}");
    let (here, nobody) = (of("notif", &client.uaid), of("notif", CHANNEL));
    let public = push.ask("PUT", &here, &[], b"").await;
    assert_eq!(public.status, StatusCode::NOT_FOUND);
    let inside = async |path: &str, body: &Value| {
        let json = [("content-type", "application/json")];
        let router = internal(Arc::clone(&push.service));
        let body = body.to_string();
        ask(router, "PUT", path, &json, body.as_bytes())
            .await
            .status
    };
    assert_eq!(inside(&here, &json!(null)).await, StatusCode::OK);
    assert_eq!(inside(&nobody, &json!(null)).await, StatusCode::NOT_FOUND);
    // The sender of the second one waited for so long that it has stored it.
    let now_ms = now()();
    for (sent_ms, expected) in [
        (now_ms, StatusCode::OK),
        (now_ms - 2000, StatusCode::NOT_FOUND),
    ] {
        let message = json!({"channel": CHANNEL, "version": "v", "ttl_s": 60, "arrived_s": 1, "topic": null, "payload": null, "place_ms": 1});
        let body = json!({"sent_ms": sent_ms, "message": message});
        let push = of("push", &client.uaid);
        assert_eq!(inside(&push, &body).await, expected);
    }
    assert_eq!(client.heard().await["version"], "v");
    client.hears_nothing().await;
}

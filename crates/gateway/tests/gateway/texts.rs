//! The socket that answers only requests for TXT records.

use std::path::Path;

use gateway::control::{CONTROL_LINE_BYTES_MAX, Texts};
use gateway::{ClientError, GatewayClient, Looked, Settings, TextName};
use protocol::egress::{Deferral, Wish};
use protocol::{CheckId, Host};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::rig::{Rig, order};

const NAMES: &str = "a.test 127.0.0.1 9\n_fedicensus.a.test txt first # said\n_fedicensus.a.test txt second\n\
    _fedicensus.down.test servfail\n_fedicensus.slow.test timeout\n_fedicensus.bare.test nodata\n";

fn name(text: &str) -> TextName {
    TextName::parse(text).unwrap()
}

async fn rig(change: impl FnOnce(&mut Settings)) -> (Rig, GatewayClient) {
    let mut socket = None;
    let rig = Rig::start(NAMES, |settings| {
        let path = settings.control_socket.with_file_name("texts.sock");
        settings.text_socket = Some(path.clone());
        socket = Some(path);
        change(settings);
    })
    .await;
    (rig, GatewayClient::new(socket.unwrap()))
}

async fn looked(client: &GatewayClient, text: &str, group: &str) -> Result<Looked, ClientError> {
    client.texts(name(text), group.to_owned()).await
}

#[tokio::test]
async fn texts_are_answered_at_both_sockets() {
    let (rig, client) = rig(|_| {}).await;
    let expect = Texts::Records {
        records: vec!["first".to_owned(), "second".to_owned()],
    };
    for client in [&client, &rig.client] {
        for (text, expect) in [
            ("_fedicensus.a.test", expect.clone()),
            ("_fedicensus.b.test", Texts::NoSuchName {}),
            ("_sigsum_v1.a.test", Texts::NoSuchName {}),
            ("_fedicensus.bare.test", Texts::NoData {}),
            ("_fedicensus.down.test", Texts::ServerFailed {}),
            ("_fedicensus.slow.test", Texts::TimedOut {}),
        ] {
            let group = name(text).domain().to_string();
            let looked = looked(client, text, &group).await.unwrap();
            assert_eq!(looked, Looked::Answered(expect), "{text}");
        }
    }
}

/// An order, which may make a line longer, is taken at the gateway's own socket alone.
#[tokio::test]
async fn a_long_line_is_refused_at_the_socket_for_texts() {
    let (rig, _client) = rig(|_| {}).await;
    let texts = rig.control.with_file_name("texts.sock");
    for (path, expect) in [
        (&rig.control, "was not understood"),
        (&texts, "longer than"),
    ] {
        let mut stream = UnixStream::connect(path).await.unwrap();
        let line = format!("{}\n", " ".repeat(CONTROL_LINE_BYTES_MAX + 1));
        stream.write_all(line.as_bytes()).await.unwrap();
        let mut answer = vec![0; 200];
        let read = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]);
        assert!(answer.contains(expect), "{answer}");
    }
}

#[tokio::test] // S20
async fn the_socket_for_texts_opens_no_way_out() {
    let (rig, client) = rig(|_| {}).await;
    let host = Host::parse("a.test").unwrap();
    let check = CheckId::from_random(7);
    let opened = client
        .open(check, host, "a.test".to_owned(), order(), Wish::default())
        .await;
    assert!(matches!(opened, Err(ClientError::Refused(_))), "{opened:?}");
    assert!(matches!(
        client.status().await,
        Err(ClientError::Refused(_))
    ));
    assert!(is_empty(&rig.root));
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[tokio::test]
async fn a_group_that_the_name_does_not_lie_in_is_refused() {
    let (_rig, client) = rig(|_| {}).await;
    for group in ["b.test", "test", "", "xa.test"] {
        let looked = looked(&client, "_fedicensus.a.test", group).await;
        assert!(
            matches!(looked, Err(ClientError::Refused(_))),
            "{group}: {looked:?}"
        );
    }
}

/// Invariant I8.
#[tokio::test]
async fn made_up_names_below_one_domain_cost_its_servers_one_question_in_ten_seconds() {
    let (_rig, client) = rig(|settings| settings.pace_divisor = 1).await;
    let first = looked(&client, "_fedicensus.n1.a.test", "a.test")
        .await
        .unwrap();
    assert_eq!(first, Looked::Answered(Texts::NoSuchName {}));
    for number in 2..10 {
        let text = format!("_fedicensus.n{number}.a.test");
        let late = looked(&client, &text, "a.test").await.unwrap();
        assert!(
            matches!(
                late,
                Looked::Deferred {
                    why: Deferral::GroupPace,
                    ..
                }
            ),
            "{late:?}"
        );
    }
}

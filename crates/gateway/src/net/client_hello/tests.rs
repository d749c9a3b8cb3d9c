use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::*;

/// The first flight of a TLS client that connects to `name`.
fn client_hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hello
}

fn grow(bytes: &mut [u8], by: u16) {
    let at = bytes.len() - 2;
    let length = u16::from_be_bytes([bytes[at], bytes[at + 1]]) + by;
    bytes[at..].copy_from_slice(&length.to_be_bytes());
}

/// The same hello with one more extension, whose body is the byte 1 (which means "inner" in an
/// encrypted hello).
fn with_extension(hello: &[u8], kind: u16) -> Vec<u8> {
    let mut longer = hello.to_vec();
    let session_id = usize::from(hello[43]);
    let suites_at = 44 + session_id;
    let suites = usize::from(u16::from_be_bytes([hello[suites_at], hello[suites_at + 1]]));
    let extensions_at = suites_at + 2 + suites + 2;
    grow(&mut longer[..5], 5);
    grow(&mut longer[..9], 5);
    grow(&mut longer[..extensions_at + 2], 5);
    longer.extend_from_slice(&kind.to_be_bytes());
    longer.extend_from_slice(&[0, 1, 1]);
    longer
}

/// The same hello split into records of at most `bytes`.
fn in_records(hello: &[u8], bytes: usize) -> Vec<u8> {
    let mut cut = Vec::new();
    for part in hello[5..].chunks(bytes) {
        cut.extend_from_slice(&hello[..3]);
        cut.extend_from_slice(&u16::try_from(part.len()).unwrap().to_be_bytes());
        cut.extend_from_slice(part);
    }
    cut
}

async fn check(sent: &[u8], expect: Result<(), &str>) {
    let host = Host::parse("a.lab.test").unwrap();
    let mut from = sent;
    let found = read(&mut from, &host).await;
    match (&found, expect) {
        (Ok(hello), Ok(())) => assert_eq!(hello, sent),
        (Err(error), Err(wanted)) => assert!(error.to_string().contains(wanted), "{error}"),
        _ => panic!("{found:?} instead of {expect:?}"),
    }
}

#[tokio::test]
async fn only_a_hello_for_the_host_passes() {
    check(&client_hello("a.lab.test"), Ok(())).await;
    check(&client_hello("A.LAB.test"), Ok(())).await;
    check(&client_hello("b.lab.test"), Err("another host")).await;
    check(&client_hello("x.a.lab.test"), Err("another host")).await;
    check(&client_hello("127.0.0.1"), Err("another host")).await;
}

#[tokio::test]
async fn what_is_no_tls_is_refused() {
    check(
        b"GET / HTTP/1.1\r\nHost: a.lab.test\r\n\r\n",
        Err("not TLS"),
    )
    .await;
    check(b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", Err("not TLS")).await;
    check(b"", Err("ended")).await;
    let hello = client_hello("a.lab.test");
    check(&hello[..hello.len() - 1], Err("ended")).await;
}

#[tokio::test]
async fn a_hello_cut_into_records_is_read_whole() {
    check(&in_records(&client_hello("a.lab.test"), 7), Ok(())).await;
    check(
        &in_records(&client_hello("b.lab.test"), 50),
        Err("another host"),
    )
    .await;
}

#[tokio::test]
async fn an_encrypted_hello_is_refused_however_it_is_cut() {
    let hello = client_hello("a.lab.test");
    check(&with_extension(&hello, 0xfafa), Ok(())).await;
    let encrypted = with_extension(&hello, ENCRYPTED_CLIENT_HELLO);
    check(&encrypted, Err("encrypted")).await;
    check(&in_records(&encrypted, 11), Err("encrypted")).await;
}

#[tokio::test]
async fn a_hello_without_end_is_refused() {
    let endless = [
        b"\x16\x03\x01\x40\x00\x01\x00\xff\xff".as_slice(),
        &[0; 20_000],
    ]
    .concat();
    check(&endless, Err("too large")).await;
}

#[tokio::test(start_paused = true)]
async fn a_hello_that_does_not_come_is_not_waited_for() {
    let (mut near, _far) = tokio::io::duplex(64);
    let host = Host::parse("a.lab.test").unwrap();
    assert!(matches!(
        read(&mut near, &host).await,
        Err(HelloError::Slow)
    ));
}

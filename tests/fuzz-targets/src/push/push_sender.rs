//! An application's HTTP request, head and body: only this service makes tokens, only a key's
//! holder is its signer, and accepted input is within bounds.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use push::endpoint::fernet::Keys;
use push::endpoint::message::{self, BODY_BYTES_MAX, Headers};
use push::endpoint::vapid::{Expected, signer};
use push::endpoint::{Address, MessageId, Version};
use push::notification::TTL_SECONDS_MAX;

static KEYS: LazyLock<Keys> =
    LazyLock::new(|| Keys::parse(&Keys::text_of(&[5; 32])).expect("a key"));

/// Keys that made no token in the seeds.
static OTHER: LazyLock<Keys> =
    LazyLock::new(|| Keys::parse(&Keys::text_of(&[6; 32])).expect("a key"));

/// A time at which the seeds' signatures are valid.
const NOW_S: i64 = 1_800_000_000;

const IV: [u8; 16] = [3; 16];

pub fn check(data: &[u8]) {
    let (head, body) = split(data);
    tokens(head.get("token").map(String::as_str), body);
    signed(&head);
    sent(&head, body);
}

/// Header fields up to an empty line, and the rest.
fn split(data: &[u8]) -> (BTreeMap<String, String>, &[u8]) {
    let end = data.windows(2).position(|two| two == b"\n\n");
    let (head, body) = match end {
        Some(end) => (&data[..end], &data[end + 2..]),
        None => (data, &b""[..]),
    };
    let head = String::from_utf8_lossy(head);
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    (fields.collect(), body)
}

fn tokens(token: Option<&str>, plain: &[u8]) {
    if let Some(token) = token {
        for version in [Version::V1, Version::V2] {
            if let Some(address) = Address::read(version, token, &KEYS) {
                assert_eq!(address.version(), version);
                assert_eq!(MessageId::read(token, &KEYS), None, "it is both");
            }
        }
        assert_eq!(OTHER.decrypt(token), None);
    }
    let made = KEYS.encrypt(plain, 7, &IV);
    let read = KEYS.decrypt(&made);
    // Longer ones are not our tokens.
    assert!(read.as_deref() == Some(plain) || (read.is_none() && plain.len() > 600));
    assert_eq!(OTHER.decrypt(&made), None);
    let v1 = Address::read(Version::V1, &made, &KEYS);
    let v2 = Address::read(Version::V2, &made, &KEYS);
    assert_eq!(
        (v1.is_some(), v2.is_some()),
        (plain.len() == 32, plain.len() == 64)
    );
    if let Some(id) = MessageId::read(&made, &KEYS) {
        let text = id.text(&KEYS, 7, &IV);
        assert_eq!(MessageId::read(&text, &KEYS), Some(id));
        assert!(v1.is_none() && v2.is_none(), "it is both");
    }
}

fn signed(head: &BTreeMap<String, String>) {
    let field = |name: &str| head.get(name).map(String::as_str);
    let expected = |origin, now_s| Expected { origin, now_s };
    let (authorization, crypto_key) = (field("authorization"), field("crypto-key"));
    let good = expected("https://push.example", NOW_S);
    match signer(authorization, crypto_key, good) {
        Ok(None) => assert_eq!(authorization, None),
        Ok(Some(key)) => {
            assert_eq!(key.len(), 65);
            for other in [
                expected("https://other.example", NOW_S),
                expected("https://push.example", NOW_S + 2 * 86_400),
                expected("https://push.example", NOW_S - 2 * 86_400),
            ] {
                assert!(signer(authorization, crypto_key, other).is_err());
            }
        }
        Err(refusal) => assert!([400, 401].contains(&refusal.status())),
    }
}

fn sent(head: &BTreeMap<String, String>, body: &[u8]) {
    let field = |name: &str| head.get(name).map(String::as_str);
    let headers = Headers {
        ttl: field("ttl"),
        topic: field("topic"),
        content_encoding: field("content-encoding"),
        encryption: field("encryption"),
        crypto_key: field("crypto-key"),
    };
    let Ok(sent) = message::read(headers, body) else {
        return;
    };
    assert!(body.len() <= BODY_BYTES_MAX && sent.ttl_s <= TTL_SECONDS_MAX);
    assert_eq!(
        sent.topic.clone().map(String::from),
        headers.topic.map(str::to_owned)
    );
    let Some(payload) = &sent.payload else {
        assert!(body.is_empty());
        return;
    };
    assert!(!payload.data.contains('='));
    let texts = [&payload.headers.encryption, &payload.headers.crypto_key];
    for text in texts.into_iter().flatten() {
        assert!(!text.contains('"'), "{text}");
    }
    // Headers for clients do not change when they are read again. They may be rejected: of an empty
    // value, only the key is left.
    let again = Headers {
        encryption: payload.headers.encryption.as_deref(),
        crypto_key: payload.headers.crypto_key.as_deref(),
        ..headers
    };
    if let Ok(again) = message::read(again, body) {
        assert_eq!(again, sent);
    }
}

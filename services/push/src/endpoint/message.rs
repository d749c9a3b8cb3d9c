//! A message of an application: headers and a body, within bounds.

use data_encoding::BASE64URL_NOPAD;

use crate::notification::{Payload, PayloadHeaders, TTL_SECONDS_MAX, Topic};

use super::Refusal;
use super::pairs::pairs;

/// Longest body, in bytes, as in autopush-rs.
pub const BODY_BYTES_MAX: usize = 5630;

#[derive(Debug, Clone, Copy, Default)]
pub struct Headers<'a> {
    /// `TTL` (RFC 8030 §5.2).
    pub ttl: Option<&'a str>,
    /// `Topic` (RFC 8030 §5.4).
    pub topic: Option<&'a str>,
    pub content_encoding: Option<&'a str>,
    pub encryption: Option<&'a str>,
    pub crypto_key: Option<&'a str>,
}

/// A message without its addresses and times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Longest time in storage: the requested one, at most 30 days.
    pub ttl_s: u32,
    pub topic: Option<Topic>,
    /// The body; `None` if it is empty, with any headers.
    pub payload: Option<Payload>,
}

pub fn read(headers: Headers<'_>, body: &[u8]) -> Result<Sent, Refusal> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Refusal::TooLarge);
    }
    let ttl: i64 = headers
        .ttl
        .and_then(|text| text.trim().parse().ok())
        .ok_or(Refusal::Ttl)?;
    let payload = match body {
        [] => None,
        _ => Some(Payload {
            data: BASE64URL_NOPAD.encode(body),
            headers: encryption(headers)?,
        }),
    };
    if ttl < 0 {
        return Err(Refusal::NegativeTtl);
    }
    let topic = headers
        .topic
        .map(|topic| Topic::try_from(topic.to_owned()).map_err(Refusal::Topic))
        .transpose()?;
    let ttl_s = u32::try_from(ttl).unwrap_or(TTL_SECONDS_MAX);
    Ok(Sent {
        ttl_s: ttl_s.min(TTL_SECONDS_MAX),
        topic,
        payload,
    })
}

fn encryption(headers: Headers<'_>) -> Result<PayloadHeaders, Refusal> {
    let read = |header: Option<&str>, refusal| match header {
        Some(header) => pairs(header).map(Some).ok_or(refusal),
        None => Ok(None),
    };
    let encryption = read(
        headers.encryption,
        Refusal::Encryption("Encryption is not made of pairs"),
    )?;
    let crypto_key = read(
        headers.crypto_key,
        Refusal::Encryption("Crypto-Key is not made of pairs"),
    )?;
    match headers.content_encoding {
        Some("aesgcm") => {
            let salt = encryption.as_ref().and_then(|pairs| pairs.get("salt"));
            let is_salt = |salt: &String| {
                BASE64URL_NOPAD
                    .decode(salt.trim_end_matches('=').as_bytes())
                    .is_ok()
            };
            if !salt.is_some_and(is_salt) {
                return Err(Refusal::Encryption("aesgcm needs a salt in Encryption"));
            }
            if crypto_key.is_some_and(|pairs| !pairs.contains_key("dh")) {
                return Err(Refusal::Encryption("Crypto-Key lacks dh"));
            }
        }
        Some("aes128gcm") => {
            if encryption.is_some_and(|pairs| pairs.contains_key("salt")) {
                return Err(Refusal::Encryption("aes128gcm has its salt in the body"));
            }
            if crypto_key.is_some_and(|pairs| pairs.contains_key("dh")) {
                return Err(Refusal::Encryption("aes128gcm has its key in the body"));
            }
        }
        Some(_) | None => {
            return Err(Refusal::Encryption(
                "Content-Encoding must be aes128gcm or aesgcm",
            ));
        }
    }
    Ok(PayloadHeaders {
        encoding: headers.content_encoding.unwrap_or_default().to_owned(),
        encryption: headers.encryption.map(clean),
        crypto_key: headers.crypto_key.map(clean),
    })
}

/// A header as user agents expect it: without quotation marks, and without base64's padding.
fn clean(header: &str) -> String {
    let plain = header.replace('"', "");
    let mut clean = String::with_capacity(plain.len());
    for section in plain.split_inclusive([',', ';']) {
        let (text, end) = match section.strip_suffix([',', ';']) {
            Some(text) => (text, section.get(text.len()..).unwrap_or_default()),
            None => (section, ""),
        };
        clean.push_str(text.trim_end_matches('='));
        clean.push_str(end);
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    const AES128GCM: Headers<'static> = Headers {
        ttl: Some("60"),
        topic: None,
        content_encoding: Some("aes128gcm"),
        encryption: None,
        crypto_key: None,
    };

    const AESGCM: Headers<'static> = Headers {
        content_encoding: Some("aesgcm"),
        encryption: Some(r#"keyid="p256dh";salt="S82AseB7pAVBJ2143qtM3A==""#),
        crypto_key: Some(r#"keyid="p256dh";dh="BAAA",p256ecdsa="BBBB==""#),
        ..AES128GCM
    };

    fn with<'a>(headers: Headers<'a>, change: impl FnOnce(&mut Headers<'a>)) -> Headers<'a> {
        let mut changed = headers;
        change(&mut changed);
        changed
    }

    #[test]
    fn headers_reach_the_user_agent_without_marks_and_padding() {
        let sent = read(AESGCM, b"x").unwrap();
        let headers = sent.payload.unwrap().headers;
        assert_eq!(headers.encoding, "aesgcm");
        assert_eq!(
            headers.encryption.unwrap(),
            "keyid=p256dh;salt=S82AseB7pAVBJ2143qtM3A"
        );
        assert_eq!(
            headers.crypto_key.unwrap(),
            "keyid=p256dh;dh=BAAA,p256ecdsa=BBBB"
        );
    }

    #[test]
    fn a_body_is_as_large_as_autopushs_and_no_larger() {
        let body = vec![0; BODY_BYTES_MAX + 1];
        assert_eq!(read(AES128GCM, &body), Err(Refusal::TooLarge));
        assert!(read(AES128GCM, &body[1..]).is_ok());
    }

    #[test]
    fn without_a_body_nothing_is_said_about_its_encryption() {
        let headers = Headers {
            content_encoding: Some("gzip"),
            encryption: Some("junk"),
            ..AESGCM
        };
        assert_eq!(read(headers, b"").unwrap().payload, None);
        assert!(matches!(read(headers, b"x"), Err(Refusal::Encryption(_))));
    }

    #[test]
    fn a_time_to_live_is_a_whole_number_and_a_month_at_most() {
        for (ttl, expect) in [
            ("0", Ok(0)),
            ("60", Ok(60)),
            ("2592000", Ok(2_592_000)),
            ("2592001", Ok(2_592_000)),
            ("999999999999", Ok(2_592_000)),
            ("-1", Err(Refusal::NegativeTtl)),
            ("1.5", Err(Refusal::Ttl)),
            ("", Err(Refusal::Ttl)),
            ("99999999999999999999", Err(Refusal::Ttl)),
        ] {
            let headers = with(AES128GCM, |h| h.ttl = Some(ttl));
            let found = read(headers, b"x").map(|sent| sent.ttl_s);
            assert_eq!(found, expect, "{ttl}");
        }
        let none = with(AES128GCM, |h| h.ttl = None);
        assert_eq!(read(none, b"x"), Err(Refusal::Ttl));
    }

    #[test]
    fn encryption_headers_say_what_their_encoding_needs_and_no_more() {
        for headers in [
            with(AES128GCM, |h| h.content_encoding = None),
            with(AES128GCM, |h| h.content_encoding = Some("gzip")),
            with(AES128GCM, |h| h.encryption = Some("salt=AAAA")),
            with(AES128GCM, |h| h.crypto_key = Some("dh=AAAA")),
            with(AESGCM, |h| h.encryption = None),
            with(AESGCM, |h| h.encryption = Some("salt=a b")),
            with(AESGCM, |h| h.encryption = Some("rs=4096")),
            with(AESGCM, |h| h.crypto_key = Some("p256ecdsa=AAAA")),
            with(AESGCM, |h| h.crypto_key = Some("junk")),
        ] {
            let found = read(headers, b"x");
            assert!(matches!(found, Err(Refusal::Encryption(_))), "{headers:?}");
        }
        let signed = with(AES128GCM, |h| h.crypto_key = Some("p256ecdsa=AAAA"));
        let bare = with(AESGCM, |h| h.crypto_key = None);
        assert!(read(signed, b"x").is_ok() && read(bare, b"x").is_ok());
    }

    #[test]
    fn what_is_wrong_first_is_said_first() {
        let all_wrong = Headers {
            ttl: Some("-1"),
            topic: Some("no topic"),
            content_encoding: None,
            ..AES128GCM
        };
        let large = vec![0; BODY_BYTES_MAX + 1];
        assert_eq!(read(all_wrong, &large), Err(Refusal::TooLarge));
        assert!(matches!(read(all_wrong, b"x"), Err(Refusal::Encryption(_))));
        assert_eq!(read(all_wrong, b""), Err(Refusal::NegativeTtl));
        let topic = with(all_wrong, |h| h.ttl = Some("1"));
        assert!(matches!(read(topic, b""), Err(Refusal::Topic(_))));
    }
}

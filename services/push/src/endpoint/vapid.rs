//! The sender: VAPID (RFC 8292), a JWT signed with ES256, in the forms that autopush-rs accepts.

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde::Deserialize;

use super::Refusal;
use super::pairs::{base64_any, pairs};

/// A token is valid for a day at most.
const LIFE_SECONDS_MAX: i64 = 24 * 60 * 60;

/// Seconds by which clocks may differ.
const LEEWAY_SECONDS: i64 = 60;

/// Longest header that is read, in characters.
const HEADER_CHARS_MAX: usize = 8 * 1024;

#[derive(Deserialize)]
struct Header {
    alg: String,
}

#[derive(Deserialize)]
struct Claims {
    aud: String,
    exp: i64,
}

#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The origin of all endpoints, such as `https://push.example`.
    pub origin: &'a str,
    /// Now, in seconds since 1970.
    pub now_s: i64,
}

/// The public key that a request is signed with; `None` if it is not signed.
///
/// # Errors
/// [`Refusal::Unauthorized`] if the signature or a claim is invalid; [`Refusal::Encryption`] if the
/// older form lacks its key.
pub fn signer(
    authorization: Option<&str>,
    crypto_key: Option<&str>,
    expected: Expected<'_>,
) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(authorization) = authorization else {
        return Ok(None);
    };
    if authorization.len() > HEADER_CHARS_MAX {
        return Err(Refusal::Unauthorized("the header is too long"));
    }
    let (scheme, rest) = authorization
        .trim()
        .split_once(' ')
        .ok_or(Refusal::Unauthorized("the header holds no token"))?;
    let (token, key) = match scheme.to_ascii_lowercase().as_str() {
        "vapid" => {
            let pairs = pairs(rest).unwrap_or_default();
            let both = pairs.get("t").zip(pairs.get("k"));
            let (token, key) = both.ok_or(Refusal::Unauthorized("vapid needs t and k"))?;
            (token.clone(), key.clone())
        }
        "bearer" | "webpush" => {
            let pairs = crypto_key.and_then(pairs).unwrap_or_default();
            let key = pairs
                .get("p256ecdsa")
                .ok_or(Refusal::Encryption("Crypto-Key lacks p256ecdsa"))?;
            (rest.trim().to_owned(), key.clone())
        }
        _ => return Err(Refusal::Unauthorized("the scheme is not vapid")),
    };
    let key = base64_any(&key).ok_or(Refusal::Unauthorized("the key is not base64"))?;
    check(&token, &key, expected)?;
    Ok(Some(key))
}

fn check(token: &str, key: &[u8], expected: Expected<'_>) -> Result<(), Refusal> {
    let no_token = Refusal::Unauthorized("the token is no JWT");
    let (signed, signature) = token.rsplit_once('.').ok_or(no_token.clone())?;
    let (header, claims) = signed.split_once('.').ok_or(no_token.clone())?;
    let decoded = |part: &str| BASE64URL_NOPAD.decode(part.as_bytes()).ok();
    let header: Option<Header> =
        decoded(header).and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if header.ok_or(no_token.clone())?.alg != "ES256" {
        return Err(Refusal::Unauthorized("the token is not signed with ES256"));
    }
    let signature = decoded(signature).ok_or(no_token)?;
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key)
        .verify(signed.as_bytes(), &signature)
        .or(Err(Refusal::Unauthorized("the signature does not hold")))?;
    let claims: Option<Claims> =
        decoded(claims).and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let claims = claims.ok_or(Refusal::Unauthorized("the token lacks aud or exp"))?;
    if claims.aud != expected.origin {
        return Err(Refusal::Unauthorized("aud is not this service"));
    }
    let left_s = claims.exp.saturating_sub(expected.now_s);
    if left_s < LEEWAY_SECONDS.saturating_neg() {
        return Err(Refusal::Unauthorized("the token has expired"));
    }
    if left_s > LIFE_SECONDS_MAX {
        return Err(Refusal::Unauthorized("exp is more than a day away"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::{Value, json};

    use super::*;

    const ORIGIN: &str = "https://push.example";
    const NOW_S: i64 = 1_800_000_000;

    struct Sender {
        pair: EcdsaKeyPair,
        random: SystemRandom,
    }

    impl Sender {
        fn new() -> Self {
            let random = SystemRandom::new();
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
            Self { pair, random }
        }

        fn key(&self) -> String {
            BASE64URL_NOPAD.encode(self.pair.public_key().as_ref())
        }

        fn token(&self, header: &Value, claims: &Value) -> String {
            let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
            let signed = format!("{}.{}", part(header), part(claims));
            let signature = self.pair.sign(&self.random, signed.as_bytes()).unwrap();
            format!("{signed}.{}", BASE64URL_NOPAD.encode(signature.as_ref()))
        }

        fn good(&self) -> String {
            self.token(&es256(), &claims(3600))
        }
    }

    fn es256() -> Value {
        json!({"typ": "JWT", "alg": "ES256"})
    }

    fn claims(left_s: i64) -> Value {
        json!({"aud": ORIGIN, "exp": NOW_S + left_s, "sub": "mailto:a@example"})
    }

    fn signed_by(
        authorization: &str,
        crypto_key: Option<&str>,
    ) -> Result<Option<Vec<u8>>, Refusal> {
        let expected = Expected {
            origin: ORIGIN,
            now_s: NOW_S,
        };
        signer(Some(authorization), crypto_key, expected)
    }

    #[test]
    fn three_schemes_name_the_signer() {
        let sender = Sender::new();
        let (token, key) = (sender.good(), sender.key());
        let public = Some(sender.pair.public_key().as_ref().to_vec());
        for authorization in [
            format!("vapid t={token},k={key}"),
            format!("Vapid t={token}, k={key}"),
            format!("VAPID k={key}==;t={token}"),
        ] {
            assert_eq!(signed_by(&authorization, None), Ok(public.clone()));
        }
        let crypto_key = format!("dh=AAAA,p256ecdsa={key}");
        for scheme in ["Bearer", "WebPush"] {
            let authorization = format!("{scheme} {token}");
            let found = signed_by(&authorization, Some(&crypto_key));
            assert_eq!(found, Ok(public.clone()), "{scheme}");
            let without = signed_by(&authorization, Some("dh=AAAA"));
            assert!(matches!(without, Err(Refusal::Encryption(_))));
        }
        let expected = Expected {
            origin: ORIGIN,
            now_s: NOW_S,
        };
        assert_eq!(signer(None, None, expected), Ok(None));
    }

    #[test]
    fn claims_hold_for_this_service_and_a_day() {
        let sender = Sender::new();
        let check = |header: &Value, claims: &Value| {
            let token = sender.token(header, claims);
            let authorization = format!("vapid t={token},k={}", sender.key());
            signed_by(&authorization, None).is_ok()
        };
        for left_s in [-60, 0, 86_400] {
            assert!(check(&es256(), &claims(left_s)), "{left_s}");
        }
        for left_s in [-61, 86_401] {
            assert!(!check(&es256(), &claims(left_s)), "{left_s}");
        }
        let exp = NOW_S + 60;
        assert!(check(&es256(), &json!({"aud": ORIGIN, "exp": exp})));
        assert!(check(
            &es256(),
            &json!({"aud": ORIGIN, "exp": exp, "sub": null})
        ));
        for wrong in [
            json!({"aud": ORIGIN}),
            json!({"exp": exp}),
            json!({"aud": format!("{ORIGIN}/"), "exp": exp}),
            json!({"aud": [ORIGIN], "exp": exp}),
            json!({"aud": ORIGIN, "exp": "@"}),
            json!({"aud": ORIGIN, "exp": 1.5}),
        ] {
            assert!(!check(&es256(), &wrong), "{wrong}");
        }
        for header in [json!({"alg": "none"}), json!({"alg": "HS256"}), json!({})] {
            assert!(!check(&header, &claims(60)), "{header}");
        }
    }

    #[test]
    fn what_does_not_hold_is_refused() {
        let (sender, other) = (Sender::new(), Sender::new());
        let (token, key) = (sender.good(), sender.key());
        let mut changed = token.clone().into_bytes();
        let last = changed.len() - 2;
        changed[last] = if changed[last] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        for authorization in [
            "Bearer".to_owned(),
            String::new(),
            format!("vapid t={token}"),
            format!("vapid t={token},k={}", other.key()),
            format!("vapid t={changed},k={key}"),
            format!("vapid t={token},k=invalid|"),
            format!("vapid t=a.b.c,k={key}"),
            format!("vapid t=,k={key}"),
            format!("basic {token}"),
            format!("vapid t={},k={key}", "a".repeat(HEADER_CHARS_MAX)),
        ] {
            let found = signed_by(&authorization, None);
            assert!(
                matches!(found, Err(Refusal::Unauthorized(_))),
                "{authorization}: {found:?}"
            );
        }
    }
}

//! Codes of authenticator apps (TOTP, RFC 6238: SHA-1, six digits, 30 s) and recovery codes.

use data_encoding::BASE32_NOPAD;
use hmac::{Hmac, Mac as _};
use limiter::login::record::Timestamp;
use rand::CryptoRng;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

hide!(Secret);

/// Bytes of a shared secret (RFC 4226, section 4: as long as the hash).
pub const SECRET_BYTES: usize = 20;

/// How long a code is shown.
const STEP_SECONDS: u64 = 30;

/// Steps before and after the current one whose codes are accepted, because telephones' clocks
/// differ.
const STEPS_AROUND: u64 = 1;

pub const RECOVERY_CODES: usize = 10;

/// Bytes of a recovery code: 80 bits, which can't be guessed, so that a plain hash is enough to
/// store it.
const RECOVERY_BYTES: usize = 10;

const ISSUER: &str = "Fedicensus";

/// The secret shared with an authenticator app.
pub struct Secret(Zeroizing<[u8; SECRET_BYTES]>);

impl Secret {
    pub(crate) fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn draw(random: &mut impl CryptoRng) -> Self {
        let mut bytes = [0; SECRET_BYTES];
        random.fill_bytes(&mut bytes);
        Self::new(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    /// The secret in the form for typing into an app.
    pub fn base32(&self) -> String {
        BASE32_NOPAD.encode(self.0.as_slice())
    }

    /// The secret in the form of a link or QR code for an app.
    pub fn url(&self, moderator: &str) -> String {
        let secret = self.base32();
        format!("otpauth://totp/{ISSUER}:{moderator}?secret={secret}&issuer={ISSUER}")
    }

    /// The step of this code, if the code may be shown now and its step is later than `used`. Takes
    /// the same time for every code.
    pub(crate) fn step_of(&self, code: &str, now: Timestamp, used: u64) -> Option<u64> {
        let current = now.0.as_secs().checked_div(STEP_SECONDS)?;
        let first = current.saturating_sub(STEPS_AROUND);
        let last = current.saturating_add(STEPS_AROUND);
        let mut found = None;
        for step in first..=last {
            let expected = self.code(step);
            let is_same = bool::from(expected.as_bytes().ct_eq(code.as_bytes()));
            if is_same && step > used {
                found = Some(step);
            }
        }
        found
    }

    /// The code of a step (RFC 4226, section 5.3).
    pub(crate) fn code(&self, step: u64) -> String {
        #[expect(
            clippy::expect_used,
            reason = "HMAC takes keys of every length, and has no other constructor"
        )]
        let mut mac = Hmac::<Sha1>::new_from_slice(self.0.as_slice())
            .expect("invariant: HMAC takes keys of every length");
        mac.update(&step.to_be_bytes());
        let hash: [u8; 20] = mac.finalize().into_bytes().into();
        let offset = usize::from(hash.last().copied().unwrap_or_default() & 0xf);
        let four = hash.iter().skip(offset).take(4);
        let number = four.fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
        format!("{:06}", (number & 0x7fff_ffff) % 1_000_000)
    }
}

/// A new recovery code, and its hash for storage.
pub(crate) fn recovery_code(random: &mut impl CryptoRng) -> (String, [u8; 32]) {
    let mut bytes = [0; RECOVERY_BYTES];
    random.fill_bytes(&mut bytes);
    let text = BASE32_NOPAD.encode(&bytes).to_lowercase();
    let hash = recovery_hash(&text);
    let parts: Vec<String> = text
        .chars()
        .collect::<Vec<_>>()
        .chunks(4)
        .map(|part| part.iter().collect())
        .collect();
    (parts.join("-"), hash)
}

/// The stored hash of a recovery code. Case, blanks and hyphens in the typed text don't matter.
pub(crate) fn recovery_hash(text: &str) -> [u8; 32] {
    let typed: String = text
        .chars()
        .filter(|typed| typed.is_ascii_alphanumeric())
        .map(|typed| typed.to_ascii_lowercase())
        .collect();
    Sha256::digest(typed.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::file::tests::random;

    fn at(seconds: u64) -> Timestamp {
        Timestamp(Duration::from_secs(seconds))
    }

    /// RFC 6238, appendix B, the last six of its eight digits.
    #[test] // S81
    fn codes_are_those_of_the_standard() {
        let secret = Secret::new(*b"12345678901234567890");
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(secret.step_of(code, at(seconds), 0), Some(seconds / 30));
            assert_eq!(
                secret.step_of(code, at(seconds + 30), 0),
                Some(seconds / 30)
            );
            assert_eq!(secret.step_of(code, at(seconds + 60), 0), None, "too late");
            assert_eq!(
                secret.step_of(code, at(seconds), seconds / 30),
                None,
                "used"
            );
        }
        for wrong in ["", "287083", "2870820", "28708", "２８７０８２"] {
            assert_eq!(secret.step_of(wrong, at(59), 0), None, "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_shown_as_apps_take_it_and_not_in_a_log() {
        let secret = Secret::new(*b"12345678901234567890");
        assert_eq!(secret.base32(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let url = secret.url("ada");
        assert!(
            url.starts_with("otpauth://totp/Fedicensus:ada?secret=GEZD"),
            "{url}"
        );
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    #[test]
    fn a_recovery_code_is_the_same_however_it_is_typed() {
        let (code, hash) = recovery_code(&mut random());
        assert_eq!(code.len(), 19, "{code}");
        for typed in [
            code.to_uppercase(),
            code.replace('-', " "),
            format!(" {code}\n"),
        ] {
            assert_eq!(recovery_hash(&typed), hash);
        }
        assert_ne!(recovery_hash(code.get(1..).unwrap()), hash);
    }
}

//! Passwords and their hashes: Argon2id (RFC 9106).

use argon2::password_hash::{
    Error, PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString,
};
use argon2::{Algorithm, Argon2, Params, Version};
use rand::CryptoRng;
use zeroize::Zeroizing;

use crate::error::AccountsError;

hide!(Hashed, Password);

/// Memory of a hash, in KiB. The console's setting limits parallel hashes, and each takes this much
/// of the container's memory.
pub const MEMORY_KIB: u32 = 32 * 1024;

/// Passes over that memory. OWASP's minimum for 19 MiB is two.
const PASSES: u32 = 3;

/// Length of the shortest password, in characters (OWASP ASVS 2.1.1).
pub const CHARACTERS_MIN: usize = 12;

/// Length of the longest password (OWASP ASVS 2.1.2 requires a limit from 64 to 128).
pub const CHARACTERS_MAX: usize = 128;

/// A password as it was typed.
pub struct Password(Zeroizing<String>);

/// The stored hash of a password, in the PHC format.
#[derive(Clone, PartialEq, Eq)]
pub struct Hashed(pub(crate) String);

impl Password {
    /// Accepts any text. The form's size limits its length.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Whether the hash is of this password. Takes about 100 ms of a processor and [`MEMORY_KIB`],
    /// so it belongs on a thread that may block.
    ///
    /// # Errors
    /// Fails if the hash can't be computed, which does not mean a wrong password.
    pub fn is(&self, hashed: &Hashed) -> Result<bool, AccountsError> {
        let parsed = PasswordHash::new(&hashed.0).map_err(failed)?;
        match argon2()?.verify_password(self.0.as_bytes(), &parsed) {
            Ok(()) => Ok(true),
            Err(Error::Password) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Hashes the password for storage.
    pub fn hash(&self, random: &mut impl CryptoRng) -> Result<Hashed, AccountsError> {
        if !(CHARACTERS_MIN..=CHARACTERS_MAX).contains(&self.0.chars().count()) {
            return Err(AccountsError::BadPassword {
                min: CHARACTERS_MIN,
                max: CHARACTERS_MAX,
            });
        }
        hash(self.0.as_bytes(), random)
    }
}

impl Hashed {
    /// The hash of an unknown random password.
    pub(crate) fn of_nobody(random: &mut impl CryptoRng) -> Result<Self, AccountsError> {
        let mut secret = Zeroizing::new([0; 32]);
        random.fill_bytes(secret.as_mut());
        hash(secret.as_slice(), random)
    }
}

fn hash(password: &[u8], random: &mut impl CryptoRng) -> Result<Hashed, AccountsError> {
    let mut salt = [0; 16];
    random.fill_bytes(&mut salt);
    let salt = SaltString::encode_b64(&salt).map_err(failed)?;
    let hash = argon2()?.hash_password(password, &salt).map_err(failed)?;
    Ok(Hashed(hash.to_string()))
}

fn argon2() -> Result<Argon2<'static>, AccountsError> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None);
    let params = params.map_err(|error| AccountsError::Hash(error.to_string()))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn failed(error: Error) -> AccountsError {
    AccountsError::Hash(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::random;

    fn password(text: &str) -> Password {
        Password::new(text.to_owned())
    }

    #[test] // S74 S78
    fn a_password_is_itself_alone() {
        let hashed = password("correct horse").hash(&mut random()).unwrap();
        assert!(hashed.0.starts_with("$argon2id$v=19$m=32768,t=3,p=1$"));
        assert_eq!(format!("{hashed:?}"), "Hashed");
        assert!(password("correct horse").is(&hashed).unwrap());
        for wrong in ["", "correct hors", "Correct horse", "correct horse "] {
            assert!(!password(wrong).is(&hashed).unwrap(), "{wrong}");
        }
        let nobody = Hashed::of_nobody(&mut random()).unwrap();
        assert!(!password("").is(&nobody).unwrap());
        assert!(password("").is(&Hashed("damaged".to_owned())).is_err());
        assert!(!format!("{:?}", password("correct horse")).contains("horse"));
    }

    #[test] // S74
    fn a_password_has_characters_and_not_bytes() {
        for (text, expect) in [
            ("elevenchars", false),
            ("twelve chars", true),
            ("äääääääääää", false),
            ("ääääääääääää", true),
            (&"x".repeat(128), true),
            (&"x".repeat(129), false),
        ] {
            assert_eq!(password(text).hash(&mut random()).is_ok(), expect, "{text}");
        }
    }
}

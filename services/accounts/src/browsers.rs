//! Known browsers: a signed cookie identifies a browser in which a moderator has logged in, so that
//! other people's failures don't lock the moderator out there (OWASP, "Slow down online guessing
//! attacks with device cookies").

use data_encoding::BASE64URL_NOPAD;
use rand::CryptoRng;
use rusqlite::OptionalExtension as _;

use crate::error::AccountsError;
use crate::file::Accounts;
use crate::moderators::EPOCH_BYTES;

const NAME_BYTES: usize = 16;

impl Accounts {
    /// The cookie for a browser in which this moderator has just logged in.
    pub fn browser_cookie(
        &self,
        moderator: &str,
        random: &mut impl CryptoRng,
    ) -> Result<String, AccountsError> {
        let mut name = [0; NAME_BYTES];
        random.fill_bytes(&mut name);
        let epoch = self.epoch(moderator)?;
        let hash = self
            .keys
            .device
            .hash(&[moderator.as_bytes(), &epoch, &name]);
        let [name, hash] = [&name[..], &hash[..]].map(|bytes| BASE64URL_NOPAD.encode(bytes));
        Ok(format!("{name}.{hash}"))
    }

    /// The browser's name, if this cookie was made for a browser of this moderator since the last
    /// reset of the account.
    pub fn known_browser(
        &self,
        moderator: &str,
        cookie: &str,
    ) -> Result<Option<String>, AccountsError> {
        let epoch = self.epoch(moderator)?;
        let Some((name, hash)) = cookie.split_once('.') else {
            return Ok(None);
        };
        let decoded = [name, hash].map(|text| BASE64URL_NOPAD.decode(text.as_bytes()));
        let [Ok(bytes), Ok(hash)] = decoded else {
            return Ok(None);
        };
        let is_ours = self
            .keys
            .device
            .is_hash(&[moderator.as_bytes(), &epoch, &bytes], &hash);
        Ok(is_ours.then(|| name.to_owned()))
    }

    /// Whether this cookie was made for a browser of any moderator since the last reset of the
    /// account.
    pub fn is_known_browser(&self, cookie: &str) -> Result<bool, AccountsError> {
        for moderator in self.moderators()? {
            if self.known_browser(&moderator.name, cookie)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The random value of the account's last reset. Zeros without an account.
    fn epoch(&self, moderator: &str) -> Result<[u8; EPOCH_BYTES], AccountsError> {
        let sql = "SELECT epoch FROM moderators WHERE name = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let epoch = statement.query_row([moderator], |row| row.get(0));
        Ok(epoch.optional()?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use limiter::login::record::Timestamp;

    use crate::file::tests::{accounts, random};
    use crate::password::Password;

    #[test] // S87
    fn a_cookie_is_of_one_moderator_and_void_after_a_reset() {
        let (mut accounts, _folder) = accounts();
        let password = Password::new("correct horse".to_owned());
        for name in ["ada", "bob"] {
            accounts
                .add(name, &password, Timestamp::default(), &mut random())
                .unwrap();
        }
        let cookie = accounts.browser_cookie("ada", &mut random()).unwrap();
        let known = |cookie: &str, of: &str| accounts.known_browser(of, cookie).unwrap();
        let name = known(&cookie, "ada").unwrap();
        assert!(cookie.starts_with(&name), "{cookie}");
        let other = accounts.browser_cookie("ada", &mut rand::rng()).unwrap();
        let (_, signature) = cookie.split_once('.').unwrap();
        let (other_name, _) = other.split_once('.').unwrap();
        for forged in [
            "",
            ".",
            "a.b",
            cookie.get(1..).unwrap(),
            &format!("{other_name}.{signature}"),
            "ä.ä",
        ] {
            assert_eq!(known(forged, "ada"), None, "{forged}");
        }
        assert_eq!(known(&cookie, "bob"), None);
        assert_eq!(known(&cookie, "nobody"), None);
        accounts.reset("ada", &password, &mut rand::rng()).unwrap();
        assert_eq!(accounts.known_browser("ada", &cookie).unwrap(), None);
        let cookie = accounts.browser_cookie("ada", &mut random()).unwrap();
        accounts.remove("ada").unwrap();
        accounts
            .add("ada", &password, Timestamp::default(), &mut rand::rng())
            .unwrap();
        let known = accounts.known_browser("ada", &cookie).unwrap();
        assert_eq!(known, None, "of an account of this name before");
    }
}

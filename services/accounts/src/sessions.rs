//! Sessions of logged-in moderators, their limits, and the tokens of forms.

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use limiter::login::record::Timestamp;
use rand::CryptoRng;
use rusqlite::{OptionalExtension as _, params};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::error::AccountsError;
use crate::file::{Accounts, millis, timestamp};
use crate::moderators::Accepted;

hide!(Token);

/// A session that is unused for this long ends (OWASP ASVS 3.3.2, level 2: 30 minutes).
pub const IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// A session ends after this (OWASP ASVS 3.3.2, level 2: 12 hours).
pub const LIFE_MAX: Duration = Duration::from_secs(12 * 3600);

/// Shortest interval between two writes of the time of use. Without it, each page would cause a
/// write.
const USED_EVERY: Duration = Duration::from_secs(60);

/// Most sessions of a moderator. If another begins, the one that was used longest ago ends.
const SESSIONS_MAX: u32 = 10;

const TOKEN_BYTES: usize = 32;

/// The secret in a browser's session cookie.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Zeroizing<[u8; TOKEN_BYTES]>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub moderator: String,
    pub created_at: Timestamp,
    pub used_at: Timestamp,
}

impl Token {
    pub fn draw(random: &mut impl CryptoRng) -> Self {
        let mut bytes = Zeroizing::new([0; TOKEN_BYTES]);
        random.fill_bytes(bytes.as_mut());
        Self(bytes)
    }

    /// Parses a cookie's value. `None` if it is not a token.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        Some(Self(Zeroizing::new(bytes.try_into().ok()?)))
    }

    pub fn text(&self) -> String {
        BASE64URL_NOPAD.encode(self.0.as_slice())
    }

    fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_slice()).into()
    }
}

impl Accounts {
    /// Logs a moderator in, with a token that was never used before. `browser` identifies the
    /// browser. `None` if the account was reset or removed since it was accepted.
    pub fn log_in(
        &mut self,
        accepted: &Accepted,
        browser: &[u8],
        now: Timestamp,
        random: &mut impl CryptoRng,
    ) -> Result<Option<Token>, AccountsError> {
        let token = Token::draw(random);
        let transaction = self.connection.transaction()?;
        let added = transaction.execute(
            "INSERT INTO sessions (token, moderator, browser, created_at, used_at) \
             SELECT ?1, name, ?2, ?3, ?3 FROM moderators WHERE name = ?4 AND epoch = ?5",
            params![
                token.hash(),
                hash_of(browser),
                millis(now),
                accepted.name,
                accepted.epoch
            ],
        )?;
        transaction.execute(
            "DELETE FROM sessions WHERE moderator = ?1 AND token NOT IN \
             (SELECT token FROM sessions WHERE moderator = ?1 \
             ORDER BY token = ?2 DESC, used_at DESC LIMIT ?3)",
            params![accepted.name, token.hash(), SESSIONS_MAX],
        )?;
        transaction.commit()?;
        Ok((added == 1).then_some(token))
    }

    /// The session of a token, if it has not ended and belongs to this browser.
    pub fn session(
        &mut self,
        token: &Token,
        browser: &[u8],
        now: Timestamp,
    ) -> Result<Option<Session>, AccountsError> {
        let sql = "SELECT moderator, created_at, used_at FROM sessions \
             WHERE token = ?1 AND browser = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row(params![token.hash(), hash_of(browser)], |row| {
            Ok(Session {
                moderator: row.get(0)?,
                created_at: timestamp(row.get(1)?),
                used_at: timestamp(row.get(2)?),
            })
        });
        let Some(session) = found.optional()? else {
            return Ok(None);
        };
        drop(statement);
        if !session.is_open(now) {
            return Ok(None);
        }
        if now.0.saturating_sub(session.used_at.0) >= USED_EVERY {
            let sql = "UPDATE sessions SET used_at = ?2 WHERE token = ?1";
            self.connection
                .execute(sql, params![token.hash(), millis(now)])?;
        }
        Ok(Some(session))
    }

    /// Ends a session, if it has not ended.
    pub fn log_out(&mut self, token: &Token) -> Result<(), AccountsError> {
        let sql = "DELETE FROM sessions WHERE token = ?1";
        self.connection.execute(sql, [token.hash()])?;
        Ok(())
    }

    /// Ends all sessions, of one moderator or of all. Returns their number.
    pub fn log_all_out(&mut self, moderator: Option<&str>) -> Result<usize, AccountsError> {
        let sql = "DELETE FROM sessions WHERE ?1 IS NULL OR moderator = ?1";
        Ok(self.connection.execute(sql, [moderator])?)
    }

    /// The active sessions, the last used first. Removes ended ones.
    pub fn sessions(&mut self, now: Timestamp) -> Result<Vec<Session>, AccountsError> {
        let (idle, old) = (before(now, IDLE_MAX), before(now, LIFE_MAX));
        let sql = "DELETE FROM sessions WHERE used_at <= ?1 OR created_at <= ?2";
        self.connection.execute(sql, [idle, old])?;
        let sql =
            "SELECT moderator, created_at, used_at FROM sessions ORDER BY used_at DESC, token";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([], |row| {
            Ok(Session {
                moderator: row.get(0)?,
                created_at: timestamp(row.get(1)?),
                used_at: timestamp(row.get(2)?),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The token in the forms of a session, which protects against request forgery.
    pub fn form_token(&self, token: &Token) -> String {
        BASE64URL_NOPAD.encode(&self.keys.csrf.hash(&[token.0.as_slice()]))
    }

    /// Whether a form's token belongs to this session. Takes the same time either way.
    pub fn is_form_token(&self, token: &Token, text: &str) -> bool {
        let typed = BASE64URL_NOPAD.decode(text.as_bytes()).unwrap_or_default();
        self.keys.csrf.is_hash(&[token.0.as_slice()], &typed)
    }
}

impl Session {
    fn is_open(&self, now: Timestamp) -> bool {
        let lasts = |since: Timestamp| now.0.saturating_sub(since.0);
        lasts(self.used_at) < IDLE_MAX && lasts(self.created_at) < LIFE_MAX
    }
}

fn hash_of(browser: &[u8]) -> [u8; 32] {
    Sha256::digest(browser).into()
}

fn before(now: Timestamp, time: Duration) -> i64 {
    millis(Timestamp(now.0.saturating_sub(time)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::{NOW, accounts_of, password, random};

    const MINUTE: Duration = Duration::from_secs(60);
    const BROWSER: &[u8] = b"browser 1";

    fn accepted(accounts: &Accounts, name: &str) -> Accepted {
        let sql = "SELECT epoch FROM moderators WHERE name = ?1";
        let epoch = accounts.connection.query_row(sql, [name], |row| row.get(0));
        Accepted {
            name: name.to_owned(),
            epoch: epoch.unwrap(),
        }
    }

    fn log_in(accounts: &mut Accounts, name: &str, now: Timestamp) -> Token {
        let accepted = accepted(accounts, name);
        let token = accounts.log_in(&accepted, BROWSER, now, &mut rand::rng());
        token.unwrap().unwrap()
    }

    fn is_open(accounts: &mut Accounts, token: &Token, now: Timestamp) -> bool {
        accounts.session(token, BROWSER, now).unwrap().is_some()
    }

    #[test] // S86
    fn a_session_ends_when_it_is_idle_and_when_it_is_old() {
        let (mut accounts, _folder) = accounts_of(&["ada", "bob"]);
        let token = log_in(&mut accounts, "ada", NOW);
        assert!(is_open(&mut accounts, &token, NOW.plus(IDLE_MAX - MINUTE)));
        let idle = NOW.plus(IDLE_MAX - MINUTE).plus(IDLE_MAX);
        assert!(!is_open(&mut accounts, &token, idle));
        let token = log_in(&mut accounts, "ada", NOW);
        let mut now = NOW;
        while now < NOW.plus(LIFE_MAX) {
            assert!(is_open(&mut accounts, &token, now));
            now = now.plus(MINUTE * 20);
        }
        assert!(!is_open(&mut accounts, &token, now), "used all the time");
        assert!(accounts.sessions(now).unwrap().is_empty());
    }

    #[test]
    fn a_token_is_worth_nothing_in_another_browser_or_after_the_end() {
        let (mut accounts, _folder) = accounts_of(&["ada", "bob"]);
        let token = log_in(&mut accounts, "ada", NOW);
        assert_eq!(accounts.session(&token, b"browser 2", NOW).unwrap(), None);
        let parsed = Token::parse(&token.text()).unwrap();
        let session = accounts.session(&parsed, BROWSER, NOW).unwrap().unwrap();
        assert_eq!(session.moderator, "ada");
        assert_eq!(session.created_at, NOW);
        accounts.log_out(&token).unwrap();
        assert!(!is_open(&mut accounts, &token, NOW));
        for text in ["", "x", token.text().get(1..).unwrap(), "ä"] {
            assert_eq!(Token::parse(text), None, "{text}");
        }
        assert_eq!(format!("{token:?}"), "Token");
    }

    #[test] // S86
    fn all_sessions_end_on_demand() {
        let (mut accounts, _folder) = accounts_of(&["ada", "bob"]);
        let tokens = ["ada", "ada", "bob"].map(|name| log_in(&mut accounts, name, NOW));
        assert_eq!(accounts.sessions(NOW).unwrap().len(), 3);
        assert_eq!(accounts.log_all_out(Some("ada")).unwrap(), 2);
        let open = tokens.map(|token| is_open(&mut accounts, &token, NOW));
        assert_eq!(open, [false, false, true]);
        assert_eq!(accounts.log_all_out(None).unwrap(), 1);
        let bob = accepted(&accounts, "bob");
        log_in(&mut accounts, "bob", NOW);
        accounts.remove("bob").unwrap();
        // With the account.
        assert!(accounts.sessions(NOW).unwrap().is_empty());
        let token = accounts.log_in(&bob, BROWSER, NOW, &mut random());
        assert_eq!(token.unwrap(), None, "no session without an account");
        let ada = accepted(&accounts, "ada");
        let reset = accounts.reset("ada", &password("battery staple"), &mut rand::rng());
        reset.unwrap();
        let token = accounts.log_in(&ada, BROWSER, NOW, &mut random());
        assert_eq!(token.unwrap(), None, "nor by the password of before");
    }

    #[test]
    fn a_moderators_sessions_are_bounded_and_the_newest_stays() {
        let (mut accounts, _folder) = accounts_of(&["ada", "bob"]);
        let first = log_in(&mut accounts, "ada", NOW);
        let mut last = None;
        for _ in 0..SESSIONS_MAX {
            last = Some(log_in(&mut accounts, "ada", NOW.plus(MINUTE)));
        }
        assert!(!is_open(&mut accounts, &first, NOW.plus(MINUTE)));
        assert!(is_open(&mut accounts, &last.unwrap(), NOW.plus(MINUTE)));
        // The clock was set back.
        let newest = log_in(&mut accounts, "ada", NOW);
        assert!(is_open(&mut accounts, &newest, NOW));
        assert_eq!(accounts.moderators().unwrap()[0].sessions, SESSIONS_MAX);
    }

    #[test]
    fn a_form_is_of_one_session() {
        let (mut accounts, _folder) = accounts_of(&["ada", "bob"]);
        let tokens = [(); 2].map(|()| log_in(&mut accounts, "ada", NOW));
        let forms = tokens.each_ref().map(|token| accounts.form_token(token));
        assert!(accounts.is_form_token(&tokens[0], &forms[0]));
        for forged in ["", forms[1].as_str(), forms[0].get(1..).unwrap(), "ä"] {
            assert!(!accounts.is_form_token(&tokens[0], forged), "{forged}");
        }
    }

    #[test]
    fn sessions_survive_the_process() {
        let (mut accounts, folder) = accounts_of(&["ada", "bob"]);
        let token = log_in(&mut accounts, "ada", NOW);
        // As a killed process leaves it: the log is not merged.
        let path = folder.path().join("console.db");
        let mut again = Accounts::open(&path, &mut random()).unwrap();
        assert!(is_open(&mut again, &token, NOW));
        let form = accounts.form_token(&token);
        assert!(again.is_form_token(&token, &form));
    }
}

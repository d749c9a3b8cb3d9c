//! Accounts: who may log in, with which secrets. Only the operator adds accounts; nobody can
//! register.

use limiter::login::record::Timestamp;
use rand::CryptoRng;
use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::error::AccountsError;
use crate::file::{Accounts, Keys, millis, timestamp};
use crate::password::{Hashed, Password};
use crate::second_factor::{RECOVERY_CODES, SECRET_BYTES, Secret, recovery_code, recovery_hash};

hide!(Enrolled);

/// Bytes of the random value of each reset.
pub(crate) const EPOCH_BYTES: usize = 16;

const NAME_BYTES_MAX: usize = 64;

/// An account, as the operator's list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moderator {
    pub name: String,
    pub created_at: Timestamp,
    /// Recovery codes that have not been used.
    pub recovery_codes: u32,
    /// Sessions, including ended ones that were not removed yet.
    pub sessions: u32,
}

/// The secrets that a moderator receives once. They can't be shown again.
pub struct Enrolled {
    pub secret: Secret,
    /// For a moderator who has lost the app. Each can be used once.
    pub recovery_codes: Vec<String>,
}

/// A person who tries to log in, whether or not the account exists.
#[derive(Debug)]
pub struct Candidate {
    name: Option<String>,
    hashed: Hashed,
}

/// A moderator who has proved their identity, to be logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub(crate) name: String,
    /// The account's random value at that time.
    pub(crate) epoch: [u8; EPOCH_BYTES],
}

impl Accepted {
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Candidate {
    /// The hash for the comparison. Without an account it is that of an unknown password, so that
    /// the comparison takes the same time.
    pub fn hashed(&self) -> &Hashed {
        &self.hashed
    }
}

impl Accounts {
    pub fn add(
        &mut self,
        name: &str,
        password: &Password,
        now: Timestamp,
        random: &mut impl CryptoRng,
    ) -> Result<Enrolled, AccountsError> {
        check_name(name)?;
        let (hashed, secret) = (password.hash(random)?, Secret::draw(random));
        let user = self.user_hash(name);
        let transaction = self.connection.transaction()?;
        let added = transaction.execute(
            "INSERT INTO moderators (name, password, totp_secret, epoch, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO NOTHING",
            params![name, hashed.0, secret.bytes(), epoch(random), millis(now)],
        )?;
        if added == 0 {
            return Err(AccountsError::Exists(name.to_owned()));
        }
        forget_failures(&transaction, &user, name)?;
        let recovery_codes = draw_codes(&transaction, name, random)?;
        transaction.commit()?;
        Ok(Enrolled {
            secret,
            recovery_codes,
        })
    }

    /// Gives an account a new password, second factor and recovery codes, ends its sessions, and
    /// forgets its known browsers.
    pub fn reset(
        &mut self,
        name: &str,
        password: &Password,
        random: &mut impl CryptoRng,
    ) -> Result<Enrolled, AccountsError> {
        let hashed = password.hash(random)?;
        let user = self.user_hash(name);
        let transaction = self.connection.transaction()?;
        let enrolled = replace_factors(&transaction, name, &hashed, random)?;
        transaction.execute("DELETE FROM sessions WHERE moderator = ?1", [name])?;
        forget_failures(&transaction, &user, name)?;
        transaction.commit()?;
        self.empty_log()?;
        Ok(enrolled)
    }

    /// Gives every account a new password, second factor and recovery codes, and makes the file's
    /// keys again. Ends all sessions, and forgets known browsers, bans and locks. For a stolen
    /// file; another process that has it open would keep the former keys.
    ///
    /// Returns names and passwords, with what else the moderators need.
    pub fn renew(
        &mut self,
        random: &mut impl CryptoRng,
    ) -> Result<Vec<(String, String, Enrolled)>, AccountsError> {
        let mut passwords = Vec::new();
        for moderator in self.moderators()? {
            // As hard to guess as a recovery code, and as easy to type.
            let (password, _) = recovery_code(random);
            let hashed = Password::new(password.clone()).hash(random)?;
            passwords.push((moderator.name, password, hashed));
        }
        let transaction = self.connection.transaction()?;
        transaction.execute_batch("DELETE FROM sessions; DELETE FROM holds; DELETE FROM keys")?;
        let keys = Keys::open(&transaction, random)?;
        let mut renewed = Vec::new();
        for (name, password, hashed) in passwords {
            let enrolled = replace_factors(&transaction, &name, &hashed, random)?;
            renewed.push((name, password, enrolled));
        }
        transaction.commit()?;
        self.keys = keys;
        self.count_holds()?;
        self.empty_log()?;
        Ok(renewed)
    }

    pub fn remove(&mut self, name: &str) -> Result<(), AccountsError> {
        let user = self.user_hash(name);
        let transaction = self.connection.transaction()?;
        forget_failures(&transaction, &user, name)?;
        let sql = "DELETE FROM moderators WHERE name = ?1";
        if transaction.execute(sql, [name])? == 0 {
            return Err(AccountsError::Unknown(name.to_owned()));
        }
        transaction.commit()?;
        self.empty_log()
    }

    pub fn moderators(&self) -> Result<Vec<Moderator>, AccountsError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT name, created_at, \
             (SELECT count(*) FROM recovery_codes WHERE moderator = name), \
             (SELECT count(*) FROM sessions WHERE moderator = name) \
             FROM moderators ORDER BY name",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(Moderator {
                name: row.get(0)?,
                created_at: timestamp(row.get(1)?),
                recovery_codes: row.get(2)?,
                sessions: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The data needed to verify a login as this moderator.
    pub fn candidate(&self, name: &str) -> Result<Candidate, AccountsError> {
        let sql = "SELECT name, password FROM moderators WHERE name = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement
            .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(match found {
            Some((name, password)) => Candidate {
                name: Some(name),
                hashed: Hashed(password),
            },
            None => Candidate {
                name: None,
                hashed: self.nobody.clone(),
            },
        })
    }

    /// The moderator, if both the password and the code are right. The code is one of the
    /// authenticator app that no login has used, or a recovery code, which this uses up. A wrong
    /// password does not use up a code.
    pub fn accept(
        &mut self,
        candidate: &Candidate,
        password_is_right: bool,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<Accepted>, AccountsError> {
        let Some(name) = candidate.name.as_deref().filter(|_| password_is_right) else {
            return Ok(None);
        };
        let transaction = self.connection.transaction()?;
        // Compares the password hash again: the account may have been reset in between.
        let sql = "SELECT totp_secret, totp_step, epoch FROM moderators \
             WHERE name = ?1 AND password = ?2";
        let found: Option<([u8; SECRET_BYTES], i64, _)> = transaction
            .query_row(sql, [name, &candidate.hashed.0], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        let Some((secret, used, epoch)) = found else {
            return Ok(None);
        };
        let used = u64::try_from(used).unwrap_or_default();
        let accepted = match Secret::new(secret).step_of(code, now, used) {
            Some(step) => {
                let step = i64::try_from(step).unwrap_or(i64::MAX);
                let sql = "UPDATE moderators SET totp_step = ?2 WHERE name = ?1";
                transaction.execute(sql, params![name, step])?
            }
            None => {
                let sql = "DELETE FROM recovery_codes WHERE moderator = ?1 AND hash = ?2";
                transaction.execute(sql, params![name, recovery_hash(code)])?
            }
        };
        transaction.commit()?;
        Ok((accepted == 1).then(|| Accepted {
            name: name.to_owned(),
            epoch,
        }))
    }
}

fn epoch(random: &mut impl CryptoRng) -> [u8; EPOCH_BYTES] {
    let mut epoch = [0; EPOCH_BYTES];
    random.fill_bytes(&mut epoch);
    epoch
}

fn replace_factors(
    transaction: &Transaction<'_>,
    name: &str,
    password: &Hashed,
    random: &mut impl CryptoRng,
) -> Result<Enrolled, AccountsError> {
    let secret = Secret::draw(random);
    let replaced = transaction.execute(
        "UPDATE moderators SET password = ?2, totp_secret = ?3, totp_step = 0, epoch = ?4 \
         WHERE name = ?1",
        params![name, password.0, secret.bytes(), epoch(random)],
    )?;
    if replaced == 0 {
        return Err(AccountsError::Unknown(name.to_owned()));
    }
    let recovery_codes = draw_codes(transaction, name, random)?;
    Ok(Enrolled {
        secret,
        recovery_codes,
    })
}

/// Deletes failures and locks: the user's, which may be older than the account, and those of the
/// user's browsers.
fn forget_failures(
    transaction: &Transaction<'_>,
    user: &[u8; 32],
    name: &str,
) -> Result<(), AccountsError> {
    let sql = "DELETE FROM holds WHERE moderator = ?1 OR (kind = 'user' AND key = ?2)";
    transaction.execute(sql, params![name, user])?;
    Ok(())
}

fn draw_codes(
    transaction: &Transaction<'_>,
    name: &str,
    random: &mut impl CryptoRng,
) -> Result<Vec<String>, AccountsError> {
    transaction.execute("DELETE FROM recovery_codes WHERE moderator = ?1", [name])?;
    let mut codes = Vec::new();
    for _ in 0..RECOVERY_CODES {
        let (code, hash) = recovery_code(random);
        let sql = "INSERT INTO recovery_codes (moderator, hash) VALUES (?1, ?2)";
        transaction.execute(sql, params![name, hash])?;
        codes.push(code);
    }
    Ok(codes)
}

/// Whether an account can have this name: 1 to 64 of a-z, 0-9, `-`, `_` and `.`.
pub fn is_name(name: &str) -> bool {
    let is_of_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_of_name)
}

fn check_name(name: &str) -> Result<(), AccountsError> {
    if is_name(name) {
        Ok(())
    } else {
        Err(AccountsError::BadName(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::file::tests::{NOW, PASSWORD, accounts, password, random};

    fn add(accounts: &mut Accounts) -> Enrolled {
        let added = accounts.add("ada", &password(PASSWORD), NOW, &mut random());
        added.unwrap()
    }

    fn code(secret: &Secret, now: Timestamp) -> String {
        secret.code(now.0.as_secs() / 30)
    }

    fn login(accounts: &mut Accounts, name: &str, text: &str, code: &str, now: Timestamp) -> bool {
        let candidate = accounts.candidate(name).unwrap();
        let is_right = password(text).is(candidate.hashed()).unwrap();
        let accepted = accounts.accept(&candidate, is_right, code, now).unwrap();
        assert!(
            accepted
                .as_ref()
                .is_none_or(|accepted| accepted.name() == name)
        );
        accepted.is_some()
    }

    #[test] // S81
    fn both_factors_are_needed_and_no_code_is_accepted_twice() {
        let (mut accounts, _folder) = accounts();
        let (enrolled, mine) = (add(&mut accounts), PASSWORD);
        let shown = code(&enrolled.secret, NOW);
        for (name, text, code) in [
            ("ada", "wrong horse!", shown.as_str()),
            ("ada", mine, "000000"),
            ("ada", mine, ""),
            ("bob", mine, shown.as_str()),
            ("Ada", mine, shown.as_str()),
        ] {
            let is_in = login(&mut accounts, name, text, code, NOW);
            assert!(!is_in, "{name} {text} {code}");
        }
        // None of that used it up.
        assert!(login(&mut accounts, "ada", mine, &shown, NOW));
        assert!(!login(&mut accounts, "ada", mine, &shown, NOW), "used");
        let later = NOW.plus(Duration::from_secs(30));
        let shown = code(&enrolled.secret, later);
        assert!(login(&mut accounts, "ada", mine, &shown, later));
    }

    #[test] // S80
    fn a_recovery_code_is_used_up() {
        let (mut accounts, _folder) = accounts();
        let (enrolled, mine) = (add(&mut accounts), PASSWORD);
        assert_eq!(enrolled.recovery_codes.len(), RECOVERY_CODES);
        let recovery = enrolled.recovery_codes[3].to_uppercase();
        assert!(!login(&mut accounts, "ada", "wrong horse!", &recovery, NOW));
        assert!(login(&mut accounts, "ada", mine, &recovery, NOW));
        assert!(!login(&mut accounts, "ada", mine, &recovery, NOW));
        assert_eq!(accounts.moderators().unwrap()[0].recovery_codes, 9);
    }

    #[test] // S79
    fn a_reset_leaves_nothing_of_before() {
        let (mut accounts, _folder) = accounts();
        let (old, new) = (PASSWORD, "battery staple");
        let before = add(&mut accounts);
        let stale = accounts.candidate("ada").unwrap();
        let after = accounts.reset("ada", &password(new), &mut rand::rng());
        let shown = code(&after.unwrap().secret, NOW);
        let in_between = accounts.accept(&stale, true, &shown, NOW).unwrap();
        assert_eq!(in_between, None);
        for code in [&before.recovery_codes[0], &code(&before.secret, NOW)] {
            assert!(!login(&mut accounts, "ada", new, code, NOW));
        }
        assert!(!login(&mut accounts, "ada", old, &shown, NOW));
        assert!(login(&mut accounts, "ada", new, &shown, NOW));
        let unknown = accounts.reset("bob", &password(new), &mut random());
        assert!(matches!(unknown, Err(AccountsError::Unknown(_))));
    }

    #[test]
    fn accounts_are_added_once_and_removed() {
        let (mut accounts, _folder) = accounts();
        let mine = password("correct horse");
        for bad in ["", "Ada", "a b", "ä", "a/b", &"x".repeat(65)] {
            let added = accounts.add(bad, &mine, NOW, &mut random());
            assert!(matches!(added, Err(AccountsError::BadName(_))), "{bad}");
        }
        accounts.add("ada", &mine, NOW, &mut random()).unwrap();
        let again = accounts.add("ada", &mine, NOW, &mut random());
        assert!(matches!(again, Err(AccountsError::Exists(_))));
        let all = accounts.moderators().unwrap();
        let all: Vec<_> = all
            .iter()
            .map(|one| (one.name.as_str(), one.created_at))
            .collect();
        assert_eq!(all, [("ada", NOW)]);
        accounts.remove("ada").unwrap();
        let again = accounts.remove("ada");
        assert!(matches!(again, Err(AccountsError::Unknown(_))));
        assert!(accounts.moderators().unwrap().is_empty());
    }
}

//! Moderators' accounts, sessions, bans and locks, in one SQLite file that only this crate opens.
//!
//! Passwords are stored as Argon2id hashes; sessions, recovery codes and addresses as hashes. Time
//! and random numbers are arguments. Calls are short: the slow part of a login, [`Password::is`],
//! needs no file.

/// Shows the names of types in place of the secrets that they hold.
macro_rules! hide {
    ($($name:ident),+) => {
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        })+
    };
}

mod error;
mod file;

pub mod holds;
pub mod moderators;
pub mod password;
pub mod second_factor;
pub mod sessions;

mod browsers;
mod mac;

pub use error::AccountsError;
pub use file::Accounts;
pub use holds::HoldShown;
pub use moderators::{Accepted, Candidate, Enrolled, Moderator, is_name};
pub use password::Password;
pub use sessions::{Session, Token};

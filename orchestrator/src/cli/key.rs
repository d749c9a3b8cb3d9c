//! Commands about the signing key (docs/signatures.md). They need no daemon; a running daemon uses
//! a new key at its next dump.

use ::push::process::{self, ENDPOINT_KEYS_MAX, Node};
use anyhow::Context as _;
use clap::Subcommand;
use dump::Moment;
use dump::sign::keys::{Handover, Keys};

use super::{OK, say};
use crate::config::Config;
use crate::ground::clock::{self, Clock as _, SystemClock};
use crate::publish::signature;
use crate::roles::serve_push;

#[derive(Debug, Subcommand)]
pub(super) enum Key {
    /// Show the public key that readers verify with; makes one if there is none
    Show,
    /// Replace the key with a new one, which the old one signs, so that readers can follow
    Rotate {
        /// The old key is stolen: it signs nothing, and readers must get the new one from you
        #[arg(long)]
        stolen: bool,
        /// Make a new key for the push service's endpoints instead; old endpoints keep working.
        /// With `--stolen` make all its keys again and remove its users and subscriptions; the push
        /// service must be stopped
        #[arg(long)]
        push: bool,
    },
}

pub(super) fn obey(command: &Key, config: &Config) -> anyhow::Result<u8> {
    match *command {
        Key::Show => {
            let keys = signature::keys(&config.data_dir)?;
            say(keys.key().public().to_file().trim_end())?;
        }
        Key::Rotate { stolen, push: true } if stolen => renew_push(config)?,
        Key::Rotate { push: true, .. } => rotate_push(config)?,
        Key::Rotate {
            stolen,
            push: false,
        } => {
            let handover = if stolen {
                Handover::None
            } else {
                Handover::Signed
            };
            let seed = clock::key_seed()?;
            let now = Moment::from_milliseconds(SystemClock.now().0);
            let keys = Keys::rotate(&config.data_dir, &seed, handover, now)?;
            let id = keys.key().public().id();
            let of_the_old = if stolen {
                "the old key did not sign it: announce it to readers yourself"
            } else {
                "it is signed by the old one"
            };
            say(&format!(
                "the key is now {id}; {of_the_old}. The next dump is signed by it: `fedicensus dump` makes one now"
            ))?;
        }
    }
    Ok(OK)
}

/// Rotates the push service's key. The push service reads its keys once, so only its next start
/// uses the new one.
fn rotate_push(config: &Config) -> anyhow::Result<()> {
    let database = &config.push_settings.database;
    let keys = process::rotate(database)
        .with_context(|| format!("no new key was put into {}", database.display()))?;
    say(&format!(
        "endpoint keys in {}: {keys} of {ENDPOINT_KEYS_MAX}, then each new one ends the oldest one's endpoints; restart the push service, which reads them at its start (of two processes `push endpoint` first)",
        database.display()
    ))
}

fn renew_push(config: &Config) -> anyhow::Result<()> {
    let database = &config.push_settings.database;
    let failed = || format!("no new keys were put into {}", database.display());
    let role = "key rotate --push --stolen";
    let _serving = serve_push(role, config, Node::Push).with_context(failed)?;
    let removed = process::renew(database).with_context(failed)?;
    say(&format!(
        "all keys in {} are new; removed and overwritten: {} users, {} channels, {} messages, {} subscriptions. Start the push service now: its browsers register again by themselves. Subscribers at other push services must press their buttons off and on",
        database.display(),
        removed.users,
        removed.channels,
        removed.messages,
        removed.subscriptions
    ))
}

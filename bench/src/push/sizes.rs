//! What a call to the storage costs when it holds much, and when it holds little.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use push::ids::{ChannelId, Uaid};
use push::notification::{Notification, Payload, PayloadHeaders};
use push::storage::sqlite::{Limits, Sqlite};
use push::storage::{Room, Saved, User};

use super::{quantile, say};

const FEW: usize = 1000;

/// Messages that wait for each user, in both.
const EACH: usize = 50;

/// Calls of each kind that are measured in each database, in turn.
const CALLS: usize = 2000;

/// Characters of a message's body, as it is stored.
const DATA_CHARS: usize = 270;

const NOW_S: i64 = 1_800_000_000;

pub(crate) fn measure(below: &Path, many: usize) -> Result<()> {
    let folder = tempfile::tempdir_in(below)?;
    let mut sizes = [FEW, many].map(|messages| (messages, Costs::default()));
    let databases = sizes
        .iter()
        .map(|(messages, _)| filled(&folder.path().join(format!("{messages}.db")), *messages))
        .collect::<Result<Vec<_>>>()?;
    for call in 0..CALLS {
        for (storage, (messages, costs)) in databases.iter().zip(&mut sizes) {
            // Every user of the smaller one in turn, and users from everywhere in the larger one.
            let user = uaid(call * 7919 % (*messages / EACH));
            let new = message(storage, call);
            costs
                .saves
                .push(timed(|| Ok(storage.save(user, &[new], Room::Promised)?))?);
            costs.fetches.push(timed(|| {
                let read = storage.fetch_after(user, 0, NOW_S)?;
                ensure!(!read.is_empty(), "nothing was read");
                Ok(Saved::Stored)
            })?);
            let first = storage.fetch_after(user, 0, NOW_S)?;
            let to_ms = first.first().map_or(0, |first| first.place_ms);
            costs.removals.push(timed(|| {
                storage.advance(user, to_ms)?;
                Ok(Saved::Stored)
            })?);
        }
    }
    let [(few, of_few), (many, of_many)] = &mut sizes;
    for (what, one, other) in [
        ("saving one", &mut of_few.saves, &mut of_many.saves),
        ("reading ten", &mut of_few.fetches, &mut of_many.fetches),
        ("removing one", &mut of_few.removals, &mut of_many.removals),
    ] {
        let (one, other) = (quantile(one, 0.5), quantile(other, 0.5));
        say(&format!(
            "{what} of {few} and of {many} stored messages: {one:.1} and {other:.1} µs, median, {:.2} times",
            other / one
        ))?;
    }
    Ok(())
}

/// Microseconds of each call.
#[derive(Debug, Default)]
struct Costs {
    saves: Vec<f64>,
    fetches: Vec<f64>,
    removals: Vec<f64>,
}

/// Microseconds of a call.
fn timed(call: impl FnOnce() -> Result<Saved>) -> Result<f64> {
    let began = Instant::now();
    let saved = call()?;
    let took = began.elapsed().as_secs_f64() * 1e6;
    ensure!(saved == Saved::Stored, "{saved:?}");
    Ok(took)
}

fn uaid(number: usize) -> Uaid {
    // Spread over the tree, as random ids are.
    let spread = (number as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    Uaid::from_random(spread.to_be_bytes())
}

fn message(storage: &Sqlite, number: usize) -> Notification {
    let place_ms = storage.place(NOW_S * 1000);
    Notification {
        channel: ChannelId::from_bytes([1; 16]),
        version: format!("{number:0>240}-{place_ms}"),
        ttl_s: 86_400,
        arrived_s: NOW_S,
        topic: None,
        payload: Some(Payload {
            data: "A".repeat(DATA_CHARS),
            headers: PayloadHeaders {
                encoding: "aes128gcm".to_owned(),
                encryption: None,
                crypto_key: None,
            },
        }),
        place_ms,
    }
}

/// A database in which so many messages wait, for as many users as that takes.
fn filled(path: &Path, messages: usize) -> Result<Sqlite> {
    let storage = Sqlite::open(path, Limits::ORDINARY)?;
    for number in 0..messages / EACH {
        let user = User::connected(uaid(number), "http://node".to_owned(), NOW_S * 1000);
        ensure!(storage.add_user(&user)?, "a user is there already");
        let all: Vec<_> = (0..EACH).map(|one| message(&storage, one)).collect();
        let saved = storage.save(user.uaid, &all, Room::Promised)?;
        ensure!(saved == Saved::Stored, "{saved:?}");
    }
    Ok(storage)
}

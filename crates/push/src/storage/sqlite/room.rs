//! Whether there is room for more, in the file and for one user.

use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::ids::Uaid;
use crate::notification::Notification;
use crate::storage::Room;

use super::{Limits, stored_bytes};

/// Factor of the limits for messages that were accepted earlier. Only a client that receives
/// messages and acknowledges none reaches it, and it is reset when it reads them.
const PROMISED_TIMES: i64 = 2;

/// Whether the file has reached its size limit.
pub(super) fn is_full(transaction: &Transaction<'_>, limits: Limits) -> rusqlite::Result<bool> {
    Ok(used_bytes(transaction)? >= limits.file_bytes)
}

/// Bytes of the file that hold data.
pub(super) fn used_bytes(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached(
            "SELECT (page_count - freelist_count) * page_size \
             FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
        )?
        .query_row([], |row| row.get(0))
}

/// Whether a user has room for these messages.
pub(super) fn takes(
    transaction: &Transaction<'_>,
    limits: Limits,
    uaid: Uaid,
    messages: &[Notification],
    room: Room,
) -> rusqlite::Result<bool> {
    let channel = messages.first().map(|message| message.channel);
    let (count, of_channel, held): (i64, i64, i64) = transaction
        .prepare_cached(
            "SELECT messages, \
             coalesce((SELECT messages FROM channels WHERE uaid = ?1 AND channel = ?2), 0), bytes \
             FROM users WHERE uaid = ?1",
        )?
        .query_row(
            params![
                uaid.as_bytes(),
                channel.as_ref().map(|channel| channel.as_bytes())
            ],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
    let (mut new, mut bytes) = (0_i64, held);
    for message in messages {
        bytes = bytes.saturating_add(stored_bytes(message));
        match replaced_bytes(transaction, uaid, message)? {
            Some(replaced) => bytes = bytes.saturating_sub(replaced),
            None => new = new.saturating_add(1),
        }
    }
    let count = count.saturating_add(new);
    // What does not grow is within the limits.
    let is_within = |times: i64| {
        (new == 0 || count <= times.saturating_mul(limits.messages.into()))
            && (bytes <= held || bytes <= times.saturating_mul(limits.bytes))
    };
    match room {
        Room::Promised => Ok(is_within(PROMISED_TIMES)),
        Room::Limited => Ok(is_within(1)
            && (new == 0 || of_channel.saturating_add(new) <= limits.channel_messages.into())
            && !is_full(transaction, limits)?),
    }
}

/// Bytes of the waiting message with the same topic, which this one replaces.
fn replaced_bytes(
    transaction: &Transaction<'_>,
    uaid: Uaid,
    message: &Notification,
) -> rusqlite::Result<Option<i64>> {
    let Some(topic) = &message.topic else {
        return Ok(None);
    };
    transaction
        .prepare_cached(
            "SELECT bytes FROM messages \
             WHERE uaid = ?1 AND sort_ms = 0 AND channel = ?2 AND topic = ?3",
        )?
        .query_row(
            params![
                uaid.as_bytes(),
                message.channel.as_bytes(),
                topic.to_string()
            ],
            |row| row.get(0),
        )
        .optional()
}

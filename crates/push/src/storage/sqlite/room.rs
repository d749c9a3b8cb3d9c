//! Whether there is room for more, in the file and for one user.

use rusqlite::{Transaction, params};

use crate::ids::Uaid;
use crate::notification::Notification;
use crate::storage::Room;

use super::{Limits, stored_bytes};

/// Factor of the limits for messages that were accepted earlier. Only a client that receives
/// messages and acknowledges none reaches it, and it is reset when it reads them.
const PROMISED_TIMES: i64 = 2;

/// Whether the file has reached its size limit.
pub(super) fn is_full(transaction: &Transaction<'_>, limits: Limits) -> rusqlite::Result<bool> {
    let bytes: i64 = transaction
        .prepare_cached(
            "SELECT (page_count - freelist_count) * page_size \
             FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
        )?
        .query_row([], |row| row.get(0))?;
    Ok(bytes >= limits.file_bytes)
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
    let new = i64::try_from(messages.len()).unwrap_or(i64::MAX);
    let count = count.saturating_add(new);
    let bytes = messages
        .iter()
        .map(stored_bytes)
        .fold(held, i64::saturating_add);
    let is_within = |times: i64| {
        count <= times.saturating_mul(limits.messages.into())
            && bytes <= times.saturating_mul(limits.bytes)
    };
    match room {
        Room::Promised => Ok(is_within(PROMISED_TIMES)),
        Room::Limited => Ok(is_within(1)
            && of_channel.saturating_add(new) <= limits.channel_messages.into()
            && !is_full(transaction, limits)?),
    }
}

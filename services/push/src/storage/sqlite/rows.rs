//! Messages as rows.

use rusqlite::{Row, Transaction, params};

use crate::ids::{ChannelId, Uaid};
use crate::notification::{Notification, Payload, Topic};
use crate::storage::Room;

/// Most bytes of messages in one read: a client that reads slowly may have little more unsent.
const BATCH_BYTES_MAX: usize = 24 * 1024;

/// What a message's frame has in addition to its body, in bytes.
const FRAME_BYTES: usize = 512;

pub(super) const MESSAGE: &str =
    "SELECT channel, version, ttl_s, arrived_s, topic, data, headers, place_ms FROM messages";

/// A row of [`MESSAGE`].
pub(super) fn message(row: &Row<'_>) -> rusqlite::Result<Notification> {
    let topic: String = row.get(4)?;
    let data: Option<String> = row.get(5)?;
    let headers: Option<String> = row.get(6)?;
    let payload = data.zip(headers).and_then(|(data, headers)| {
        let headers = serde_json::from_str(&headers).ok()?;
        Some(Payload { data, headers })
    });
    Ok(Notification {
        channel: ChannelId::from_bytes(row.get(0)?),
        version: row.get(1)?,
        ttl_s: row.get(2)?,
        arrived_s: row.get(3)?,
        place_ms: row.get(7)?,
        topic: Topic::try_from(topic).ok(),
        payload,
    })
}

/// The first of these messages that take no more than [`BATCH_BYTES_MAX`] together.
pub(super) fn batch(
    rows: impl Iterator<Item = rusqlite::Result<Notification>>,
) -> rusqlite::Result<Vec<Notification>> {
    let (mut batch, mut bytes) = (Vec::new(), 0_usize);
    for message in rows {
        let message = message?;
        bytes = bytes
            .saturating_add(message.payload_bytes())
            .saturating_add(FRAME_BYTES);
        if bytes > BATCH_BYTES_MAX && !batch.is_empty() {
            break;
        }
        batch.push(message);
    }
    Ok(batch)
}

pub(super) fn insert(
    transaction: &Transaction<'_>,
    uaid: Uaid,
    message: &Notification,
    place_ms: i64,
    room: Room,
) -> rusqlite::Result<()> {
    let topic = message.topic.as_ref().map(Topic::to_string);
    let headers = message
        .payload
        .as_ref()
        .map(|payload| serde_json::to_string(&payload.headers).unwrap_or_default());
    transaction
        .prepare_cached(
            "INSERT INTO messages (uaid, sort_ms, place_ms, channel, topic, version, ttl_s, arrived_s, expires_s, bytes, data, headers) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
             ON CONFLICT DO UPDATE SET place_ms = excluded.place_ms, version = excluded.version, ttl_s = excluded.ttl_s, \
             arrived_s = excluded.arrived_s, expires_s = excluded.expires_s, bytes = excluded.bytes, data = excluded.data, \
             headers = excluded.headers WHERE ?13 OR excluded.place_ms > place_ms",
        )?
        .execute(params![
            uaid.as_bytes(),
            if topic.is_some() { 0 } else { place_ms },
            place_ms,
            message.channel.as_bytes(),
            topic.unwrap_or_default(),
            message.version,
            message.ttl_s,
            message.arrived_s,
            message.expires_s(),
            stored_bytes(message),
            message.payload.as_ref().map(|payload| &payload.data),
            headers,
            room != Room::Promised,
        ])?;
    Ok(())
}

fn stored_bytes(message: &Notification) -> i64 {
    i64::try_from(message.payload_bytes()).unwrap_or(i64::MAX)
}

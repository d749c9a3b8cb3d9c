//! Whether any name below a held group's domain resolves: which group is to be looked at next, and what was found.
//!
//! In: what made-up names below a registered domain showed. Out: the same with the group, for whoever decides about it. Refused: nothing; a group that
//! is gone meanwhile has no row to keep it in.

use census::group::Wildcard;
use census::time::{Calendar, Timestamp};
use rusqlite::{Row, params};

use crate::db::error::StoreError;
use crate::writer::handle::Writer;

/// Held groups that were not looked at lately: by a clock that is right, one that was set back since, and after trouble.
pub(crate) const NOT_LOOKED_AT: &str = "SELECT domain FROM groups WHERE is_over = 1 AND decision = 'none' AND (wildcard_tried IS NULL \
     OR wildcard_tried <= ?2 OR wildcard_tried > ?1 OR (wildcard_trouble IS NOT NULL AND wildcard_tried <= ?3)) \
     ORDER BY wildcard_tried LIMIT ?4";

pub(crate) const FOUND: &str = "UPDATE groups SET wildcard = ?2, wildcard_at = ?3, wildcard_tried = ?3, wildcard_trouble = NULL WHERE domain = ?1";

/// What was found before stays, with its date.
pub(crate) const TROUBLE: &str =
    "UPDATE groups SET wildcard_tried = ?2, wildcard_trouble = ?3 WHERE domain = ?1";

/// What is known of whether any name below a domain resolves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WildcardLook {
    /// What was found last, and when.
    pub found: Option<(Wildcard, Timestamp)>,
    /// When it was last looked at, whatever came of it.
    pub tried: Option<Timestamp>,
    /// Why the last look showed nothing; none when it did.
    pub trouble: Option<String>,
}

impl Writer {
    /// Domains of held groups that were not looked at for wildcard DNS within [`Calendar::wildcard_known_for`], or
    /// [`Calendar::wildcard_again`] after trouble: those that never were first, then by how long ago it is; at most `limit`. Writes nothing.
    ///
    /// # Errors
    /// A fault of ours.
    pub async fn groups_not_looked_at(
        &self,
        now: Timestamp,
        calendar: Calendar,
        limit: u32,
    ) -> Result<Vec<String>, StoreError> {
        self.call(move |c| {
            let known_since = now.minus(calendar.wildcard_known_for());
            let trouble_since = now.minus(calendar.wildcard_again());
            let mut statement = c.prepare_cached(NOT_LOOKED_AT)?;
            let domains = statement.query_map(
                params![now.0, known_since.0, trouble_since.0, limit],
                |row| row.get(0),
            )?;
            Ok(domains.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Keeps what a look at a group showed, or why it showed nothing.
    ///
    /// # Errors
    /// A fault of ours; what was kept before stands.
    pub async fn keep_wildcard(
        &self,
        domain: String,
        outcome: Result<Wildcard, String>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.call(move |c| {
            match &outcome {
                Ok(found) => {
                    c.prepare_cached(FOUND)?
                        .execute(params![domain, found.as_str(), at.0])?
                }
                Err(trouble) => c
                    .prepare_cached(TROUBLE)?
                    .execute(params![domain, at.0, trouble])?,
            };
            Ok(())
        })
        .await
    }
}

/// What a group's row has of it.
pub(super) fn columns(row: &Row<'_>) -> rusqlite::Result<WildcardLook> {
    let moment = |column: &str| -> rusqlite::Result<Option<Timestamp>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp))
    };
    let word: Option<String> = row.get("wildcard")?;
    Ok(WildcardLook {
        found: word
            .as_deref()
            .and_then(wildcard)
            .zip(moment("wildcard_at")?),
        tried: moment("wildcard_tried")?,
        trouble: row.get("wildcard_trouble")?,
    })
}

/// The schema takes no other word.
fn wildcard(word: &str) -> Option<Wildcard> {
    Wildcard::ALL
        .into_iter()
        .find(|wildcard| wildcard.as_str() == word)
}

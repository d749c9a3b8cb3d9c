//! Wildcard DNS of held groups: whether any name below a group's domain resolves. Selects the
//! groups to check next and stores the results for the person who decides about the group.
//!
//! A result for a group that no longer exists is dropped.

use census::group::Wildcard;
use census::time::{Calendar, Timestamp};
use rusqlite::{Row, params};

use crate::db::error::StoreError;
use crate::writer::handle::Writer;

/// Held groups that are due for a wildcard check: never checked, last checked too long ago, checked
/// at a time that is now in the future because the clock was set back, or due for a retry after an
/// error.
pub(crate) const NOT_LOOKED_AT: &str = "SELECT domain FROM groups WHERE is_over = 1 AND decision = 'none' AND (wildcard_tried IS NULL \
     OR wildcard_tried <= ?2 OR wildcard_tried > ?1 OR (wildcard_trouble IS NOT NULL AND wildcard_tried <= ?3)) \
     ORDER BY wildcard_tried LIMIT ?4";

pub(crate) const FOUND: &str = "UPDATE groups SET wildcard = ?2, wildcard_at = ?3, wildcard_tried = ?3, wildcard_trouble = NULL WHERE domain = ?1";

/// Keeps the previous result with its date.
pub(crate) const TROUBLE: &str =
    "UPDATE groups SET wildcard_tried = ?2, wildcard_trouble = ?3 WHERE domain = ?1";

/// What is known about wildcard DNS below a domain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WildcardLook {
    /// The last result and its time.
    pub found: Option<(Wildcard, Timestamp)>,
    /// Time of the last check, successful or not.
    pub tried: Option<Timestamp>,
    /// Why the last check gave no result. `None` if it gave one.
    pub trouble: Option<String>,
}

impl Writer {
    /// At most `limit` domains of held groups that are due for a wildcard check:
    /// [`Calendar::wildcard_known_for`] after a result, or [`Calendar::wildcard_again`] after an
    /// error. Domains that were never checked come first, then the longest unchecked. Writes
    /// nothing.
    ///
    /// # Errors
    /// Fails on a database error.
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

    /// Stores the result of a wildcard check, or why it gave none.
    ///
    /// # Errors
    /// Fails on a database error; what was remembered before is kept.
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

/// The wildcard columns of a group's row.
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

/// The schema allows no other values.
fn wildcard(word: &str) -> Option<Wildcard> {
    Wildcard::ALL
        .into_iter()
        .find(|wildcard| wildcard.as_str() == word)
}

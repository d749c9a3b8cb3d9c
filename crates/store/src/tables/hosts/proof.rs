//! The last record by which an owner proved a host: its hash, and when the census first saw it.

use census::time::Timestamp;
use protocol::Host;
use rusqlite::{OptionalExtension as _, params};

use crate::db::error::StoreError;
use crate::db::reader::Reader;
use crate::queue::handle::Writer;

pub(crate) const FIND: &str =
    "SELECT proof, proof_seen FROM hosts WHERE name = ?1 AND proof IS NOT NULL";

pub(crate) const PUT: &str =
    "UPDATE hosts SET proof = ?2, proof_seen = ?3 WHERE name = ?1 AND proof IS NOT ?2";

/// An opt-out by robots.txt only: nobody else's makes a host due.
pub(crate) const ASK_AGAIN: &str = "UPDATE hosts SET due = ?2 \
     WHERE name = ?1 AND opted_out_by = 'robots' AND in_flight = 0 AND due > ?2";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenProof {
    /// The SHA-256 in the record.
    pub hash: [u8; 32],
    pub first_seen: Timestamp,
}

impl Reader {
    /// The last record that proved a host. `None` if there was none.
    pub fn proof(&self, host: &Host) -> Result<Option<SeenProof>, StoreError> {
        let mut statement = self.connection().prepare_cached(FIND)?;
        let found = statement.query_row([host.as_str()], |row| {
            Ok(SeenProof {
                hash: row.get(0)?,
                first_seen: Timestamp(row.get(1)?),
            })
        });
        Ok(found.optional()?)
    }
}

impl Writer {
    /// Stores a record that proves a host, instead of the former one. The same record keeps the
    /// time at which it was first seen. Does nothing for an unknown host.
    pub async fn see_proof(&self, host: &Host, proof: SeenProof) -> Result<(), StoreError> {
        let host = host.clone();
        self.call(move |c| {
            let values = params![host.as_str(), proof.hash, proof.first_seen.0];
            c.prepare_cached(PUT)?.execute(values)?;
            Ok(())
        })
        .await
    }

    /// Makes a host that robots.txt keeps out due now. Does nothing for any other host, and for one
    /// that is being checked.
    pub async fn ask_again(&self, host: &Host, now: Timestamp) -> Result<(), StoreError> {
        let host = host.clone();
        self.call(move |c| {
            c.prepare_cached(ASK_AGAIN)?
                .execute(params![host.as_str(), now.0])?;
            Ok(())
        })
        .await
    }
}

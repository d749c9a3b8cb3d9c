//! Reads names from comma-separated values into the sink.
//!
//! Takes the names of one column: the best that the first record's headers offer, otherwise the
//! first column, whose first field is then a name too. A record that lacks the column, or whose
//! field there is over its bound, is counted as dropped.

use std::io::BufRead;

use csv_core::{ReadFieldResult, Reader};

use super::format::NAME_KEYS;
use crate::peers::sink::{Full, Sink};

/// Longest field that is read. Names and addresses are shorter.
const FIELD_BYTES_MAX: usize = 4096;

/// Reads to the end, to a cut, or until the sink is full.
pub(super) fn read(mut reader: impl BufRead, sink: &mut Sink) {
    let mut parser = Reader::new();
    let mut table = Table::default();
    let mut buffer = [0; FIELD_BYTES_MAX];
    let mut length: usize = 0;
    let mut too_long = false;
    // The parser skips a byte order mark only if it sees the whole mark at once. It gets the first
    // byte alone, so that the cuts in a body make no difference.
    let mut seen_bytes_max = 1;
    loop {
        // Half a field is dropped. The feeding side knows about the cut.
        let Ok(bytes) = reader.fill_buf() else { return };
        let bytes = bytes.get(..seen_bytes_max.min(bytes.len()));
        let room = buffer.get_mut(length..).unwrap_or_default();
        let (result, taken, written) = parser.read_field(bytes.unwrap_or_default(), room);
        reader.consume(taken);
        seen_bytes_max = usize::MAX;
        length = length.saturating_add(written);
        match result {
            ReadFieldResult::InputEmpty => {}
            ReadFieldResult::OutputFull => {
                too_long = true;
                length = 0;
            }
            ReadFieldResult::Field { record_end } => {
                let field = buffer.get(..length).filter(|_| !too_long);
                if table.take(field, record_end, sink) == Err(Full) {
                    return;
                }
                length = 0;
                too_long = false;
            }
            ReadFieldResult::End => return,
        }
    }
}

/// What is known about the table so far.
#[derive(Debug, Default)]
struct Table {
    /// Index of the current field in its record.
    column: usize,
    /// Best rank of a header so far, and its column.
    names: Option<(usize, usize)>,
    /// Whether the first record is over.
    past_header: bool,
    /// The first record's first field, which is a name if there is no header.
    first: Option<String>,
    /// The current record's name, once its column was read.
    name: Option<String>,
}

impl Table {
    fn take(
        &mut self,
        field: Option<&[u8]>,
        record_end: bool,
        sink: &mut Sink,
    ) -> Result<(), Full> {
        let text = field.and_then(|field| str::from_utf8(field).ok());
        if self.past_header {
            if self.column == self.names.map_or(0, |(_, column)| column) {
                self.name = text.map(str::to_owned);
            }
        } else {
            if self.column == 0 {
                self.first = text.map(str::to_owned);
            }
            self.look_at_header(text.unwrap_or_default());
        }
        self.column = self.column.saturating_add(1);
        if !record_end {
            return Ok(());
        }
        self.column = 0;
        let name = if self.past_header {
            self.name.take()
        } else {
            self.past_header = true;
            if self.names.is_some() {
                return Ok(());
            }
            self.first.take()
        };
        match name {
            Some(name) => sink.offer(&name),
            None => {
                sink.drop_one();
                Ok(())
            }
        }
    }

    /// Mastodon writes its headers with `#`.
    fn look_at_header(&mut self, field: &str) {
        let field = field.trim().trim_start_matches('#');
        let rank = NAME_KEYS
            .iter()
            .position(|key| field.eq_ignore_ascii_case(key));
        if let Some(rank) = rank
            && self.names.is_none_or(|(best, _)| rank < best)
        {
            self.names = Some((rank, self.column));
        }
    }
}

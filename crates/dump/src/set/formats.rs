//! The interface of the text files of rows, so that one loop writes all of them.

pub(crate) mod csv;
pub(crate) mod ndjson;
pub(crate) mod nodes;
pub(crate) mod table;

use std::io;

use crate::row::ListedRow;

/// A text file with a piece for each row. Equal rows give equal bytes.
pub(crate) trait Format {
    /// The text before all rows.
    fn head(&self) -> &'static [u8];

    /// Appends a row to `out`. `earlier` is the number of rows before it.
    fn row(&self, earlier: u64, instance: &ListedRow, out: &mut Vec<u8>) -> io::Result<()>;

    /// The text after all rows.
    fn tail(&self) -> &'static [u8];
}

#[cfg(test)]
pub(crate) fn written(format: &dyn Format, rows: &[ListedRow]) -> Vec<u8> {
    let mut out = format.head().to_vec();
    for (earlier, row) in (0..).zip(rows) {
        format.row(earlier, row, &mut out).unwrap();
    }
    out.extend_from_slice(format.tail());
    out
}

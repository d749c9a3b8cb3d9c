//! `nodes.json`: the sorted JSON array of the listed host names.
//!
//! Writes `["a.example","b.example"]` and a newline, on one line, as existing consumers of such
//! lists expect. The caller sorts the rows.

use std::io;

use crate::row::ListedRow;
use crate::set::formats::Format;

#[derive(Debug)]
pub(crate) struct Nodes;

impl Format for Nodes {
    fn head(&self) -> &'static [u8] {
        b"["
    }

    fn row(&self, earlier: u64, instance: &ListedRow, out: &mut Vec<u8>) -> io::Result<()> {
        if earlier > 0 {
            out.push(b',');
        }
        // Host names need no escaping, but this crate does not rely on that.
        Ok(serde_json::to_writer(out, &instance.host)?)
    }

    fn tail(&self) -> &'static [u8] {
        b"]\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::formats::written;

    #[test]
    fn the_list_is_a_json_array_on_one_line() {
        assert_eq!(written(&Nodes, &[]), b"[]\n");
        let one = [ListedRow::example("a.example")];
        assert_eq!(written(&Nodes, &one), b"[\"a.example\"]\n");
        let two = [one[0].clone(), ListedRow::example("b.example")];
        assert_eq!(written(&Nodes, &two), b"[\"a.example\",\"b.example\"]\n");
    }
}

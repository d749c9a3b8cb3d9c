//! Keeps the pages of the former tree, for a list whose own pages failed: pages never hold a list
//! back, and no file names a host that has left (invariant I7).

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::Path;

use publish::{GZIP_END, Tree, TreeError};

use crate::answers::shards::FOLDER as ANSWERS;
use crate::list::FILE as LIST;

/// Longest name of a host.
const NAME_BYTES_MAX: usize = 253;

/// Keeps the former pages in a tree that has none.
///
/// The former list names every host that the pages name. Those that `has_left` returns are removed
/// from the list, and other files that name one are left out, until pages are made again. Answers
/// are named by hashes, so all are left out then. Without a list, no page is kept.
pub fn keep<E: From<TreeError>>(
    tree: &Tree,
    mut has_left: impl FnMut(&str) -> Result<bool, E>,
) -> Result<(), E> {
    let Some(former) = tree.former() else {
        return Ok(());
    };
    let failed = |source| TreeError::from_io(former, &former.join(LIST), "reading", source);
    let Ok(list) = File::open(former.join(LIST)) else {
        return Ok(());
    };
    let mut left = HashSet::new();
    // Below the column names.
    for line in BufReader::new(list).lines().skip(1) {
        let line = line.map_err(failed)?;
        let host = host_of(&line);
        if has_left(host)? {
            left.insert(host.to_owned());
        }
    }
    if left.is_empty() {
        tree.keep_where(|place| !dump::is_of_set(place))?;
        return Ok(());
    }
    tree.keep_where(|place| {
        let plain = place.strip_suffix(GZIP_END).unwrap_or(place);
        let is_answer = place
            .split_once('/')
            .is_some_and(|(first, _)| first == ANSWERS);
        let is_other = is_answer || plain == LIST || dump::is_of_set(place);
        !is_other && !names_one(&former.join(plain), &left).unwrap_or(true)
    })?;
    let list = File::open(former.join(LIST)).map_err(failed)?;
    let mut rest = BufWriter::new(tree.create(LIST)?);
    for line in BufReader::new(list).lines() {
        let line = line.map_err(failed)?;
        if !left.contains(host_of(&line)) {
            writeln!(rest, "{line}").map_err(|error| tree.failed(LIST, "writing", error))?;
        }
    }
    rest.flush()
        .map_err(|error| tree.failed(LIST, "writing", error))?;
    Ok(tree.pack(LIST)?)
}

fn host_of(line: &str) -> &str {
    line.split('\t').next().unwrap_or_default()
}

/// Whether a file names one of these hosts. A line of some files has all names, so words are read.
fn names_one(path: &Path, names: &HashSet<String>) -> io::Result<bool> {
    let is_name = |word: &[u8]| {
        let word = std::str::from_utf8(word).unwrap_or_default();
        names.contains(word.trim_matches('.'))
    };
    let mut word = Vec::new();
    for byte in BufReader::new(File::open(path)?).bytes() {
        let byte = byte?;
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-') {
            // A longer word is none, with or without a dot on each side.
            if word.len() < NAME_BYTES_MAX.saturating_add(3) {
                word.push(byte);
            }
        } else if is_name(&word) {
            return Ok(true);
        } else {
            word.clear();
        }
    }
    Ok(is_name(&word))
}

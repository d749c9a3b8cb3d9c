//! Which files there are, and that each matches the index.

use std::io::Read as _;

use dump::{DumpError, Packing};
use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};

use super::*;

const ROWS: [&str; 2] = ["a.example", "b.example"];

fn rows(names: &[&str]) -> Vec<ListedRow> {
    names.iter().map(|name| listed(name)).collect()
}

#[test]
fn the_index_tells_of_every_file_below_data_and_each_is_as_it_says() {
    let files = written(&rows(&ROWS));
    let index: serde_json::Value = serde_json::from_slice(&files["data/index.json"]).unwrap();
    assert_eq!(index["instances"], 2);
    assert_eq!(index["schema_version"], 1);
    assert_eq!(index["made"], made().to_string());
    assert_eq!(index["rows_read"], made().to_string());
    let mut told = vec![
        "data/index.json".to_owned(),
        "data/index.json.gz".to_owned(),
        "nodes.json".to_owned(),
        "nodes.json.gz".to_owned(),
    ];
    for entry in index["files"].as_array().unwrap() {
        let place = format!("data/{}", entry["name"].as_str().unwrap());
        let bytes = &files[&place];
        assert_eq!(entry["bytes"], bytes.len(), "{place}");
        assert_eq!(
            entry["sha256"],
            hex::encode(Sha256::digest(bytes)),
            "{place}"
        );
        assert_eq!(entry["made"], made().to_string());
        let media = match place.rsplit('.').next().unwrap() {
            "gz" => "application/gzip",
            "json" => "application/json",
            "ndjson" => "application/x-ndjson",
            "csv" => "text/csv; charset=utf-8; header=present",
            "sqlite" => "application/vnd.sqlite3",
            other => panic!("{other}"),
        };
        assert_eq!(entry["media_type"], media, "{place}");
        told.push(place);
    }
    told.sort();
    assert!(files.keys().eq(&told), "{:?}\n{told:?}", files.keys());
    assert_eq!(files["nodes.json"], b"[\"a.example\",\"b.example\"]\n");
}

#[test]
fn every_file_has_a_companion_that_holds_what_it_holds() {
    let files = written(&rows(&ROWS));
    for name in [
        "nodes.json",
        "instances.ndjson",
        "instances.csv",
        "instances.sqlite",
        "software.json",
        "index.json",
    ] {
        let place = format!("data/{name}");
        let mut unpacked = Vec::new();
        GzDecoder::new(files[&format!("{place}.gz")].as_slice())
            .read_to_end(&mut unpacked)
            .unwrap();
        assert!(unpacked == files[&place], "{place}.gz");
    }
    assert_eq!(files["nodes.json"], files["data/nodes.json"]);
    assert_eq!(files["nodes.json.gz"], files["data/nodes.json.gz"]);
}

#[test]
fn equal_rows_give_equal_bytes_whenever_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let later = tree(folder.path(), &Cancel::default());
    let rows = rows(&ROWS);
    let draft = dump::write(&later, Moment::from_milliseconds(0), |row| {
        rows.iter().try_for_each(row)
    });
    draft
        .map_err(|error: DumpError| error)
        .unwrap()
        .seal()
        .unwrap();
    let (mut one, mut other) = (written(&rows), files(later.folder()));
    for end in ["", ".gz"] {
        let place = format!("data/index.json{end}");
        assert!(one.remove(&place) != other.remove(&place), "{place}");
    }
    assert!(one == other);
}

#[test]
fn the_index_describes_the_set() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path(), &Cancel::default());
    let none = dump::published_set(tree.folder());
    assert_eq!(none, dump::PublishedSet::default());
    draft(&tree, &rows(&ROWS)).unwrap().seal().unwrap();
    let set = dump::published_set(tree.folder());
    assert_eq!(set.instances, Some(ROWS.len() as u64));
    let nodes = set.files.iter().find(|file| file.name == "nodes.json");
    let bytes = std::fs::metadata(tree.path("data/nodes.json")).unwrap();
    assert_eq!(nodes.unwrap().bytes, bytes.len());
}

#[test]
fn what_joins_the_set_is_in_the_index_and_what_is_made_of_the_index_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path(), &Cancel::default());
    let mut draft = draft(&tree, &rows(&ROWS)).unwrap();
    let names = draft
        .rows()
        .unwrap()
        .map(|row| row.unwrap().host)
        .collect::<Vec<_>>()
        .join("\n");
    let write = |file: &mut dyn std::io::Write| file.write_all(names.as_bytes());
    draft
        .add("more/names.txt", "text/plain", Packing::Gzip, write)
        .unwrap();
    let sealed = draft.seal().unwrap();
    let digest = Sha256::digest(sealed.index());
    sealed.attach("index.json.sha256", &digest).unwrap();
    let files = files(tree.folder());
    assert_eq!(files["data/more/names.txt"], b"a.example\nb.example");
    assert_eq!(
        files["data/index.json.sha256"],
        Sha256::digest(&files["data/index.json"]).to_vec()
    );
    let index = String::from_utf8(files["data/index.json"].clone()).unwrap();
    for name in ["more/names.txt", "more/names.txt.gz"] {
        assert!(index.contains(&format!("\"name\": \"{name}\"")), "{index}");
    }
    assert!(!index.contains("index.json.sha256"));
}

/// Each file is looked at once while companions and the index are written.
#[test]
fn a_cancelled_set_ends_at_any_file() {
    /// The list at the root, five data files, five schemas.
    const PACKED: u64 = 1 + 5 + 5;
    let folder = tempfile::tempdir().unwrap();
    let ends_after = |checks| {
        let cancel = Cancel::after(checks);
        let tree = tree(folder.path(), &cancel);
        let written = draft(&tree, &rows(&ROWS)).map(dump::Draft::seal);
        matches!(written, Ok(Ok(_sealed)))
    };
    let checks = (0..100).position(ends_after).unwrap();
    assert!(checks as u64 > 2 * PACKED, "{checks}");
}

#[test]
fn a_name_out_of_order_ends_the_dump() {
    for names in [["b.example", "a.example"], ["a.example", "a.example"]] {
        let folder = tempfile::tempdir().unwrap();
        let tree = tree(folder.path(), &Cancel::default());
        let error = draft(&tree, &rows(&names)).unwrap_err();
        assert!(
            matches!(&error, DumpError::OutOfOrder { name } if name == "a.example"),
            "{error}"
        );
    }
}

#[test]
fn what_the_feed_says_comes_before_what_the_disk_says() {
    #[derive(Debug)]
    enum Failure {
        Store,
        Dump(#[expect(dead_code, reason = "only shown")] DumpError),
    }
    impl From<DumpError> for Failure {
        fn from(error: DumpError) -> Self {
            Self::Dump(error)
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path(), &Cancel::default());
    let failure = dump::write(&tree, made(), |row| {
        row(&listed("b.example"))?;
        row(&listed("a.example")).unwrap_err();
        Err(Failure::Store)
    })
    .unwrap_err();
    assert!(matches!(failure, Failure::Store), "{failure:?}");
}

#[test]
fn an_error_that_is_passed_over_still_ends_the_dump() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path(), &Cancel::default());
    let error = dump::write(&tree, made(), |row| {
        for host in ["b.example", "a.example", "c.example"] {
            row(&listed(host)).ok();
        }
        Ok::<(), DumpError>(())
    })
    .unwrap_err();
    assert!(matches!(error, DumpError::GivenUp), "{error}");
}

//! Which files there are, and that each matches the index.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;

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
    let files = published(&rows(&ROWS));
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
    let files = published(&rows(&ROWS));
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
    let later = tempfile::tempdir().unwrap();
    let rows = rows(&ROWS);
    let draft = dump::write(later.path(), Moment::from_milliseconds(0), |row| {
        rows.iter().try_for_each(row)
    });
    draft
        .map_err(|error: DumpError| error)
        .unwrap()
        .seal()
        .unwrap()
        .publish()
        .unwrap();
    let (mut one, mut other) = (published(&rows), files(later.path()));
    for end in ["", ".gz"] {
        let place = format!("data/index.json{end}");
        assert!(one.remove(&place) != other.remove(&place), "{place}");
    }
    assert!(one == other);
}

#[test]
fn the_index_describes_the_published_set() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        dump::published_set(folder.path()),
        dump::PublishedSet::default()
    );
    publish(folder.path(), &rows(&ROWS));
    let set = dump::published_set(folder.path());
    assert_eq!(set.instances, Some(ROWS.len() as u64));
    let nodes = set.files.iter().find(|file| file.name == "nodes.json");
    let bytes = std::fs::metadata(folder.path().join("data/nodes.json")).unwrap();
    assert_eq!(nodes.unwrap().bytes, bytes.len());
}

#[test]
fn everybody_may_read_the_files_and_only_the_owner_may_write() {
    let folder = tempfile::tempdir().unwrap();
    publish(folder.path(), &rows(&ROWS));
    let mode = |place: &str| {
        std::fs::metadata(folder.path().join(place))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    for place in files(folder.path()).keys() {
        assert_eq!(mode(place), 0o644, "{place}");
    }
    assert_eq!((mode("data"), mode("data/schema")), (0o755, 0o755));
}

#[test]
fn nothing_is_published_before_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let hidden = |place: &String| place.rsplit('/').next().unwrap().starts_with('.');
    let draft = draft(folder.path(), &rows(&ROWS)).unwrap();
    assert!(files(folder.path()).keys().all(hidden));
    let sealed = draft.seal().unwrap();
    assert!(files(folder.path()).keys().all(hidden));
    drop(sealed);
    assert!(files(folder.path()).is_empty());
}

#[test]
fn what_joins_the_set_is_in_the_index_and_what_is_made_of_the_index_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut draft = draft(folder.path(), &rows(&ROWS)).unwrap();
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
    let mut sealed = draft.seal().unwrap();
    let digest = Sha256::digest(sealed.index());
    sealed.attach("index.json.sha256", &digest).unwrap();
    sealed.publish().unwrap();
    let files = files(folder.path());
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

#[test]
fn what_a_crash_left_is_cleared_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    publish(folder.path(), &rows(&["a.example"]));
    let before = files(folder.path());
    // A process that is killed runs no destructors.
    std::mem::forget(
        draft(folder.path(), &rows(&["b.example"]))
            .unwrap()
            .seal()
            .unwrap(),
    );
    let left = u32::try_from(files(folder.path()).len() - before.len()).unwrap();
    assert!(left > 15, "{left}");
    let kept = [
        ".htaccess",
        "index.html",
        ".index.html.0.new",
        "data/.htaccess",
    ];
    for name in kept {
        std::fs::File::create(folder.path().join(name))
            .unwrap()
            .write_all(b"x")
            .unwrap();
    }
    assert_eq!(dump::clear_stale(folder.path()).unwrap(), left);
    assert_eq!(dump::clear_stale(folder.path()).unwrap(), 0);
    let mut after = files(folder.path());
    for name in kept {
        after.remove(name).unwrap();
    }
    assert!(after == before);
}

#[test]
fn a_name_out_of_order_ends_the_dump() {
    for names in [["b.example", "a.example"], ["a.example", "a.example"]] {
        let folder = tempfile::tempdir().unwrap();
        let error = draft(folder.path(), &rows(&names)).unwrap_err();
        assert!(
            matches!(&error, DumpError::OutOfOrder { name } if name == "a.example"),
            "{error}"
        );
        assert!(files(folder.path()).is_empty());
    }
}

#[test]
fn a_folder_that_is_none_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [missing, file] {
        let error = draft(&path, &[]).unwrap_err();
        assert!(matches!(error, DumpError::NoFolder { .. }), "{error}");
        let error = dump::clear_stale(&path).unwrap_err();
        assert!(matches!(error, DumpError::NoFolder { .. }), "{error}");
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
    let failure = dump::write(folder.path(), made(), |row| {
        row(&listed("b.example"))?;
        row(&listed("a.example")).unwrap_err();
        Err(Failure::Store)
    })
    .unwrap_err();
    assert!(matches!(failure, Failure::Store), "{failure:?}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn an_error_that_is_passed_over_still_ends_the_dump() {
    let folder = tempfile::tempdir().unwrap();
    let error = dump::write(folder.path(), made(), |row| {
        for host in ["b.example", "a.example", "c.example"] {
            row(&listed(host)).ok();
        }
        Ok::<(), DumpError>(())
    })
    .unwrap_err();
    assert!(matches!(error, DumpError::GivenUp), "{error}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn rows_that_are_not_those_of_the_index_are_known() {
    let folder = tempfile::tempdir().unwrap();
    assert!(dump::standing_rows(folder.path()).unwrap().is_none());
    publish(folder.path(), &rows(&ROWS));
    let standing = || dump::standing_rows(folder.path()).unwrap().unwrap();
    assert!(standing().are_those_of_the_index(folder.path()));
    // Rows that were read before count too.
    let mut half = standing();
    half.next().unwrap().unwrap();
    assert!(half.are_those_of_the_index(folder.path()));
    let path = folder.path().join("data/instances.ndjson");
    let whole = std::fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    damaged[10] ^= 1;
    for bytes in [&whole[..whole.len() - 1], &whole[..0], &damaged] {
        std::fs::write(&path, bytes).unwrap();
        assert!(!standing().are_those_of_the_index(folder.path()));
    }
    std::fs::write(&path, &whole).unwrap();
    std::fs::remove_file(folder.path().join("data/index.json")).unwrap();
    assert!(!standing().are_those_of_the_index(folder.path()));
}

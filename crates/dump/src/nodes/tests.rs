use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use flate2::read::GzDecoder;
use proptest::prelude::*;

use super::*;

mod faults;
mod model;

type Visit<'list> = &'list mut dyn FnMut(&str) -> Result<(), DumpError>;

fn feed(names: &[&str]) -> impl FnOnce(Visit<'_>) -> Result<(), DumpError> {
    |name| names.iter().try_for_each(|host| name(host))
}

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

/// Writes `names` to a real folder and gives what is in the two files.
fn written(names: &[&str]) -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let staged = write_nodes(folder.path(), feed(names)).unwrap();
    assert_eq!(staged.names(), u64::try_from(names.len()).unwrap());
    let bytes = staged.bytes();
    staged.publish().unwrap();
    let plain = std::fs::read(folder.path().join(NODES_FILE)).unwrap();
    let gzip = std::fs::read(folder.path().join(NODES_GZIP_FILE)).unwrap();
    assert_eq!(bytes, u64::try_from(plain.len()).unwrap());
    assert_eq!(unzipped(&gzip), plain);
    (plain, gzip)
}

fn check(names: &[&str], expect: &str) {
    assert_eq!(String::from_utf8(written(names).0).unwrap(), expect);
}

#[test]
fn the_list_is_a_json_array_on_one_line() {
    check(&[], "[]\n");
    check(&["a.example"], "[\"a.example\"]\n");
    check(
        &["a.example", "b.example"],
        "[\"a.example\",\"b.example\"]\n",
    );
}

#[test]
fn equal_lists_give_equal_bytes() {
    let (_, gzip) = written(&["a.example", "b.example"]);
    assert_eq!(gzip, written(&["a.example", "b.example"]).1);
    // Time and system in the header (RFC 1952 §2.3).
    assert_eq!(gzip[4..8], [0, 0, 0, 0]);
    assert_eq!(gzip[9], GZIP_SYSTEM_UNKNOWN);
}

#[test]
fn a_name_out_of_order_ends_the_dump() {
    for names in [["b.example", "a.example"], ["a.example", "a.example"]] {
        let folder = tempfile::tempdir().unwrap();
        let error = write_nodes(folder.path(), feed(&names)).unwrap_err();
        assert!(
            matches!(&error, DumpError::OutOfOrder { name } if name == "a.example"),
            "{error}"
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn everybody_may_read_the_files_and_only_the_owner_may_write() {
    let folder = tempfile::tempdir().unwrap();
    let staged = write_nodes(folder.path(), feed(&["a.example"])).unwrap();
    staged.publish().unwrap();
    for name in [NODES_FILE, NODES_GZIP_FILE] {
        let mode = std::fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o644, "{name}");
    }
}

#[test]
fn nothing_is_published_before_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let staged = write_nodes(folder.path(), feed(&["a.example"])).unwrap();
    assert!(!folder.path().join(NODES_FILE).exists());
    drop(staged);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_a_crash_left_is_cleared_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    write_nodes(folder.path(), feed(&["a.example"]))
        .unwrap()
        .publish()
        .unwrap();
    // A process that dies runs no destructors.
    std::mem::forget(write_nodes(folder.path(), feed(&["b.example"])).unwrap());
    for name in [".htaccess", "index.html", ".index.html.0.new"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    assert_eq!(clear_stale(folder.path()).unwrap(), 2);
    assert_eq!(clear_stale(folder.path()).unwrap(), 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5);
    assert_eq!(
        std::fs::read(folder.path().join(NODES_FILE)).unwrap(),
        b"[\"a.example\"]\n"
    );
}

#[test]
fn a_folder_that_is_none_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [missing, file] {
        let error = write_nodes(&path, feed(&[])).unwrap_err();
        assert!(matches!(error, DumpError::NoFolder { .. }), "{error}");
        let error = clear_stale(&path).unwrap_err();
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
    let failure = write_nodes(folder.path(), |name| {
        name("b.example")?;
        name("a.example").unwrap_err();
        Err(Failure::Store)
    })
    .unwrap_err();
    assert!(matches!(failure, Failure::Store), "{failure:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_error_that_is_passed_over_still_ends_the_dump() {
    let folder = tempfile::tempdir().unwrap();
    let error = write_nodes(folder.path(), |name| {
        for host in ["b.example", "a.example", "c.example"] {
            name(host).ok();
        }
        Ok::<(), DumpError>(())
    })
    .unwrap_err();
    assert!(matches!(error, DumpError::GivenUp), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_goes_in_comes_out_as_json(names in proptest::collection::btree_set("\\PC{0,30}", 0..200)) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (plain, _) = written(&names);
        let parsed: Vec<String> = serde_json::from_slice(&plain).unwrap();
        prop_assert_eq!(parsed, names);
    }

    #[test]
    fn a_list_longer_than_any_buffer_comes_out_whole(count in 5_000_usize..20_000) {
        let names: Vec<String> = (0..count).map(|index| format!("host-{index:08}.example")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (plain, _) = written(&names);
        prop_assert_eq!(serde_json::from_slice::<Vec<&str>>(&plain).unwrap(), names);
    }
}

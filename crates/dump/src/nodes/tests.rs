use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::rc::Rc;

use flate2::read::GzDecoder;
use proptest::prelude::*;

use super::*;

/// How the model disk fails at its n-th call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fails {
    /// That call alone: an error of the disk.
    Once,
    /// That call and all after it: the process is dead.
    ForGood,
}

/// A disk in memory that knows what would be left after a power cut: contents as of their last sync, names as of the folder's last sync
/// and any number of the renames after it.
#[derive(Debug, Default)]
struct Model {
    calls: u32,
    fails_at: Option<(u32, Fails)>,
    contents: Vec<Content>,
    names: BTreeMap<PathBuf, usize>,
    synced_names: BTreeMap<PathBuf, usize>,
    unsynced_changes: Vec<(PathBuf, Option<usize>)>,
}

#[derive(Debug, Default)]
struct Content {
    live: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Debug, Clone, Default)]
struct ModelDisk(Rc<RefCell<Model>>);

struct ModelFile {
    disk: ModelDisk,
    content: usize,
}

impl ModelDisk {
    /// A disk on which `names` are published.
    fn holding(names: &[&str]) -> Self {
        let disk = Self::default();
        let (swap, _) = stage(disk.clone(), folder(), feed(names)).unwrap();
        swap.publish().unwrap();
        disk.0.borrow_mut().calls = 0;
        disk
    }

    fn call(&self) -> io::Result<()> {
        let mut model = self.0.borrow_mut();
        model.calls += 1;
        match model.fails_at {
            Some((at, Fails::Once)) if model.calls == at => Err(io::Error::other("once")),
            Some((at, Fails::ForGood)) if model.calls >= at => Err(io::Error::other("for good")),
            Some(_) | None => Ok(()),
        }
    }

    fn change(&self, path: &Path, content: Option<usize>) {
        let mut model = self.0.borrow_mut();
        match content {
            Some(content) => model.names.insert(path.to_owned(), content),
            None => model.names.remove(path),
        };
        model.unsynced_changes.push((path.to_owned(), content));
    }

    /// What readers see while the machine runs.
    fn live(&self, name: &str) -> Vec<u8> {
        let model = self.0.borrow();
        model.contents[model.names[&folder().join(name)]]
            .live
            .clone()
    }

    /// What a power cut could leave of a file, one for each number of changes of names that reached the disk.
    fn after_power_cut(&self, name: &str) -> Vec<Vec<u8>> {
        let model = self.0.borrow();
        let mut names = model.synced_names.clone();
        let mut outcomes = vec![names.clone()];
        for (path, content) in &model.unsynced_changes {
            match content {
                Some(content) => names.insert(path.clone(), *content),
                None => names.remove(path),
            };
            outcomes.push(names.clone());
        }
        outcomes
            .iter()
            .map(|names| model.contents[names[&folder().join(name)]].synced.clone())
            .collect()
    }

    fn hidden_files(&self) -> usize {
        let model = self.0.borrow();
        model
            .names
            .keys()
            .filter(|path| path.to_str().unwrap().contains("/."))
            .count()
    }
}

impl Disk for ModelDisk {
    type File = ModelFile;

    fn create(&self, path: &Path) -> io::Result<ModelFile> {
        self.call()?;
        let content = {
            let mut model = self.0.borrow_mut();
            model.contents.push(Content::default());
            model.contents.len() - 1
        };
        self.change(path, Some(content));
        Ok(ModelFile {
            disk: self.clone(),
            content,
        })
    }

    fn sync_file(&self, file: &ModelFile) -> io::Result<()> {
        self.call()?;
        let content = &mut self.0.borrow_mut().contents[file.content];
        content.synced = content.live.clone();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?;
        let content = self.0.borrow().names[from];
        self.change(to, Some(content));
        self.change(from, None);
        Ok(())
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.call()?;
        let mut model = self.0.borrow_mut();
        model.synced_names = model.names.clone();
        model.unsynced_changes.clear();
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        self.change(path, None);
        Ok(())
    }

    fn list(&self, _folder: &Path, names_max: usize) -> io::Result<Vec<OsString>> {
        self.call()?;
        Ok(self
            .0
            .borrow()
            .names
            .keys()
            .take(names_max)
            .filter_map(|path| path.file_name().map(OsString::from))
            .collect())
    }
}

impl Write for ModelFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.call()?;
        // Half at a time, so that a crash meets files that are half written.
        let taken = bytes.len().div_ceil(2);
        self.disk.0.borrow_mut().contents[self.content]
            .live
            .extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn folder() -> &'static Path {
    Path::new("/public")
}

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

const OLD: [&str; 1] = ["old.example"];
const NEW: [&str; 2] = ["a.example", "new.example"];
const OLD_JSON: &[u8] = b"[\"old.example\"]\n";
const NEW_JSON: &[u8] = b"[\"a.example\",\"new.example\"]\n";

fn assert_whole(plain: &[u8], gzip: &[u8], when: &str) {
    for json in [plain, &unzipped(gzip)] {
        assert!(
            json == OLD_JSON || json == NEW_JSON,
            "{when}: {:?}",
            String::from_utf8_lossy(json)
        );
    }
}

/// Replaces the old dump by the new one on a disk that fails at call `at`.
fn replace(at: u32, fails: Fails) -> (ModelDisk, Result<(), DumpError>) {
    let disk = ModelDisk::holding(&OLD);
    disk.0.borrow_mut().fails_at = Some((at, fails));
    let result = stage(disk.clone(), folder(), feed(&NEW)).and_then(|(swap, _size)| swap.publish());
    (disk, result)
}

/// The calls that replacing the old dump takes when nothing fails.
fn calls_of_a_sound_replacement() -> u32 {
    let (disk, result) = replace(0, Fails::Once);
    result.unwrap();
    assert_eq!(disk.live(NODES_FILE), NEW_JSON);
    assert_eq!(disk.hidden_files(), 0);
    for outcome in disk.after_power_cut(NODES_FILE) {
        assert_eq!(outcome, NEW_JSON, "acknowledged and yet lost");
    }
    let calls = disk.0.borrow().calls;
    assert!(calls > 10, "{calls}");
    calls
}

#[test]
fn invariant_6_a_crash_at_any_call_leaves_a_whole_dump() {
    for at in 1..=calls_of_a_sound_replacement() {
        let (disk, result) = replace(at, Fails::ForGood);
        assert!(result.is_err(), "call {at}");
        assert_whole(
            &disk.live(NODES_FILE),
            &disk.live(NODES_GZIP_FILE),
            &format!("killed at call {at}"),
        );
        let plain = disk.after_power_cut(NODES_FILE);
        let gzip = disk.after_power_cut(NODES_GZIP_FILE);
        for (plain, gzip) in plain.iter().zip(&gzip) {
            assert_whole(plain, gzip, &format!("power cut at call {at}"));
        }
        // The next start.
        disk.0.borrow_mut().fails_at = None;
        swap::clear(&disk, folder(), &[NODES_FILE]).unwrap();
        assert_eq!(disk.hidden_files(), 0, "call {at}");
    }
}

#[test]
fn an_error_at_any_call_is_reported_and_leaves_nothing_behind() {
    for at in 1..=calls_of_a_sound_replacement() {
        let (disk, result) = replace(at, Fails::Once);
        assert!(result.is_err(), "call {at}");
        assert_eq!(disk.hidden_files(), 0, "call {at}");
        assert_whole(
            &disk.live(NODES_FILE),
            &disk.live(NODES_GZIP_FILE),
            &format!("call {at}"),
        );
    }
}

#[test]
fn a_plain_file_is_never_newer_than_its_gzipped_one() {
    for at in 1..=calls_of_a_sound_replacement() {
        let (disk, _) = replace(at, Fails::ForGood);
        if disk.live(NODES_FILE) == NEW_JSON {
            assert_eq!(unzipped(&disk.live(NODES_GZIP_FILE)), NEW_JSON, "call {at}");
        }
    }
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

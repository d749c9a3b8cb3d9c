use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Barrier;
use std::thread;

use super::*;
use crate::sign::tests::minisign;

/// Number of races, and of threads per race: enough that one of them meets another halfway.
const RACES: usize = 50;
const RACERS: u8 = 4;

fn at(seconds: i64) -> Moment {
    Moment::from_milliseconds(seconds * 1000)
}

fn seed(number: u8) -> [u8; SEED_BYTES] {
    [number; SEED_BYTES]
}

fn secret(folder: &Path) -> PathBuf {
    folder.join(SECRET_KEY_FILE)
}

fn id(keys: &Keys) -> String {
    keys.key().public().id()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn public_names(keys: &Keys) -> Vec<String> {
    let files = keys.public_files().into_iter();
    let mut names: Vec<_> = files.map(|file| file.name).collect();
    names.sort();
    names
}

#[test]
fn a_key_is_made_once_for_its_owner_alone_and_found_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let (made, origin) = Keys::open(folder.path(), &seed(1)).unwrap();
    assert_eq!(origin, Origin::Made);
    let about = fs::metadata(secret(folder.path())).unwrap();
    assert_eq!(about.mode() & 0o7777, 0o600);
    let (found, origin) = Keys::open(folder.path(), &seed(2)).unwrap();
    assert_eq!((origin, id(&found)), (Origin::Found, id(&made)));
    assert_eq!(public_names(&found), ["fedicensus.pub"]);
    // Nothing is left of the making.
    let left = names(folder.path());
    assert_eq!(left, ["signing.key", "signing.lock"]);
}

#[test]
fn a_key_that_is_only_looked_for_is_never_made() {
    let folder = tempfile::tempdir().unwrap();
    let error = Keys::find(folder.path()).unwrap_err();
    assert!(matches!(error, KeyError::Missing { .. }), "{error}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
    let (made, _) = Keys::open(folder.path(), &seed(1)).unwrap();
    assert_eq!(id(&Keys::find(folder.path()).unwrap()), id(&made));
}

#[test]
fn of_many_who_make_a_key_at_once_one_does_and_all_have_it() {
    for _ in 0..RACES {
        let folder = tempfile::tempdir().unwrap();
        let start = Barrier::new(usize::from(RACERS));
        let race = |number: u8| {
            start.wait();
            let (keys, origin) = Keys::open(folder.path(), &seed(number)).unwrap();
            (id(&keys), origin)
        };
        let found: Vec<_> = thread::scope(|scope| {
            let racers = (0..RACERS).map(|number| scope.spawn(move || race(number)));
            let racers: Vec<_> = racers.collect();
            racers.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let stands = id(&Keys::find(folder.path()).unwrap());
        assert!(found.iter().all(|(id, _)| *id == stands), "{found:?}");
        let makers = found.iter().filter(|(_, origin)| *origin == Origin::Made);
        assert_eq!(makers.count(), 1, "{found:?}");
    }
}

#[test]
fn of_two_who_replace_the_key_at_once_each_new_key_is_signed_by_the_one_before_it() {
    for _ in 0..RACES {
        let folder = tempfile::tempdir().unwrap();
        Keys::open(folder.path(), &seed(0)).unwrap();
        let start = Barrier::new(2);
        let rotate = |number: u8| {
            start.wait();
            Keys::rotate(folder.path(), &seed(number), Handover::Signed, at(0)).unwrap();
        };
        thread::scope(|scope| {
            for number in [1, 2] {
                scope.spawn(move || rotate(number));
            }
        });
        let keys = Keys::find(folder.path()).unwrap();
        assert_eq!(public_names(&keys).len(), 5, "{:?}", public_names(&keys));
    }
}

#[test]
fn no_key_is_made_in_the_place_of_one_that_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = secret(folder.path());
    let open = || Keys::open(folder.path(), &seed(1)).unwrap_err();
    let put = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    put(b"");
    assert!(matches!(open(), KeyError::Empty { .. }));
    put(b" \n");
    assert!(matches!(open(), KeyError::Empty { .. }));
    put(b"untrusted comment: x\n\xff\n");
    assert!(matches!(open(), KeyError::NoKey { .. }));
    put(&[b'x'; KEY_FILE_BYTES_MAX + 1]);
    assert!(matches!(open(), KeyError::Unreadable { .. }));
    put(SigningKey::from_seed(&seed(3)).to_file().as_bytes());
    for mode in [0o640, 0o604, 0o620, 0o601] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = open();
        assert!(matches!(error, KeyError::Exposed { .. }), "{error}");
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let (found, _) = Keys::open(folder.path(), &seed(1)).unwrap();
    assert_eq!(id(&found), SigningKey::from_seed(&seed(3)).public().id());
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(open(), KeyError::Unreadable { .. }));
}

#[test]
fn half_a_key_of_a_crash_is_no_key_and_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join(".signing.key.new");
    fs::write(&temporary, b"untrusted comm").unwrap();
    let (_, origin) = Keys::open(folder.path(), &seed(1)).unwrap();
    assert_eq!(origin, Origin::Made);
    assert!(!temporary.exists());
}

/// A reader who knows any of the last keys can verify the newest: each key is signed by the one
/// before it.
#[test]
fn minisign_leads_a_reader_from_any_former_key_to_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let public = tempfile::tempdir().unwrap();
    Keys::open(folder.path(), &seed(0)).unwrap();
    for number in 1..=3 {
        let now = at(i64::from(number));
        Keys::rotate(folder.path(), &seed(number), Handover::Signed, now).unwrap();
    }
    let (keys, origin) = Keys::open(folder.path(), &seed(9)).unwrap();
    assert_eq!(origin, Origin::Found);
    assert_eq!(id(&keys), SigningKey::from_seed(&seed(3)).public().id());
    for file in keys.public_files() {
        fs::write(public.path().join(file.name), file.content).unwrap();
    }
    let order = [
        "fedicensus-old-3.pub",
        "fedicensus-old-2.pub",
        "fedicensus-old.pub",
        "fedicensus.pub",
    ];
    assert_eq!(public_names(&keys).len(), 7);
    for (trusted, next) in order.iter().zip(&order[1..]) {
        let Some(output) = minisign(public.path(), &["-V", "-p", trusted, "-m", next]) else {
            return;
        };
        assert!(output.status.success(), "{trusted} {next}: {output:?}");
        let wrong = minisign(public.path(), &["-V", "-p", next, "-m", next]).unwrap();
        assert!(!wrong.status.success(), "{next} speaks for itself");
    }
}

#[test]
fn a_stolen_key_speaks_for_nobody() {
    let folder = tempfile::tempdir().unwrap();
    Keys::open(folder.path(), &seed(0)).unwrap();
    Keys::rotate(folder.path(), &seed(1), Handover::Signed, at(1)).unwrap();
    let keys = Keys::rotate(folder.path(), &seed(2), Handover::None, at(2)).unwrap();
    assert_eq!(public_names(&keys), ["fedicensus.pub"]);
    let (keys, _) = Keys::open(folder.path(), &seed(9)).unwrap();
    assert_eq!(public_names(&keys), ["fedicensus.pub"]);
}

#[test]
fn a_key_whose_making_was_cut_off_between_its_two_files_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let (old, _) = Keys::open(folder.path(), &seed(0)).unwrap();
    Keys::rotate(folder.path(), &seed(1), Handover::Signed, at(1)).unwrap();
    // The new history with the old key.
    let secret = old.key().to_file();
    write(folder.path(), SECRET_KEY_FILE, secret.as_bytes()).unwrap();
    let (keys, _) = Keys::open(folder.path(), &seed(9)).unwrap();
    assert_eq!(id(&keys), id(&old));
    assert_eq!(public_names(&keys), ["fedicensus.pub"]);
    let keys = Keys::rotate(folder.path(), &seed(2), Handover::Signed, at(2)).unwrap();
    assert_eq!(public_names(&keys).len(), 3);
}

#[test]
fn former_keys_are_kept_up_to_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    Keys::open(folder.path(), &seed(0)).unwrap();
    for number in 1..20 {
        Keys::rotate(folder.path(), &seed(number), Handover::Signed, at(0)).unwrap();
    }
    let (keys, _) = Keys::open(folder.path(), &seed(99)).unwrap();
    assert_eq!(public_names(&keys).len(), 1 + 2 * FORMER_MAX);
    assert_eq!(id(&keys), SigningKey::from_seed(&seed(19)).public().id());
}

#[test]
fn a_damaged_history_is_told_and_there_is_no_rotation_without_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let rotate = || Keys::rotate(folder.path(), &seed(1), Handover::Signed, at(0));
    assert!(matches!(rotate(), Err(KeyError::Missing { .. })));
    Keys::open(folder.path(), &seed(0)).unwrap();
    rotate().unwrap();
    let history = folder.path().join(HISTORY_FILE);
    fs::write(&history, b"[{").unwrap();
    let error = Keys::open(folder.path(), &seed(0)).unwrap_err();
    assert!(matches!(error, KeyError::History { .. }), "{error}");
    assert!(matches!(rotate(), Err(KeyError::History { .. })));
}

#[test]
fn everybody_may_read_the_history() {
    let folder = tempfile::tempdir().unwrap();
    Keys::open(folder.path(), &seed(0)).unwrap();
    Keys::rotate(folder.path(), &seed(1), Handover::Signed, at(0)).unwrap();
    let history = folder.path().join(HISTORY_FILE);
    fs::set_permissions(&history, fs::Permissions::from_mode(0o644)).unwrap();
    let (keys, _) = Keys::open(folder.path(), &seed(9)).unwrap();
    assert_eq!(public_names(&keys).len(), 3);
}

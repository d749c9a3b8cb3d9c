use std::collections::BTreeMap;

use super::model::{Fails, ModelDisk, folder};
use super::*;
use crate::set::publication;

/// Linux's error numbers for a disk, and a part of the advice to the operator.
const TROUBLES: [(i32, &str); 5] = [
    // EIO
    (5, "see the system's log"),
    // EACCES
    (13, "give it to the user"),
    // ENOSPC
    (28, "free some space"),
    // EROFS
    (30, "mount the volume writable"),
    // EDQUOT
    (122, "free some space"),
];

const KILLED: Fails = Fails::FromThenOn(5);

const INDEX: &str = "data/index.json";

type Files = BTreeMap<String, Vec<u8>>;

fn publish(disk: &ModelDisk, names: &[&str], made: i64) -> Result<(), DumpError> {
    publication::clear(disk, folder()).ok();
    let made = Moment::from_milliseconds(made * 1000);
    let draft = Draft::write(disk.clone(), folder(), made, feed(names))?;
    let mut sealed = draft.seal()?;
    let signature = format!("of {} bytes", sealed.index().len());
    sealed.attach("index.json.sig", signature.as_bytes())?;
    sealed.publish()
}

fn publish_old(disk: &ModelDisk) {
    publish(disk, &["old.example"], 1).unwrap();
}

fn publish_new(disk: &ModelDisk) -> Result<(), DumpError> {
    publish(disk, &["a.example", "new.example"], 2)
}

/// The files of sets that were written without faults.
struct Sound {
    old: Files,
    new: Files,
    /// Number of disk calls that replace the old set by the new one.
    calls: u32,
}

fn sound() -> Sound {
    let disk = ModelDisk::default();
    publish_old(&disk);
    let (old, _) = disk.live();
    disk.fail_at(u32::MAX, KILLED);
    publish_new(&disk).unwrap();
    let (new, hidden) = disk.live();
    assert_eq!(hidden, 0);
    assert!(old.keys().eq(new.keys()));
    assert!(old[INDEX] != new[INDEX]);
    for left in disk.after_power_cut() {
        assert!(left.live().0 == new, "acknowledged and yet lost");
    }
    assert!(disk.calls() > 100, "{}", disk.calls());
    Sound {
        old,
        new,
        calls: disk.calls(),
    }
}

impl Sound {
    /// Replaces the old set by the new one on a disk that fails at call `at`.
    fn replace(at: u32, fails: Fails) -> (ModelDisk, Result<(), DumpError>) {
        let disk = ModelDisk::default();
        publish_old(&disk);
        disk.fail_at(at, fails);
        let result = publish_new(&disk);
        (disk, result)
    }

    /// Each file is the old or the new one, in a combination that readers can rely on.
    fn check(&self, disk: &ModelDisk, when: &str) {
        let (files, _) = disk.live();
        assert!(
            files.keys().eq(self.old.keys()),
            "{when}: {:?}",
            files.keys()
        );
        for (place, bytes) in &files {
            assert!(
                *bytes == self.old[place] || *bytes == self.new[place],
                "{when}: {place} is neither"
            );
        }
        // A file that is equal in both sets counts as both.
        let is_old = |place: &str| files[place] != self.new[place];
        let is_new = |place: &str| files[place] != self.old[place];
        for place in files.keys() {
            assert!(
                !is_new(INDEX) || !is_old(place),
                "{when}: the index tells of {place}, which is an old one"
            );
            assert!(
                !is_old(ROWS_PLACE) || !is_new(place),
                "{when}: whoever goes by the rows and the index knows nothing of {place}"
            );
            let packed = format!("{place}.gz");
            let is_older = files.contains_key(&packed) && is_new(place) && is_old(&packed);
            assert!(
                !is_older || place == ROWS_PLACE,
                "{when}: {packed} is older than what it packs"
            );
        }
    }

    fn check_new(&self, disk: &ModelDisk, when: &str) {
        let (files, hidden) = disk.live();
        assert!(files == self.new, "{when}");
        assert_eq!(hidden, 0, "{when}");
    }
}

#[test]
fn invariant_6_a_crash_at_any_call_leaves_a_whole_dump() {
    let sound = sound();
    for at in 1..=sound.calls {
        let (disk, _result) = Sound::replace(at, KILLED);
        disk.mend();
        let mut left = disk.after_power_cut();
        for (outcome, disk) in left.iter().enumerate() {
            sound.check(disk, &format!("power cut at call {at}, outcome {outcome}"));
        }
        // The next start and its first dump: after a kill, and after the first and the last outcome
        // of a power cut.
        let mut ends = vec![disk];
        ends.extend(left.pop());
        ends.extend(left.into_iter().next());
        for (end, disk) in ends.iter().enumerate() {
            let when = format!("killed at call {at}, end {end}");
            sound.check(disk, &when);
            publication::clear(disk, folder()).unwrap();
            assert_eq!(disk.live().1, 0, "{when}");
            sound.check(disk, &when);
            publish_new(disk).unwrap();
            sound.check_new(disk, &when);
        }
    }
}

#[test]
fn an_error_of_any_kind_at_any_call_is_told_and_leaves_nothing_behind() {
    let sound = sound();
    for (number, advice) in TROUBLES {
        let mut told = 0;
        for at in 1..=sound.calls {
            let when = format!("error {number} at call {at}");
            let (disk, result) = Sound::replace(at, Fails::Once(number));
            match result {
                Err(error) => {
                    told += 1;
                    assert!(error.to_string().contains(advice), "{when}: {error}");
                    sound.check(&disk, &when);
                }
                // Leftover files that can't be deleted must not prevent a publication.
                Ok(()) => sound.check_new(&disk, &when),
            }
            assert_eq!(disk.live().1, 0, "{when}");
        }
        assert!(told > 100, "{told}");
    }
}

#[test]
fn when_a_disk_is_sound_again_the_next_dump_needs_no_restart_and_tidies_up() {
    let sound = sound();
    for (number, _) in TROUBLES {
        for at in 1..=sound.calls {
            let when = format!("error {number} from call {at} on");
            let (disk, _result) = Sound::replace(at, Fails::FromThenOn(number));
            sound.check(&disk, &when);
            disk.mend();
            publish_new(&disk).unwrap();
            sound.check_new(&disk, &when);
        }
    }
}

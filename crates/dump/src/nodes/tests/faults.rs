use super::model::{Fails, ModelDisk, folder};
use super::*;

const OLD: [&str; 1] = ["old.example"];
const NEW: [&str; 2] = ["a.example", "new.example"];
const OLD_JSON: &[u8] = b"[\"old.example\"]\n";
const NEW_JSON: &[u8] = b"[\"a.example\",\"new.example\"]\n";

/// What Linux says of a disk, and what an operator is told to do about it.
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

fn assert_whole(disk: &ModelDisk, when: &str) {
    let unzipped = unzipped(&disk.live(NODES_GZIP_FILE));
    for json in [disk.live(NODES_FILE), unzipped] {
        assert!(
            json == OLD_JSON || json == NEW_JSON,
            "{when}: {:?}",
            String::from_utf8_lossy(&json)
        );
    }
}

fn assert_new(disk: &ModelDisk, when: &str) {
    assert_eq!(disk.live(NODES_FILE), NEW_JSON, "{when}");
    assert_eq!(unzipped(&disk.live(NODES_GZIP_FILE)), NEW_JSON, "{when}");
    assert_eq!(disk.hidden_files(), 0, "{when}");
}

fn publish_new(disk: &ModelDisk) -> Result<(), DumpError> {
    stage(disk.clone(), folder(), feed(&NEW)).and_then(|(swap, _size)| swap.publish())
}

/// Replaces the old dump by the new one on a disk that fails at call `at`.
fn replace(at: u32, fails: Fails) -> (ModelDisk, Result<(), DumpError>) {
    let disk = ModelDisk::holding(&OLD);
    disk.fail_at(at, fails);
    let result = publish_new(&disk);
    (disk, result)
}

/// The calls that replacing the old dump takes when nothing fails.
fn calls_of_a_sound_replacement() -> u32 {
    let disk = ModelDisk::holding(&OLD);
    publish_new(&disk).unwrap();
    assert_new(&disk, "nothing failed");
    for left in disk.after_power_cut() {
        assert_new(&left, "acknowledged and yet lost");
    }
    assert!(disk.calls() > 10, "{}", disk.calls());
    disk.calls()
}

#[test]
fn invariant_6_a_crash_at_any_call_leaves_a_whole_dump() {
    for at in 1..=calls_of_a_sound_replacement() {
        let (disk, _result) = replace(at, KILLED);
        disk.mend();
        assert_whole(&disk, &format!("killed at call {at}"));
        let mut left = disk.after_power_cut();
        left.push(disk);
        for (outcome, disk) in left.iter().enumerate() {
            let when = format!("power cut at call {at}, outcome {outcome}");
            assert_whole(disk, &when);
            // The next start, and its first dump.
            swap::clear(disk, folder(), &[NODES_FILE]).unwrap();
            assert_eq!(disk.hidden_files(), 0, "{when}");
            assert_whole(disk, &when);
            publish_new(disk).unwrap();
            assert_new(disk, &when);
        }
    }
}

#[test]
fn an_error_of_any_kind_at_any_call_is_told_and_leaves_nothing_behind() {
    for (number, advice) in TROUBLES {
        let mut told = 0;
        for at in 1..=calls_of_a_sound_replacement() {
            let when = format!("error {number} at call {at}");
            let (disk, result) = replace(at, Fails::Once(number));
            match result {
                Err(error) => {
                    told += 1;
                    assert!(error.to_string().contains(advice), "{when}: {error}");
                    assert_whole(&disk, &when);
                }
                // What can't be tidied up is no reason to publish nothing.
                Ok(()) => assert_new(&disk, &when),
            }
            assert_eq!(disk.hidden_files(), 0, "{when}");
        }
        assert!(told > 10, "{told}");
    }
}

#[test]
fn when_a_disk_is_sound_again_the_next_dump_needs_no_restart_and_tidies_up() {
    for (number, _) in TROUBLES {
        for at in 1..=calls_of_a_sound_replacement() {
            let when = format!("error {number} from call {at} on");
            let (disk, _result) = replace(at, Fails::FromThenOn(number));
            assert_whole(&disk, &when);
            disk.mend();
            publish_new(&disk).unwrap();
            assert_new(&disk, &when);
        }
    }
}

#[test]
fn a_plain_file_is_never_newer_than_its_gzipped_one() {
    for at in 1..=calls_of_a_sound_replacement() {
        let (disk, _) = replace(at, KILLED);
        if disk.live(NODES_FILE) == NEW_JSON {
            assert_eq!(unzipped(&disk.live(NODES_GZIP_FILE)), NEW_JSON, "call {at}");
        }
    }
}

//! A publication on a disk that fails or dies at any call (invariants I6 and I7): its n-th call,
//! for every n.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use scheduler::publication::Extent;

use super::*;
use crate::publish::round::Done;

const NO_SPACE: i32 = 28;

/// After each of so many crashes, the publication is made again.
const RECOVERED_EVERY: u32 = 16;

type Texts = BTreeMap<PathBuf, String>;

/// A census whose next publication has a host less, and the folder as it was before.
struct Next {
    stage: Stage,
    saved: PathBuf,
    former: Texts,
    new: Texts,
    calls: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fails {
    Once,
    FromThenOn,
}

fn failing(at: u32, fails: Fails) -> Disk {
    let calls = AtomicU32::new(0);
    Disk::hooked(move |_call| {
        let call = calls.fetch_add(1, Ordering::Relaxed) + 1;
        let is_over = match fails {
            Fails::Once => call == at,
            Fails::FromThenOn => call >= at,
        };
        match is_over {
            true => Err(std::io::Error::from_raw_os_error(NO_SPACE)),
            false => Ok(()),
        }
    })
}

fn copied(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status();
    assert!(copied.unwrap().success());
}

fn of_set(texts: &Texts, is_wanted: bool) -> Vec<(&PathBuf, &String)> {
    let is_of_set = |place: &Path| dump::is_of_set(place.to_str().unwrap());
    texts
        .iter()
        .filter(|(place, _)| is_of_set(place) == is_wanted)
        .collect()
}

impl Next {
    async fn new() -> Self {
        let mut stage = Stage::new("abc").await;
        stage.salt = Some(Salt::from_random(7));
        stage.round("", Force::No).unwrap();
        let former = stage.texts();
        let saved = stage.folder.path().join("saved");
        copied(&stage.public(), &saved);
        stage.opt_out("a").await;
        let calls = Arc::new(AtomicU32::new(0));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (counted, into) = (Arc::clone(&calls), Arc::clone(&seen));
        let published = stage.published();
        // What readers see, and what is left by a crash before this call.
        stage.disk = Disk::hooked(move |_call| {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut seen = into.lock().unwrap();
            let texts = texts_in(&published);
            if seen.last() != Some(&texts) {
                seen.push(texts);
            }
            Ok(())
        });
        assert_eq!(stage.round("", Force::Yes).unwrap(), 2);
        let new = stage.texts();
        assert_eq!(*seen.lock().unwrap(), [former.clone(), new.clone()]);
        let calls = calls.load(Ordering::Relaxed);
        assert!(calls > 150, "{calls}");
        Self {
            stage,
            saved,
            former,
            new,
            calls,
        }
    }

    fn publish(&mut self, disk: Disk) -> Done {
        std::fs::remove_dir_all(self.stage.public()).unwrap();
        copied(&self.saved, &self.stage.public());
        self.stage.disk = disk;
        self.stage.make("", Force::Yes, Extent::Full)
    }

    fn restarts(&mut self) {
        let before = self.stage.texts();
        self.stage.disk = Stage::sound_disk();
        ::publish::tidy(&self.stage.public()).unwrap();
        self.stage.is_tidy();
        assert!(self.stage.texts() == before);
    }
}

#[tokio::test(flavor = "multi_thread")] // S62
async fn a_crash_at_any_call_leaves_one_whole_tree() {
    let mut next = Next::new().await;
    for at in 1..=next.calls {
        next.publish(failing(at, Fails::FromThenOn));
        let left = next.stage.texts();
        assert!(left == next.former || left == next.new, "{at}");
        next.restarts();
        if at % RECOVERED_EVERY == 0 && left == next.former {
            assert_eq!(next.stage.round("", Force::Yes).unwrap(), 2, "{at}");
            assert!(next.stage.texts() == next.new, "{at}");
        }
    }
}

/// Each part is whole, and no file of a new set, or next to it, names the host that left.
#[tokio::test(flavor = "multi_thread")] // S63
async fn a_full_disk_at_any_call_keeps_no_name_with_a_new_list() {
    let mut next = Next::new().await;
    let (mut sets, mut pages) = (0, 0);
    for at in 1..=next.calls {
        let done = next.publish(failing(at, Fails::Once));
        let texts = next.stage.texts();
        let has_new = |is_set| of_set(&texts, is_set) == of_set(&next.new, is_set);
        let has_former = |is_set| of_set(&texts, is_set) == of_set(&next.former, is_set);
        if has_new(true) {
            sets += 1;
            let named = texts.values().any(|text| text.contains("a.example.org"));
            assert!(!named, "{at}: {done:?}");
            assert!(texts.contains_key(Path::new("list.txt")) || !done.has_pages);
        } else {
            assert!(has_former(true) && done.names.is_err(), "{at}: {done:?}");
            let pages = of_set(&texts, false);
            let named = pages.iter().any(|(_, text)| text.contains("a.example.org"));
            assert_eq!(has_former(false), named, "{at}: {done:?}");
        }
        pages += u32::from(has_new(false));
        next.restarts();
    }
    // Most calls are for pages, and none of them holds the list back.
    assert!(
        sets > next.calls / 2 && pages > next.calls / 10,
        "{sets} {pages}"
    );
}

//! Measures files and writes their compressed companions, several at a time.
//!
//! Returns the sizes and hashes of all files. Memory is bounded per file that is being compressed,
//! whatever its length.

use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};

use publish::Cancel;

use crate::compress::{Measure, Packer, each_piece};

/// Files compressed at once. Compression is a third of the work of a publication, and a machine
/// with two processors needs the other one for checks.
const AT_ONCE: usize = 2;

/// Total bytes from which another thread is worth its cost: this much is compressed within some
/// hundredths of a second.
const WORTH_A_THREAD: u64 = 1024 * 1024;

pub(crate) struct Job<R, F> {
    /// Its place, for error messages.
    pub(crate) place: String,
    pub(crate) media: &'static str,
    pub(crate) from: R,
    pub(crate) bytes: u64,
    /// Its companion's place and empty file, if it has one.
    pub(crate) companion: Option<(String, F)>,
}

#[derive(Debug)]
pub(crate) struct Packed<F> {
    pub(crate) place: String,
    pub(crate) media: &'static str,
    pub(crate) measure: Measure,
    pub(crate) companion: Option<(String, F, Measure)>,
}

/// Why some files are not compressed.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The place, the operation, and its error.
    At {
        place: String,
        doing: &'static str,
        source: io::Error,
    },
    Cancelled,
}

/// Compresses all files, in no particular order. After a failure no further one is begun.
pub(crate) fn pack<R, F>(
    mut jobs: Vec<Job<R, F>>,
    cancel: &Cancel,
) -> Result<Vec<Packed<F>>, Failed>
where
    R: Read + Send,
    F: Write + Send,
{
    let bytes = jobs
        .iter()
        .fold(0, |sum: u64, job| sum.saturating_add(job.bytes));
    let helpers = if bytes < WORTH_A_THREAD {
        0
    } else {
        AT_ONCE - 1
    };
    // The longest file is last and taken first, so that no thread is left with it at the end.
    jobs.sort_by_key(|job| job.bytes);
    let queue = Mutex::new(jobs);
    let mut packed = Vec::new();
    std::thread::scope(|scope| -> Result<(), Failed> {
        let helpers: Vec<_> = (0..helpers)
            .map(|_| scope.spawn(|| work(&queue, cancel)))
            .collect();
        let mut outcomes = vec![work(&queue, cancel)];
        for helper in helpers {
            let outcome = helper.join();
            outcomes.push(outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        for outcome in outcomes {
            packed.extend(outcome?);
        }
        Ok(())
    })?;
    Ok(packed)
}

fn work<R: Read, F: Write>(
    queue: &Mutex<Vec<Job<R, F>>>,
    cancel: &Cancel,
) -> Result<Vec<Packed<F>>, Failed> {
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let mut packed = Vec::new();
    loop {
        let next = lock().pop();
        let Some(job) = next else {
            return Ok(packed);
        };
        match run(job, cancel) {
            Ok(done) => packed.push(done),
            Err(failed) => {
                lock().clear();
                return Err(failed);
            }
        }
    }
}

fn run<R: Read, F: Write>(job: Job<R, F>, cancel: &Cancel) -> Result<Packed<F>, Failed> {
    let Job {
        place,
        media,
        mut from,
        bytes: _,
        companion,
    } = job;
    let failed = |place: &str, doing| {
        let place = place.to_owned();
        move |source| Failed::At {
            place,
            doing,
            source,
        }
    };
    let mut packer = companion.map(|(place, file)| (place, Packer::new(file)));
    let measure = each_piece(&mut from, |piece| {
        cancel.check().map_err(|_cancelled| Trouble::Cancelled)?;
        if let Some((place, packer)) = &mut packer {
            packer
                .write_all(piece)
                .map_err(|error| Trouble::At(place.clone(), error))?;
        }
        Ok(())
    })
    .map_err(|trouble| match trouble {
        Trouble::At(at, source) => failed(&at, "writing")(source),
        Trouble::Reading(source) => failed(&place, "reading back")(source),
        Trouble::Cancelled => Failed::Cancelled,
    })?;
    let companion = match packer {
        Some((place, packer)) => {
            let (file, measure) = packer.finish().map_err(failed(&place, "writing"))?;
            Some((place, file, measure))
        }
        None => None,
    };
    Ok(Packed {
        place,
        media,
        measure,
        companion,
    })
}

/// An error while a file is read and its companion is written.
enum Trouble {
    Reading(io::Error),
    At(String, io::Error),
    Cancelled,
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Reading(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a limited size.
    #[derive(Debug)]
    struct Small {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.bytes.len() + bytes.len() > self.room {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.bytes.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Files of which the n-th has n times as many lines. `room` limits their companions.
    fn jobs(lines: u32, room: impl Fn(u32) -> usize) -> Vec<Job<io::Cursor<Vec<u8>>, Small>> {
        let job = |number: u32| {
            let text: String = (0..number * lines)
                .map(|line| format!("{number} {line}\n"))
                .collect();
            let file = Small {
                bytes: Vec::new(),
                room: room(number),
            };
            Job {
                place: number.to_string(),
                media: "text/plain",
                bytes: u64::try_from(text.len()).unwrap(),
                from: io::Cursor::new(text.into_bytes()),
                companion: Some((format!("{number}.gz"), file)),
            }
        };
        (1..=6).map(job).collect()
    }

    #[test]
    fn many_at_a_time_give_the_bytes_that_one_after_the_other_gives() {
        let sorted = |mut packed: Vec<Packed<Small>>| {
            packed.sort_by(|one, other| one.place.cmp(&other.place));
            let bytes = |packed: Packed<Small>| {
                let (place, file, measure) = packed.companion.unwrap();
                (packed.measure.sha256, place, file.bytes, measure.sha256)
            };
            packed.into_iter().map(bytes).collect::<Vec<_>>()
        };
        let lines = 10_000;
        let all: u64 = jobs(lines, |_| usize::MAX)
            .iter()
            .map(|job| job.bytes)
            .sum();
        assert!(all > WORTH_A_THREAD, "{all}");
        let together = sorted(pack(jobs(lines, |_| usize::MAX), &Cancel::default()).unwrap());
        let queue = Mutex::new(jobs(lines, |_| usize::MAX));
        assert_eq!(together.len(), 6);
        assert!(together == sorted(work(&queue, &Cancel::default()).unwrap()));
    }

    #[test]
    fn of_those_that_fail_one_is_named_and_nothing_is_given() {
        for lines in [10, 10_000] {
            let jobs = jobs(lines, |number| if number == 4 { 20 } else { usize::MAX });
            let Err(Failed::At {
                place,
                doing,
                source,
            }) = pack(jobs, &Cancel::default())
            else {
                panic!("there is room")
            };
            assert!(place.starts_with("4."), "{place}");
            assert_eq!(doing, "writing");
            assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        }
    }

    #[test]
    fn none_is_packed_once_it_is_to_stop() {
        let cancelled = Cancel::default();
        cancelled.clone().cancel();
        for lines in [10, 10_000] {
            for cancel in [cancelled.clone(), Cancel::after(1), Cancel::after(5)] {
                let packed = pack(jobs(lines, |_| usize::MAX), &cancel);
                assert!(matches!(packed, Err(Failed::Cancelled)));
            }
        }
    }
}

//! Many files that wait next to their places, and are renamed into place one after the other.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::disk::{Disk, Mode};

const CHUNK_BYTES: usize = 64 * 1024;

/// Files that wait next to their places, each with a caller's tag. Dropping this deletes those that
/// still wait.
///
/// The caller syncs: either each file, or the whole file system at once.
#[derive(Debug)]
pub struct Waiting<D: Disk, T> {
    disk: D,
    suffix: String,
    steps: VecDeque<Step<T>>,
}

#[derive(Debug)]
struct Step<T> {
    tag: T,
    /// `None` deletes whatever is at `place`.
    temporary: Option<PathBuf>,
    place: PathBuf,
}

#[derive(Debug)]
pub struct Put<T> {
    pub tag: T,
    pub place: PathBuf,
    /// The operation: `renaming` or `removing`.
    pub doing: &'static str,
    /// The system's error. The temporary file is deleted then.
    pub result: io::Result<()>,
}

impl<D: Disk, T> Waiting<D, T> {
    /// Contains no files yet. Temporary names are `.NAME.RANDOM` followed by `ending`.
    pub fn new(disk: D, ending: &str) -> Self {
        // Random, so that no run meets another run's files: process ids repeat from container to
        // container.
        let chance = RandomState::new().hash_one(ending);
        Self {
            disk,
            suffix: format!("{chance:016x}{ending}"),
            steps: VecDeque::new(),
        }
    }

    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// Path of the temporary file for `place`.
    pub fn temporary(&self, place: &Path) -> PathBuf {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        place.with_file_name(format!(".{name}.{}", self.suffix))
    }

    /// Creates the temporary, public file for `place`.
    pub fn create(&mut self, place: &Path, tag: T) -> io::Result<D::File> {
        self.create_by(place, tag, |disk, temporary| {
            disk.create(temporary, Mode::Public)
        })
    }

    /// As [`Self::create`], for anything that `make` creates at the path that it gets.
    ///
    /// # Errors
    /// Fails with `make`'s error. Unless the kind is `AlreadyExists`, whatever `make` left is
    /// deleted.
    pub fn create_by<F>(
        &mut self,
        place: &Path,
        tag: T,
        make: impl FnOnce(&D, &Path) -> io::Result<F>,
    ) -> io::Result<F> {
        let temporary = self.temporary(place);
        let made = make(&self.disk, &temporary);
        match &made {
            Ok(_made) => self.steps.push_back(Step {
                tag,
                temporary: Some(temporary),
                place: place.to_owned(),
            }),
            // Another run's file of the same name, or one that already waits.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => {
                // If it can't be deleted, it is hidden and cleared at the next start.
                self.disk.remove_all(&temporary).ok();
            }
        }
        made
    }

    /// Deletes the file or folder at `place` when its turn comes. A missing one is not an error.
    pub fn retire(&mut self, place: PathBuf, tag: T) {
        self.steps.push_back(Step {
            tag,
            temporary: None,
            place,
        });
    }

    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Drops the steps after the first `len`, and deletes their temporary files.
    pub fn truncate(&mut self, len: usize) {
        for step in self.steps.iter().skip(len) {
            step.discard(&self.disk);
        }
        self.steps.truncate(len);
    }

    /// The places of all steps, in order.
    pub fn places(&self) -> impl Iterator<Item = &Path> {
        self.steps.iter().map(|step| step.place.as_path())
    }

    /// Sorts the steps by a key of their tags. Equal ones keep their order.
    pub fn sort_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.steps
            .make_contiguous()
            .sort_by_key(|step| key(&step.tag));
    }

    pub fn next_tag(&self) -> Option<&T> {
        self.steps.front().map(|step| &step.tag)
    }

    /// Takes the next step. `None` if no step remains. If the place already has a file with the
    /// same bytes, that file stays, and the new one is deleted.
    pub fn put_next(&mut self) -> Option<Put<T>> {
        let step = self.steps.pop_front()?;
        let (doing, result) = match &step.temporary {
            Some(temporary) => ("renaming", self.put(temporary, &step.place)),
            None => ("removing", self.disk.remove_all(&step.place)),
        };
        let result = match (&step.temporary, result) {
            (None, Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            (_, result) => result,
        };
        if result.is_err() {
            step.discard(&self.disk);
        }
        Some(Put {
            tag: step.tag,
            place: step.place,
            doing,
            result,
        })
    }

    /// A place with the same bytes keeps its file. A web server's `ETag` is made of a file's time
    /// and size, so readers know that nothing has changed.
    fn put(&self, temporary: &Path, place: &Path) -> io::Result<()> {
        // If comparing or deleting fails, the file is replaced.
        let is_same = self.is_same(temporary, place).unwrap_or(false);
        if is_same && self.disk.remove_all(temporary).is_ok() {
            return Ok(());
        }
        self.disk.rename(temporary, place)
    }

    fn is_same(&self, one: &Path, other: &Path) -> io::Result<bool> {
        let (mut other, other_bytes) = self.disk.open(other)?;
        let (mut one, mut left) = self.disk.open(one)?;
        if left != other_bytes {
            return Ok(false);
        }
        let (mut chunk, mut other_chunk) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        while left > 0 {
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            chunk.truncate(length);
            other_chunk.truncate(length);
            one.read_exact(&mut chunk)?;
            other.read_exact(&mut other_chunk)?;
            if chunk != other_chunk {
                return Ok(false);
            }
            left = left.saturating_sub(u64::try_from(length).unwrap_or(left));
        }
        Ok(true)
    }
}

impl<T> Step<T> {
    fn discard(&self, disk: &impl Disk) {
        if let Some(temporary) = &self.temporary {
            // If it can't be deleted, it is hidden and cleared at the next start.
            disk.remove_all(temporary).ok();
        }
    }
}

impl<D: Disk, T> Drop for Waiting<D, T> {
    fn drop(&mut self) {
        self.truncate(0);
    }
}

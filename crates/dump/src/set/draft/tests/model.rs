use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use files::{Disk, Mode};
use store::VersionCount;

use super::*;

/// How the model disk fails at its n-th call, with the system's error number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fails {
    Once(i32),
    /// That call and all later ones fail, until the disk is repaired, or because the process is
    /// dead.
    FromThenOn(i32),
}

/// A disk in memory that knows what a power cut would leave: contents as of their last sync, and
/// names as of the folder's last sync plus any number of the renames after it. Created folders
/// always remain.
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
pub(super) struct ModelDisk(Arc<Mutex<Model>>);

#[derive(Debug)]
pub(super) struct ModelFile {
    disk: ModelDisk,
    content: usize,
}

/// Lines of the inserted rows, and the counts that SQL would return.
#[derive(Debug)]
pub(super) struct ModelTable {
    file: ModelFile,
    counts: BTreeMap<(Option<String>, Option<String>), u64>,
}

pub(super) struct ModelReader {
    disk: ModelDisk,
    content: usize,
    at: usize,
}

pub(super) fn folder() -> &'static Path {
    Path::new("/public")
}

impl ModelDisk {
    fn model(&self) -> MutexGuard<'_, Model> {
        self.0.lock().unwrap()
    }

    /// Makes it fail from its n-th call on.
    pub(super) fn fail_at(&self, at: u32, fails: Fails) {
        let mut model = self.model();
        model.calls = 0;
        model.fails_at = Some((at, fails));
    }

    /// From now on nothing fails.
    pub(super) fn mend(&self) {
        self.model().fails_at = None;
    }

    pub(super) fn calls(&self) -> u32 {
        self.model().calls
    }

    fn call(&self) -> io::Result<()> {
        let mut model = self.model();
        model.calls += 1;
        let failed = |number| Err(io::Error::from_raw_os_error(number));
        match model.fails_at {
            Some((at, Fails::Once(number))) if model.calls == at => failed(number),
            Some((at, Fails::FromThenOn(number))) if model.calls >= at => failed(number),
            Some(_) | None => Ok(()),
        }
    }

    fn change(&self, path: &Path, content: Option<usize>) {
        let mut model = self.model();
        match content {
            Some(content) => model.names.insert(path.to_owned(), content),
            None => model.names.remove(path),
        };
        model.unsynced_changes.push((path.to_owned(), content));
    }

    /// What readers see while the machine runs: the files by their places, and the number of hidden
    /// files.
    pub(super) fn live(&self) -> (BTreeMap<String, Vec<u8>>, usize) {
        let model = self.model();
        let mut files = BTreeMap::new();
        for (path, content) in &model.names {
            let place = path.strip_prefix(folder()).unwrap().to_str().unwrap();
            if !place.rsplit('/').next().unwrap().starts_with('.') {
                files.insert(place.to_owned(), model.contents[*content].live.clone());
            }
        }
        let hidden = model.names.len() - files.len();
        (files, hidden)
    }

    /// The disks that a power cut could leave: one for each number of name changes that reached the
    /// disk, over all folders in order, and for each folder while no change of the others did.
    pub(super) fn after_power_cut(&self) -> Vec<Self> {
        let model = self.model();
        let changes = &model.unsynced_changes;
        let folders: BTreeSet<_> = changes.iter().map(|(path, _)| path.parent()).collect();
        let mut outcomes = vec![model.synced_names.clone()];
        for only in folders.into_iter().map(Some).chain([None]) {
            let mut names = model.synced_names.clone();
            let reaching = |path: &Path| only.is_none_or(|folder| path.parent() == folder);
            for (path, content) in changes.iter().filter(|(path, _)| reaching(path)) {
                match content {
                    Some(content) => names.insert(path.clone(), *content),
                    None => names.remove(path),
                };
                outcomes.push(names.clone());
            }
        }
        let contents = || {
            let kept = |content: &Content| Content {
                live: content.synced.clone(),
                synced: content.synced.clone(),
            };
            model.contents.iter().map(kept).collect()
        };
        outcomes
            .into_iter()
            .map(|names| {
                Self(Arc::new(Mutex::new(Model {
                    contents: contents(),
                    synced_names: names.clone(),
                    names,
                    ..Model::default()
                })))
            })
            .collect()
    }
}

impl Disk for ModelDisk {
    type File = ModelFile;
    type Reader = ModelReader;

    fn make_folder(&self, _path: &Path) -> io::Result<()> {
        self.call()
    }

    fn create(&self, path: &Path, _mode: Mode) -> io::Result<ModelFile> {
        self.call()?;
        let content = {
            let mut model = self.model();
            model.contents.push(Content::default());
            model.contents.len() - 1
        };
        self.change(path, Some(content));
        Ok(ModelFile {
            disk: self.clone(),
            content,
        })
    }

    fn open(&self, path: &Path) -> io::Result<(ModelReader, u64)> {
        self.call()?;
        let model = self.model();
        let missing = io::ErrorKind::NotFound;
        let content = *model.names.get(path).ok_or(missing)?;
        let bytes = u64::try_from(model.contents[content].live.len()).unwrap();
        let disk = self.clone();
        Ok((
            ModelReader {
                disk,
                content,
                at: 0,
            },
            bytes,
        ))
    }

    fn sync_file(&self, file: &ModelFile) -> io::Result<()> {
        self.call()?;
        let content = &mut self.model().contents[file.content];
        content.synced = content.live.clone();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?;
        let content = self.model().names[from];
        self.change(to, Some(content));
        self.change(from, None);
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.call()?;
        let mut model = self.model();
        let changes = std::mem::take(&mut model.unsynced_changes);
        for (path, content) in changes {
            if path.parent() != Some(folder) {
                model.unsynced_changes.push((path, content));
            } else if let Some(content) = content {
                model.synced_names.insert(path, content);
            } else {
                model.synced_names.remove(&path);
            }
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        self.change(path, None);
        Ok(())
    }

    fn remove_all(&self, path: &Path) -> io::Result<()> {
        self.remove(path)
    }

    fn list(&self, folder: &Path, names_max: usize) -> io::Result<Vec<OsString>> {
        self.call()?;
        let model = self.model();
        let here = model
            .names
            .keys()
            .filter(|path| path.parent() == Some(folder));
        Ok(here
            .take(names_max)
            .filter_map(|path| path.file_name().map(OsString::from))
            .collect())
    }
}

impl TableDisk for ModelDisk {
    type Table = ModelTable;

    fn create_table(&self, path: &Path) -> io::Result<ModelTable> {
        let file = self.create(path, Mode::Public)?;
        // SQLite opens the created file.
        self.call()?;
        Ok(ModelTable {
            file,
            counts: BTreeMap::new(),
        })
    }
}

impl Write for ModelFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.call()?;
        // Writes half of it first, so that a crash can leave an incomplete file.
        let taken = if bytes.len() > 64 {
            bytes.len() / 2
        } else {
            bytes.len()
        };
        self.disk.model().contents[self.content]
            .live
            .extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl io::Read for ModelReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.disk.call()?;
        let model = self.disk.model();
        let left = &model.contents[self.content].live[self.at..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.at += count;
        Ok(count)
    }
}

impl Table for ModelTable {
    fn push(&mut self, row: &ListedRow) -> io::Result<()> {
        let instance = row.instance.clone();
        let key = (instance.software, instance.version);
        *self.counts.entry(key).or_default() += 1;
        writeln!(self.file, "{}", row.host)
    }

    fn finish(self, visit: &mut dyn FnMut(VersionCount<'_>)) -> io::Result<()> {
        for ((software, version), instances) in &self.counts {
            visit(VersionCount {
                software: software.as_deref(),
                version: version.as_deref(),
                instances: *instances,
            });
        }
        self.file.disk.sync_file(&self.file)
    }
}

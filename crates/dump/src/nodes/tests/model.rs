use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::rc::Rc;

use super::*;

/// How the model disk fails at its n-th call, with the number that the system would give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fails {
    /// That call alone.
    Once(i32),
    /// That call and all after it, until somebody mends the disk, or because the process is dead.
    FromThenOn(i32),
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
pub(super) struct ModelDisk(Rc<RefCell<Model>>);

pub(super) struct ModelFile {
    disk: ModelDisk,
    content: usize,
}

pub(super) fn folder() -> &'static Path {
    Path::new("/public")
}

impl ModelDisk {
    /// A disk on which `names` are published.
    pub(super) fn holding(names: &[&str]) -> Self {
        let disk = Self::default();
        let (swap, _) = stage(disk.clone(), folder(), feed(names)).unwrap();
        swap.publish().unwrap();
        disk.0.borrow_mut().calls = 0;
        disk
    }

    /// From its n-th call on it is out of order.
    pub(super) fn fail_at(&self, at: u32, fails: Fails) {
        self.0.borrow_mut().fails_at = Some((at, fails));
    }

    /// From now on nothing fails.
    pub(super) fn mend(&self) {
        self.0.borrow_mut().fails_at = None;
    }

    pub(super) fn calls(&self) -> u32 {
        self.0.borrow().calls
    }

    fn call(&self) -> io::Result<()> {
        let mut model = self.0.borrow_mut();
        model.calls += 1;
        let failed = |number| Err(io::Error::from_raw_os_error(number));
        match model.fails_at {
            Some((at, Fails::Once(number))) if model.calls == at => failed(number),
            Some((at, Fails::FromThenOn(number))) if model.calls >= at => failed(number),
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
    pub(super) fn live(&self, name: &str) -> Vec<u8> {
        let model = self.0.borrow();
        model.contents[model.names[&folder().join(name)]]
            .live
            .clone()
    }

    /// The disks that a power cut could leave, one for each number of changes of names that reached the disk.
    pub(super) fn after_power_cut(&self) -> Vec<Self> {
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
                Self(Rc::new(RefCell::new(Model {
                    contents: contents(),
                    synced_names: names.clone(),
                    names,
                    ..Model::default()
                })))
            })
            .collect()
    }

    pub(super) fn hidden_files(&self) -> usize {
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

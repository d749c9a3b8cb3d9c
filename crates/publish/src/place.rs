//! The public folder: one link to the published tree, and what must not stay next to it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use files::Disk;

use crate::error::TreeError;

/// The symbolic link to the published tree. It is relative, since the volume is mounted at another
/// path in other containers.
const LINK: &str = "current";

/// The link until it replaces the former one.
const NEW_LINK: &str = ".current.new";

/// How the names of trees begin.
pub(crate) const TREE_START: &str = "tree.";

/// The tree into which files of the former layout are moved.
const ADOPTED: &str = "tree.former";

/// Names read in one folder.
pub(crate) const NAMES_MAX: usize = 100_000;

/// What earlier versions published in the public folder itself, each with or without a `.gz`. They
/// must not stay there: another web server might go on serving hosts that opt out. `data` is last,
/// since it shows that the others are ours.
const FORMER_LAYOUT: [&str; 27] = [
    "404.html",
    "429.html",
    "card.png",
    "copy.js",
    "data.html",
    "favicon.ico",
    "icon.svg",
    "index.html",
    "list.js",
    "list.txt",
    "name.js",
    "nodes.json",
    "noscript.css",
    "notify.js",
    "owners.html",
    "owners.js",
    "plot.js",
    "push.js",
    "robots.txt",
    "rows.js",
    "sha256.js",
    "sitemap.xml",
    "software",
    "style.css",
    "why",
    "why.js",
    "data",
];

/// A file that no operator would have put there.
const FORMER_INDEX: &str = "data/index.json";

/// The folder of the published files in the public folder. It is missing until something is
/// published.
pub fn current(public: &Path) -> PathBuf {
    public.join(LINK)
}

pub(crate) fn published(public: &Path) -> Option<PathBuf> {
    let name = fs::read_link(current(public)).ok()?;
    Some(public.join(name)).filter(|tree| tree.is_dir())
}

/// Makes a tree of files that an earlier version published, and deletes what a crash left. Returns
/// the number of deleted files and folders. Call it at start: it also tests the folder.
pub fn tidy(public: &Path) -> Result<u32, TreeError> {
    adopt(&Disk::SYSTEM, public)?;
    clear(&Disk::SYSTEM, public)
}

/// Moves files of the former layout into a tree, and publishes it: the next one continues their
/// changes. A crash in between is mended by the next call.
pub(crate) fn adopt(disk: &Disk, public: &Path) -> Result<(), TreeError> {
    let tree = public.join(ADOPTED);
    let is_begun = tree.is_dir() && published(public).is_none();
    if !is_begun && !public.join(FORMER_INDEX).is_file() {
        return Ok(());
    }
    let names: Vec<String> = FORMER_LAYOUT
        .iter()
        .flat_map(|name| [format!("{name}.gz"), (*name).to_owned()])
        .filter(|name| public.join(name).symlink_metadata().is_ok())
        .collect();
    let failed = |source| TreeError::from_io(public, public, "moving the former files", source);
    let moved = || {
        if published(public).is_some() {
            return names
                .iter()
                .try_for_each(|name| disk.remove_all(&public.join(name)));
        }
        disk.make_folder(&tree)?;
        for name in &names {
            disk.rename(&public.join(name), &tree.join(name))?;
        }
        disk.sync_folder(&tree)?;
        point(disk, public, &tree)?;
        disk.sync_folder(public)
    };
    moved().map_err(failed)
}

/// Lets the link lead to this tree. It is on disk once the folder is synced.
pub(crate) fn point(disk: &Disk, public: &Path, tree: &Path) -> std::io::Result<()> {
    let new = public.join(NEW_LINK);
    match disk.remove(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    disk.symlink(Path::new(tree.file_name().unwrap_or_default()), &new)?;
    disk.rename(&new, &current(public))
}

/// Deletes all trees but the published one.
pub(crate) fn clear(disk: &Disk, public: &Path) -> Result<u32, TreeError> {
    let listed = disk.list(public, NAMES_MAX);
    let names = listed.map_err(|source| TreeError::from_open(public, public, "listing", source))?;
    let published = published(public);
    let stays = published.as_deref().and_then(Path::file_name);
    let stale: Vec<_> = names
        .iter()
        .filter(|name| is_ours(name) && Some(name.as_os_str()) != stays)
        .collect();
    if stale.is_empty() {
        return Ok(0);
    }
    // A power cut must not bring back a link to a tree that is deleted.
    disk.sync_folder(public)
        .map_err(|source| TreeError::from_io(public, public, "syncing the folder", source))?;
    for name in &stale {
        let path = public.join(name);
        disk.remove_all(&path)
            .map_err(|source| TreeError::from_io(public, &path, "removing", source))?;
    }
    Ok(u32::try_from(stale.len()).unwrap_or(u32::MAX))
}

/// A tree, or a file that this or an earlier version had not published yet.
fn is_ours(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        name.starts_with(TREE_START) || (name.starts_with('.') && name.ends_with(".new"))
    })
}

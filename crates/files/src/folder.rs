//! Why a folder can't hold what is written to it: its owner, and its file system.

use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::{getegid, geteuid};

/// File systems over a network or in another process, by the numbers of statfs(2).
const SHARED: [(u64, &str); 7] = [
    (0x6969, "nfs"),
    (0x517B, "smb"),
    (0xFE53_4D42, "smb"),
    (0xFF53_4D42, "cifs"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x00C3_6400, "ceph"),
];

/// What to do about an error in a folder, if its owner or its file system explains it.
pub fn advice(folder: &Path, error: &io::Error) -> Option<String> {
    match error.kind() {
        ErrorKind::PermissionDenied => owner_advice(folder),
        ErrorKind::NotFound | ErrorKind::StorageFull | ErrorKind::ReadOnlyFilesystem => None,
        // Among all others is the lack of locks.
        _ => shared_file_system(folder).map(|kind| {
            format!(
                "it is on a file system of the kind {kind}, which may lack locks: use a local disk"
            )
        }),
    }
}

/// `None` if the folder belongs to this user, or can't be looked at.
fn owner_advice(folder: &Path) -> Option<String> {
    let found = std::fs::metadata(folder).ok()?;
    let owner = format!("{}:{}", found.uid(), found.gid());
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    (found.uid() != user).then(|| {
        format!(
            "{} belongs to {owner}, and this is {user}:{group}: `chown -R {user}:{group}` the folder that is mounted there (with rootless Podman, `podman unshare chown`)",
            folder.display()
        )
    })
}

/// The kind of the file system below `path`, if it may lack locks or shared memory: a network share
/// or a pool over FUSE.
pub fn shared_file_system(path: &Path) -> Option<&'static str> {
    let found = rustix::fs::statfs(path).ok()?;
    // Some platforms' field is signed or narrower.
    shared(found.f_type as u64)
}

fn shared(number: u64) -> Option<&'static str> {
    let low = number & u64::from(u32::MAX);
    let found = SHARED.iter().find(|(kind, _)| *kind == low)?;
    Some(found.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_pools_are_named_and_local_disks_are_not() {
        assert_eq!(shared(0x6969), Some("nfs"));
        // As a signed field of 32 bits arrives.
        assert_eq!(shared(0xFFFF_FFFF_FF53_4D42), Some("cifs"));
        let [ext4, overlay] = [0xEF53, 0x794C_7630];
        assert_eq!((shared(ext4), shared(overlay)), (None, None));
    }

    #[test]
    fn a_folder_of_another_user_comes_with_both_ids() {
        let own = tempfile::tempdir().unwrap();
        assert_eq!(owner_advice(own.path()), None);
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        if user == 0 {
            std::os::unix::fs::chown(own.path(), Some(64_320), Some(64_321)).unwrap();
            let advice = owner_advice(own.path()).unwrap();
            let expect =
                format!("belongs to 64320:64321, and this is 0:{group}: `chown -R 0:{group}`");
            assert!(advice.contains(&expect), "{advice}");
        } else {
            let advice = owner_advice(Path::new("/")).unwrap();
            assert!(advice.contains("belongs to 0:0"), "{advice}");
        }
    }
}

//! The lock of a world's database.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

/// Longest time of a process between fork and exec, and the interval between looks.
const LENT_MAX: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until no process holds the lock, but gives up if one keeps it.
///
/// A test that opens the database itself passes its lock to every process that another test starts
/// at that moment, from its fork to its exec. A daemon that starts then would refuse.
pub(super) async fn until_free(path: &Path) -> anyhow::Result<()> {
    let Ok(lock) = std::fs::metadata(path) else {
        return Ok(());
    };
    let end = Instant::now() + LENT_MAX;
    let inode = format!(":{} ", lock.ino());
    while std::fs::read_to_string("/proc/locks")?.contains(&inode) && Instant::now() < end {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

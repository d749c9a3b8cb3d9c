//! Reads the published list continuously, like visitors of nginx: it is whole at every moment.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::task::JoinHandle;

const VISIT_EVERY: Duration = Duration::from_millis(5);

/// Both published files; `None` before the first dump.
pub(crate) fn whole(public: &Path) -> anyhow::Result<Option<(Vec<String>, Vec<String>)>> {
    let Ok(plain) = std::fs::read(public.join("current/nodes.json")) else {
        return Ok(None);
    };
    let packed = std::fs::read(public.join("current/nodes.json.gz"))
        .context("a plain list without a gzipped one")?;
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice())
        .read_to_end(&mut unpacked)
        .context("nodes.json.gz is not whole")?;
    Ok(Some((parsed(&plain)?, parsed(&unpacked)?)))
}

fn parsed(bytes: &[u8]) -> anyhow::Result<Vec<String>> {
    let text = || String::from_utf8_lossy(bytes).into_owned();
    ensure!(bytes.ends_with(b"]\n"), "no end: {}", text());
    let names: Vec<String> = serde_json::from_slice(bytes).with_context(text)?;
    let sorted: BTreeSet<_> = names.iter().cloned().collect();
    ensure!(names.iter().eq(&sorted), "not sorted: {}", text());
    Ok(names)
}

/// Trees that are not published, yet or any more.
pub(crate) fn half_written(public: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut names = super::names_in(public)?;
    let published = std::fs::read_link(public.join("current")).unwrap_or_default();
    names.retain(|name| name.starts_with("tree.") && Path::new(name) != published);
    Ok(names)
}

/// A visitor that reads the list continuously.
#[derive(Debug)]
pub(crate) struct Visitor {
    task: JoinHandle<anyhow::Result<()>>,
    visits: Arc<AtomicU64>,
}

impl Visitor {
    pub(crate) fn of(public: PathBuf) -> Self {
        let visits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&visits);
        let task = tokio::spawn(async move {
            let mut visit = tokio::time::interval(VISIT_EVERY);
            loop {
                visit.tick().await;
                if whole(&public)?.is_some() {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { task, visits }
    }

    /// Number of lists it saw, all of them whole.
    pub(crate) async fn leaves(self) -> anyhow::Result<u64> {
        if self.task.is_finished() {
            self.task.await??;
        } else {
            self.task.abort();
        }
        Ok(self.visits.load(Ordering::Relaxed))
    }
}

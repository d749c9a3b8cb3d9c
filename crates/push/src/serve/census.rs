//! Notifies subscribers of changes in the published list. Reads the published files only.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::endpoint::{Refusal, message};
use crate::news::seal::{SealError, Sender, seal};
use crate::news::section::SectionError;
use crate::news::text::Text;
use crate::news::{Filter, Section, Subscription};
use crate::notification::TOPIC_CHARS_MAX;
use crate::storage::StorageError;
use crate::storage::sqlite::Sqlite;

use super::routes::Request;
use super::service::Service;

/// The broadcast that has the newest section as its version.
pub const BROADCAST: &str = "census/instances";

/// Name under which the section of the last notification is stored.
const LAST_TOLD: &str = "last_told";

/// Between two looks at the published files. Lists come every few hours.
pub const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Seconds that a notification waits for a browser that is not running.
const TTL: &str = "86400";

/// Names in the folder of changes that are looked at: a file a day, each with its compressed form.
const NAMES_MAX: usize = 100_000;

/// The census's side of the service.
#[derive(Debug)]
pub struct Census {
    /// Subscriptions, and the section of the last notification.
    pub storage: Arc<Sqlite>,
    /// Signs messages.
    pub sender: Sender,
    /// The published folder of changes.
    pub changes: PathBuf,
}

/// Subscribers were not notified.
#[derive(Debug, Error)]
enum NewsError {
    #[error("the folder of changes {0}: {1}")]
    Folder(PathBuf, #[source] io::Error),
    #[error("the changes in {0}: {1}")]
    Changes(PathBuf, #[source] SectionError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// Looks for a new list every [`LOOK_EVERY`] and notifies subscribers, until `shutdown`. Without a
/// census, it only waits for `shutdown`.
pub async fn tell(service: Arc<Service>, every: Duration, shutdown: CancellationToken) {
    let Some(census) = service.census.clone() else {
        return shutdown.cancelled().await;
    };
    let mut turn = tokio::time::interval(every);
    let mut last_error = String::new();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = turn.tick() => {}
        }
        match look(&service, &census).await {
            Ok(()) => last_error.clear(),
            Err(error) => {
                let error = error.to_string();
                // The same trouble every half minute is one line of the log.
                if error != last_error {
                    tracing::error!(%error, "subscribers were not notified of the newest list");
                }
                last_error = error;
            }
        }
    }
}

async fn look(service: &Service, census: &Arc<Census>) -> Result<(), NewsError> {
    let folder = census.changes.clone();
    let read = tokio::task::spawn_blocking(move || newest(&folder)).await;
    let Some(section) =
        read.map_err(|error| NewsError::Folder(census.changes.clone(), io::Error::other(error)))??
    else {
        return Ok(());
    };
    let version = section.sha256.clone();
    let kept = Arc::clone(census);
    let last = service
        .storage
        .call(move |_| kept.storage.last_told())
        .await?;
    // New subscribers get no notification about earlier lists.
    let notified = match last.as_ref().is_some_and(|last| *last != version) {
        true => tell_all(service, census, &section).await,
        false => Ok(()),
    };
    // Clients of the broadcast learn of the list also when notifications fail.
    service.broadcast([(BROADCAST.to_owned(), version.clone())].into());
    notified?;
    if last.as_ref() != Some(&version) {
        let kept = Arc::clone(census);
        let stored = service
            .storage
            .call(move |_| kept.storage.replace_secret(LAST_TOLD, version.as_bytes()));
        stored.await?;
    }
    Ok(())
}

/// The newest section in a folder of changes. Files are named by their days.
fn newest(folder: &Path) -> Result<Option<Section>, NewsError> {
    let failed = |error| NewsError::Folder(folder.to_owned(), error);
    let mut last: Option<PathBuf> = None;
    let names = match std::fs::read_dir(folder) {
        Ok(names) => names,
        // Nothing is published yet, or there is no census.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    for entry in names.take(NAMES_MAX) {
        let path = entry.map_err(failed)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "ndjson")
        {
            last = last.max(Some(path));
        }
    }
    let Some(path) = last else {
        return Ok(None);
    };
    let file = File::open(&path).map_err(failed)?;
    Section::last(BufReader::new(file)).map_err(|error| NewsError::Changes(path, error))
}

async fn tell_all(
    service: &Service,
    census: &Arc<Census>,
    section: &Section,
) -> Result<(), NewsError> {
    let (mut told, mut ended) = (0_u64, 0_u64);
    let mut after = 0;
    loop {
        let kept = Arc::clone(census);
        let page = service
            .storage
            .call(move |_| kept.storage.subscriptions_after(after))
            .await?;
        let Some((last, _)) = page.last() else {
            break;
        };
        after = *last;
        for (_, subscription) in page {
            let Some(text) = Text::of(section, &subscription.filter) else {
                continue;
            };
            match tell_one(service, census, &subscription, &text).await? {
                Told::Taken => {
                    service.meters.notified.add_one();
                    told = told.saturating_add(1);
                }
                Told::Ended => {
                    service.meters.ended.add_one();
                    let kept = Arc::clone(census);
                    let removed = service
                        .storage
                        .call(move |_| kept.storage.unsubscribe(&subscription.endpoint, None));
                    removed.await?;
                    ended = ended.saturating_add(1);
                }
                Told::Failed => service.meters.failed.add_one(),
            }
        }
    }
    tracing::info!(told, ended, "subscribers were notified of the newest list");
    Ok(())
}

/// Result of one notification.
enum Told {
    Taken,
    /// The subscription is gone for good.
    Ended,
    Failed,
}

async fn tell_one(
    service: &Service,
    census: &Census,
    subscription: &Subscription,
    text: &Text,
) -> Result<Told, NewsError> {
    let words = serde_json::to_vec(text).unwrap_or_default();
    let body = match seal(&words, subscription) {
        Ok(body) => body,
        // Keys are checked at subscription, and texts are bounded: the subscription can't work.
        Err(_) => return Ok(Told::Ended),
    };
    let origin = &service.settings.origin;
    let Some((version, token)) = subscription
        .endpoint
        .strip_prefix(origin.as_str())
        .and_then(|path| path.strip_prefix("/wpush/"))
        .and_then(|path| path.split_once('/'))
    else {
        // The service had another address then.
        return Ok(Told::Ended);
    };
    let authorization = census.sender.authorization(origin, service.now_s())?;
    let topic = topic(&subscription.filter);
    let request = Request {
        version,
        token,
        authorization: Some(&authorization),
        headers: message::Headers {
            ttl: Some(TTL),
            topic: Some(&topic),
            content_encoding: Some("aes128gcm"),
            encryption: None,
            crypto_key: None,
        },
    };
    Ok(
        match service.take(request, async { Ok(body.into()) }).await {
            Ok(_) => Told::Taken,
            Err(
                Refusal::BadToken | Refusal::NoSubscription | Refusal::UserGone | Refusal::NoUser,
            ) => Told::Ended,
            Err(_) => Told::Failed,
        },
    )
}

/// A new notification replaces an unread one with the same filter.
fn topic(filter: &Filter) -> String {
    let name = serde_json::to_vec(filter).unwrap_or_default();
    let mut topic = BASE64URL_NOPAD.encode(&Sha256::digest(name));
    topic.truncate(TOPIC_CHARS_MAX);
    topic
}

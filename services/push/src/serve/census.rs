//! Notifies subscribers of changes in the published list. Reads the published files only.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::endpoint::{Address, Refusal, message};
use crate::notification::{TOPIC_CHARS_MAX, Topic};
use crate::notify::seal::{SealError, Sender, seal};
use crate::notify::section::SectionError;
use crate::notify::text::Text;
use crate::notify::{Filter, Section, Subscription};
use crate::remote::{Endpoint, Remote, TTL_SECONDS};
use crate::storage::StorageError;
use crate::storage::sqlite::{LAST_TOLD, NEWEST, Sqlite};

use super::routes::Request;
use super::service::Service;

/// The broadcast whose version is the newest section.
pub const BROADCAST: &str = "census/instances";

/// Interval between two looks at the published files. New lists come every few hours.
pub const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Seconds that a notification waits for a browser that is not running.
const TTL: &str = "86400";

/// Most names that are read in the folder of changes: a file per day, each with its compressed
/// form.
const NAMES_MAX: usize = 100_000;

#[derive(Debug)]
pub struct Census {
    pub sender: Sender,
    pub changes: PathBuf,
    /// Other push services. Without names, only this service's endpoints are allowed.
    pub remote: Remote,
}

impl Census {
    /// Whether an endpoint is at another push service to which messages may go.
    pub(super) fn is_elsewhere(&self, endpoint: &str) -> bool {
        Endpoint::parse(endpoint)
            .is_some_and(|endpoint| self.remote.services.covers(&endpoint.host))
    }
}

#[derive(Debug, Error)]
pub(super) enum NotifyError {
    #[error("the folder of changes {0}: {1}")]
    Folder(PathBuf, #[source] io::Error),
    #[error("the changes in {0}: {1}")]
    Changes(PathBuf, #[source] SectionError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// Notifies subscribers of each new list. `newest` has the newest one, once those here are notified
/// and those elsewhere are owed a message. Until then it has none.
pub(super) async fn keep_looking(
    service: &Service,
    census: &Census,
    every: Duration,
    newest: &watch::Sender<Option<Arc<Section>>>,
    shutdown: &CancellationToken,
) {
    let mut turn = tokio::time::interval(every);
    let mut last_error = String::new();
    loop {
        let look = async {
            turn.tick().await;
            look(service, census, newest).await
        };
        // If the service stops here, all are notified again after its next start.
        let looked = tokio::select! {
            () = shutdown.cancelled() => return,
            looked = look => looked,
        };
        match looked {
            Ok(()) => last_error.clear(),
            Err(error) => {
                let error = error.to_string();
                // Repeated failures, every half minute, are logged once.
                if error != last_error {
                    tracing::error!(%error, "subscribers were not notified of the newest list");
                }
                last_error = error;
            }
        }
    }
}

async fn look(
    service: &Service,
    census: &Census,
    newest: &watch::Sender<Option<Arc<Section>>>,
) -> Result<(), NotifyError> {
    let last = service.storage.call(Sqlite::last_told).await?;
    let (folder, since) = (census.changes.clone(), last.clone());
    let read = tokio::task::spawn_blocking(move || read_newest(&folder, since.as_deref())).await;
    let Some(section) = read
        .map_err(|error| NotifyError::Folder(census.changes.clone(), io::Error::other(error)))??
    else {
        return Ok(());
    };
    let section = Arc::new(section);
    let version = section.sha256.clone();
    // No message about a former list is posted any more.
    newest.send_if_modified(|known| {
        let is_former = known.as_ref().is_some_and(|known| known.sha256 != version);
        if is_former {
            *known = None;
        }
        is_former
    });
    // New subscribers get no notification about earlier lists.
    let notified = match last.as_ref().is_some_and(|last| *last != version) {
        true => tell_all(service, census, &section).await,
        false => Ok(()),
    };
    let (known, is_told) = (version.clone(), notified.is_ok());
    let stored = service.storage.call(move |s| {
        for (name, is_due) in [(NEWEST, true), (LAST_TOLD, is_told)] {
            if is_due && s.section(name)?.as_ref() != Some(&known) {
                s.replace_secret(name, known.as_bytes())?;
            }
        }
        Ok(())
    });
    let stored = stored.await;
    // Clients of the broadcast learn of the list even if notifications fail.
    service.broadcast([(BROADCAST.to_owned(), version)].into());
    notified?;
    stored?;
    newest.send_if_modified(|known| {
        let is_new = known.is_none();
        if is_new {
            *known = Some(section);
        }
        is_new
    });
    Ok(())
}

/// The changes in a folder since a section, or the newest section alone if `since` is in neither of
/// the last two files. Files are named by their days.
fn read_newest(folder: &Path, since: Option<&str>) -> Result<Option<Section>, NotifyError> {
    let failed = |error| NotifyError::Folder(folder.to_owned(), error);
    let (mut last, mut former): (Option<PathBuf>, Option<PathBuf>) = (None, None);
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
            let path = Some(path);
            former = former.max(last.clone().min(path.clone()));
            last = last.max(path);
        }
    }
    let Some(path) = last else {
        return Ok(None);
    };
    let file = BufReader::new(File::open(&path).map_err(failed)?);
    let sections = match former {
        Some(former) => {
            let former = BufReader::new(File::open(former).map_err(failed)?);
            Section::after(since, former.chain(file))
        }
        None => Section::after(since, file),
    };
    sections.map_err(|error| NotifyError::Changes(path, error))
}

async fn tell_all(
    service: &Service,
    census: &Census,
    section: &Section,
) -> Result<(), NotifyError> {
    let (mut told, mut ended, mut remote) = (0_u64, 0_u64, 0_u64);
    let mut after = 0;
    loop {
        let read = move |s: &Sqlite| s.subscriptions_after(after);
        let page = service.storage.call(read).await?;
        let Some((last, _)) = page.last() else {
            break;
        };
        after = *last;
        let mut pending = Vec::new();
        for (id, subscription) in page {
            let outcome = match due(service, &subscription, section).await? {
                Due::Text(text) => tell_one(service, census, &subscription, &text).await?,
                Due::Nothing => continue,
                Due::Ended => Notified::Ended,
            };
            match outcome {
                Notified::Taken => {
                    service.meters.notified.inc();
                    told = told.saturating_add(1);
                }
                Notified::Remote => {
                    pending.push(id);
                    remote = remote.saturating_add(1);
                }
                Notified::Ended => {
                    service.meters.ended.inc();
                    let end = move |s: &Sqlite| s.unsubscribe(&subscription.endpoint, None);
                    service.storage.call(end).await?;
                    ended = ended.saturating_add(1);
                }
                Notified::Failed => service.meters.failed.inc(),
            }
        }
        if !pending.is_empty() {
            let sha256 = section.sha256.clone();
            let until_s = service.now_s().saturating_add(TTL_SECONDS);
            let note = move |s: &Sqlite| s.enqueue(&pending, &sha256, until_s);
            service.storage.call(note).await?;
        }
    }
    // A push service that was busy has them yet to take, and this list may change nothing.
    let sha256 = section.sha256.clone();
    let carry_over = move |s: &Sqlite| s.carry_over(&sha256);
    service.storage.call(carry_over).await?;
    if [told, ended, remote].iter().any(|count| *count > 0) {
        tracing::info!(
            told,
            ended,
            remote,
            "subscribers were notified of the newest list"
        );
    }
    Ok(())
}

enum Notified {
    Taken,
    /// The message is to be posted to another push service.
    Remote,
    /// The subscription is gone for good.
    Ended,
    Failed,
}

enum Due {
    Text(Text),
    Nothing,
    /// The subscription is gone for good.
    Ended,
}

/// The text of a section for a subscription. A message that waits at this service is replaced at
/// each new list if it may name a host that left since (I7).
async fn due(
    service: &Service,
    Subscription {
        endpoint, filter, ..
    }: &Subscription,
    section: &Section,
) -> Result<Due, NotifyError> {
    let text = Text::of(section, filter);
    if !service.is_own(endpoint) {
        return Ok(text.map_or(Due::Nothing, Due::Text));
    }
    let Some(Address { uaid, channel, .. }) = service.stored_address(endpoint) else {
        return Ok(Due::Ended);
    };
    let names_others = matches!(filter, Filter::Software(_));
    let replaced = names_others
        .then(|| Topic::try_from(topic(filter)).ok())
        .flatten();
    let found = service.storage.call(move |storage| {
        let waited = match replaced {
            Some(topic) => storage.withdraw_topic(uaid, channel, &topic)?,
            None => false,
        };
        Ok((storage.channel_room(uaid, channel)?, waited))
    });
    let (room, waited) = found.await?;
    if room.is_none() {
        return Ok(Due::Ended);
    }
    let again = || waited.then(|| Text::of_recent(section, filter)).flatten();
    Ok(text.or_else(again).map_or(Due::Nothing, Due::Text))
}

async fn tell_one(
    service: &Service,
    census: &Census,
    subscription: &Subscription,
    text: &Text,
) -> Result<Notified, NotifyError> {
    let origin = &service.settings.origin;
    let Some(address) = service.stored_address(&subscription.endpoint) else {
        // Otherwise the service had another address then, or its settings allowed another push
        // service.
        return Ok(match census.is_elsewhere(&subscription.endpoint) {
            true => Notified::Remote,
            false => Notified::Ended,
        });
    };
    let words = serde_json::to_vec(text).unwrap_or_default();
    let body = match seal(&words, subscription) {
        Ok(body) => body,
        // Keys are checked at subscription, and texts are bounded, so this subscription can't work.
        Err(_) => return Ok(Notified::Ended),
    };
    let authorization = census.sender.authorization(origin, service.now_s())?;
    let topic = topic(&subscription.filter);
    let Ok(iv) = service.random() else {
        return Ok(Notified::Failed);
    };
    let token = address.token(&service.settings.keys, service.fernet_now_s(), &iv);
    let request = Request {
        version: address.version().as_str(),
        token: &token,
        authorization: Some(&authorization),
        headers: message::Headers {
            ttl: Some(TTL),
            topic: Some(&topic),
            content_encoding: Some("aes128gcm"),
            encryption: None,
            crypto_key: None,
        },
        // A message in memory could not be withdrawn.
        is_own: true,
    };
    Ok(
        match service.take(request, async { Ok(body.into()) }).await {
            Ok(_) => Notified::Taken,
            Err(
                Refusal::BadToken
                | Refusal::NoSubscription
                | Refusal::UserGone
                | Refusal::NoUser
                // The endpoint is for another sender's key.
                | Refusal::Unauthorized(_),
            ) => Notified::Ended,
            Err(_) => Notified::Failed,
        },
    )
}

/// A new notification replaces an unread one with the same filter.
pub(super) fn topic(filter: &Filter) -> String {
    let name = serde_json::to_vec(filter).unwrap_or_default();
    let mut topic = BASE64URL_NOPAD.encode(&Sha256::digest(name));
    topic.truncate(TOPIC_CHARS_MAX);
    topic
}

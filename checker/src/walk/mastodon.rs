//! Mastodon's API, which Pleroma, Akkoma, Friendica and others speak too.
//!
//! Reads `timelines/public`, `statuses/ID/context`, `statuses/ID/favourited_by` and
//! `accounts/ID/statuses` (docs.joinmastodon.org), and gives a [`Reading`]. Rejects posts that are
//! not public, and accounts with `discoverable` or `indexable` false, `noindex` true, or a marker
//! in their profile, with everything that they post and boost.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess};
use serde_json::Value;

use super::account::refuses;
use super::ask::{Left, Stop, document};
use super::id::Id;
use super::plan::Step;
use super::reading::{Account, ELEMENTS_MAX, Post, Reading, origin};
use crate::documents::json::{List, Members, Object, Scalar, Taken, members, parse_document};
use crate::documents::nodeinfo::About;
use crate::fetch::Fetcher;
use crate::peers::peer_name;

const FEED: &str = "/api/v1/timelines/public?limit=40";
const LOCAL_FEED: &str = "/api/v1/timelines/public?limit=40&local=true";
const INSTANCE: &str = "/api/v2/instance";

/// The first version that states which feeds it shows, in `configuration.timelines_access`.
const SAYS_ACCESS_SINCE: (u32, u32) = (4, 5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feed {
    /// All public posts that the server knows; its own posts if those are not shown.
    All,
    /// Only its own posts: the server states that it shows no others.
    Local,
}

/// A server that speaks Mastodon's API.
#[derive(Debug)]
pub(super) struct Mastodon {
    feed: Feed,
}

impl Mastodon {
    /// Asks a server which feeds it shows, if its version states that.
    pub(super) async fn of(fetcher: &mut Fetcher, about: &About) -> Result<Self, Stop> {
        let all = Self { feed: Feed::All };
        if about.software() != "mastodon" || !says_access(about.instance.version.as_deref()) {
            return Ok(all);
        }
        match document(fetcher, INSTANCE, None).await {
            Ok((instance, _)) => match read_access(&instance) {
                Access { remote: true, .. } => Ok(all),
                Access { local: true, .. } => Ok(Self { feed: Feed::Local }),
                Access { .. } => Err(Stop::Closed),
            },
            Err(stop @ (Stop::Unresponsive { .. } | Stop::Spent)) => Err(stop),
            Err(_) => Ok(all),
        }
    }

    pub(super) async fn take(
        &mut self,
        fetcher: &mut Fetcher,
        step: &Step,
    ) -> Result<(Reading, Left), Stop> {
        let path = match step {
            Step::Feed => return self.feed(fetcher).await,
            Step::Thread(id) => format!("/api/v1/statuses/{}/context", id.as_str()),
            Step::Favourites(id) => {
                format!("/api/v1/statuses/{}/favourited_by?limit=80", id.as_str())
            }
            Step::Account(id) => format!("/api/v1/accounts/{}/statuses?limit=40", id.as_str()),
        };
        let (document, left) = document(fetcher, &path, None).await?;
        Ok((read(&document, step)?, left))
    }

    async fn feed(&self, fetcher: &mut Fetcher) -> Result<(Reading, Left), Stop> {
        let (document, left) = match self.feed {
            Feed::Local => document(fetcher, LOCAL_FEED, None).await?,
            Feed::All => match document(fetcher, FEED, None).await {
                Err(Stop::Closed) => document(fetcher, LOCAL_FEED, None).await?,
                answered => answered?,
            },
        };
        Ok((read(&document, &Step::Feed)?, left))
    }
}

/// What the answer to a step says.
pub(super) fn read(document: &[u8], step: &Step) -> Result<Reading, Stop> {
    let mut reading = Reading::default();
    match step {
        Step::Feed | Step::Account(_) => {
            let posts: List<Status, ELEMENTS_MAX> = parse(document)?;
            reading.posts = posts
                .0
                .ok_or(Stop::NotJson)?
                .into_iter()
                .filter_map(post)
                .collect();
        }
        Step::Thread(_) => {
            let thread: Object<Context> = parse(document)?;
            let Context { before, after } = thread.0.ok_or(Stop::NotJson)?;
            let posts = [before.0, after.0].into_iter().flatten().flatten();
            reading.posts = posts.filter_map(post).collect();
        }
        Step::Favourites(_) => {
            let accounts: List<Profile, ELEMENTS_MAX> = parse(document)?;
            let accounts = accounts.0.ok_or(Stop::NotJson)?;
            reading.accounts = accounts.into_iter().filter_map(account).collect();
        }
    }
    Ok(reading)
}

fn parse<T: for<'de> Deserialize<'de>>(document: &[u8]) -> Result<T, Stop> {
    parse_document(document).map_err(|_not_json| Stop::NotJson)
}

/// The post, unless its author does not want to be found or it is not public.
fn post(status: Status) -> Option<Post> {
    let visibility = status.visibility.into_text();
    if !matches!(visibility.as_deref(), None | Some("public" | "unlisted")) {
        return None;
    }
    let author = account(status.account.0?)?;
    Some(Post {
        id: Id::parse(status.id.into_text()?)?,
        origin: status.uri.into_text().as_deref().and_then(origin),
        author,
        has_thread: status.in_reply_to_id.is_yes() || status.replies_count.is_yes(),
        is_favoured: status.favourites_count.is_yes(),
        boosted: status
            .reblog
            .and_then(|boosted| post(*boosted))
            .map(Box::new),
    })
}

/// The account, unless it does not want to be found.
fn account(profile: Profile) -> Option<Account> {
    let says_no = profile.discoverable == Scalar::Truth(false)
        || profile.indexable == Scalar::Truth(false)
        || profile.noindex.is_yes()
        || profile.suspended.is_yes();
    if says_no || profile.texts.iter().any(|text| refuses(text)) {
        return None;
    }
    let handle = profile.acct.into_text()?;
    let host = match handle.rsplit_once('@') {
        Some((_, host)) => Some(peer_name(host)?),
        None => None,
    };
    let id = Id::parse(profile.id.into_text()?)?;
    Some(Account { id, host })
}

/// A post, `Status` in Mastodon's documentation.
#[derive(Debug, Default)]
struct Status {
    id: Scalar,
    uri: Scalar,
    visibility: Scalar,
    in_reply_to_id: Scalar,
    replies_count: Scalar,
    favourites_count: Scalar,
    account: Object<Profile>,
    reblog: Option<Box<Self>>,
}

impl Members for Status {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<Taken, A::Error> {
        match key {
            "id" => self.id = map.next_value()?,
            "uri" => self.uri = map.next_value()?,
            "visibility" => self.visibility = map.next_value()?,
            "in_reply_to_id" => self.in_reply_to_id = map.next_value()?,
            "replies_count" => self.replies_count = map.next_value()?,
            "favourites_count" => self.favourites_count = map.next_value()?,
            "account" => self.account = map.next_value()?,
            "reblog" => self.reblog = map.next_value::<Boosted>()?.0,
            _ => return Ok(Taken::No),
        }
        Ok(Taken::Yes)
    }
}

/// The post within a boost. A boost within that post is ignored.
struct Boosted(Option<Box<Status>>);

impl<'de> Deserialize<'de> for Boosted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(status) = Object::<Status>::deserialize(deserializer)?;
        Ok(Self(status.map(|status| {
            Box::new(Status {
                reblog: None,
                ..status
            })
        })))
    }
}

/// The posts before and after a post.
#[derive(Debug, Default)]
struct Context {
    before: List<Status, ELEMENTS_MAX>,
    after: List<Status, ELEMENTS_MAX>,
}

members!(Context { "ancestors" => before, "descendants" => after });

/// An account of Mastodon's API.
#[derive(Debug, Default)]
struct Profile {
    id: Scalar,
    acct: Scalar,
    discoverable: Scalar,
    indexable: Scalar,
    noindex: Scalar,
    suspended: Scalar,
    /// The owner's texts: the name, the note, and names and values of the fields.
    texts: Vec<String>,
}

impl Members for Profile {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<Taken, A::Error> {
        match key {
            "id" => self.id = map.next_value()?,
            "acct" => self.acct = map.next_value()?,
            "discoverable" => self.discoverable = map.next_value()?,
            "indexable" => self.indexable = map.next_value()?,
            "noindex" => self.noindex = map.next_value()?,
            "suspended" => self.suspended = map.next_value()?,
            "display_name" | "note" => {
                self.texts.extend(map.next_value::<Scalar>()?.into_text());
            }
            "fields" => {
                let List(fields) = map.next_value::<List<Field, FIELDS_MAX>>()?;
                self.texts
                    .extend(fields.into_iter().flatten().flat_map(Field::texts));
            }
            _ => return Ok(Taken::No),
        }
        Ok(Taken::Yes)
    }
}

/// Fields of a profile that are read: Mastodon has four, others some more.
pub(super) const FIELDS_MAX: usize = 32;

/// A field of a profile, in both Mastodon's and Misskey's API.
#[derive(Debug, Default)]
pub(super) struct Field {
    name: Scalar,
    value: Scalar,
}

impl Field {
    pub(super) fn texts(self) -> impl Iterator<Item = String> {
        [self.name, self.value]
            .into_iter()
            .filter_map(Scalar::into_text)
    }
}

members!(Field { "name" => name, "value" => value });

/// Whether this version states which feeds it shows.
fn says_access(version: Option<&str>) -> bool {
    let mut numbers = version.unwrap_or_default().split('.');
    let mut next = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    let (Some(major), Some(minor)) = (next(), next()) else {
        return false;
    };
    (major, minor) >= SAYS_ACCESS_SINCE
}

/// Which feeds a server states that it shows to everyone. An unstated feed counts as open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Access {
    local: bool,
    remote: bool,
}

fn read_access(instance: &[u8]) -> Access {
    let instance: Option<Value> = parse_document(instance).ok();
    let feeds = instance
        .as_ref()
        .and_then(|instance| instance.pointer("/configuration/timelines_access/live_feeds"));
    let is_public = |feed: &str| {
        let word = feeds.and_then(|feeds| feeds.get(feed)?.as_str());
        word.is_none_or(|word| word == "public")
    };
    Access {
        local: is_public("local"),
        remote: is_public("remote"),
    }
}

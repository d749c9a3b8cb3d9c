//! The API of Misskey and its forks.
//!
//! Reads `notes/local-timeline`, `notes/conversation`, `notes/children`, `notes/reactions` and
//! `users/notes`, and `users/show` for the profiles of all accounts in them. Gives a [`Reading`].
//! Rejects notes that are not public, and accounts that have a marker in their profile, require a
//! login, or have no readable profile, with everything that they post and renote.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess};

use super::account::refuses;
use super::ask::{Left, Stop, document};
use super::id::Id;
use super::mastodon::{FIELDS_MAX, Field};
use super::plan::Step;
use super::reading::{Account, ELEMENTS_MAX, Post, Reading, origin};
use crate::documents::json::{List, Members, Object, Scalar, Taken, members, parse_document};
use crate::fetch::Fetcher;
use crate::peers::peer_name;

const PROFILES_MAX: usize = 100;

/// A server that speaks Misskey's API, and the accounts so far, with whether each may be found.
#[derive(Debug, Default)]
pub(super) struct Misskey {
    may_be_found: BTreeMap<Id, bool>,
}

/// What the answers to a step say, before any profile is read.
#[derive(Debug, Default)]
struct Draft {
    notes: Vec<Note>,
    users: Vec<User>,
}

impl Misskey {
    pub(super) async fn take(
        &mut self,
        fetcher: &mut Fetcher,
        step: &Step,
    ) -> Result<(Reading, Left), Stop> {
        let mut draft = Draft::default();
        let mut left = Left::Something;
        for (path, json) in asks(step) {
            let (document, more) = document(fetcher, path, Some(json)).await?;
            read(&document, step, &mut draft)?;
            left = more;
        }
        self.look_at_profiles(fetcher, &draft).await?;
        Ok((self.reading(draft), left))
    }

    /// Requests the profiles of new accounts, because notes don't hold them.
    async fn look_at_profiles(&mut self, fetcher: &mut Fetcher, draft: &Draft) -> Result<(), Stop> {
        let strangers: BTreeSet<&Id> = draft
            .people()
            .filter_map(|user| user.id.as_ref())
            .filter(|id| !self.may_be_found.contains_key(*id))
            .take(PROFILES_MAX)
            .collect();
        if strangers.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = strangers.iter().map(|id| id.as_str()).collect();
        let json = serde_json::json!({ "userIds": ids }).to_string();
        let found = document(fetcher, "/api/users/show", Some(json)).await;
        // An account without a profile counts as one that does not want to be found.
        let strangers: Vec<Id> = strangers.into_iter().cloned().collect();
        self.may_be_found
            .extend(strangers.into_iter().map(|id| (id, false)));
        match found {
            Ok((document, _)) => self.learn_profiles(&document),
            Err(stop @ (Stop::Unresponsive { .. } | Stop::Spent)) => return Err(stop),
            Err(_) => {}
        }
        Ok(())
    }

    /// Reads the answer of `users/show`. Accounts that were not requested are skipped.
    fn learn_profiles(&mut self, document: &[u8]) {
        let users: List<User, ELEMENTS_MAX> = parse_document(document).unwrap_or_default();
        for user in users.0.into_iter().flatten() {
            let says_no = user.says_no();
            if let Some(known) = user.id.and_then(|id| self.may_be_found.get_mut(&id)) {
                *known = !says_no;
            }
        }
    }

    /// An answer to a step. The same bytes serve as the profiles of its accounts.
    #[cfg(feature = "fuzzing")]
    pub(super) fn read(&mut self, document: &[u8], step: &Step) -> Result<Reading, Stop> {
        let mut draft = Draft::default();
        read(document, step, &mut draft)?;
        let ids: Vec<Id> = draft.people().filter_map(|user| user.id.clone()).collect();
        self.may_be_found
            .extend(ids.into_iter().map(|id| (id, true)));
        self.learn_profiles(document);
        Ok(self.reading(draft))
    }

    fn reading(&self, draft: Draft) -> Reading {
        let Draft { notes, users } = draft;
        Reading {
            posts: notes
                .into_iter()
                .filter_map(|note| self.post(note))
                .collect(),
            accounts: users
                .into_iter()
                .filter_map(|user| self.account(user))
                .collect(),
        }
    }

    fn post(&self, note: Note) -> Option<Post> {
        let visibility = note.visibility.into_text();
        if !matches!(visibility.as_deref(), None | Some("public" | "home")) {
            return None;
        }
        let author = self.account(note.user.0?)?;
        Some(Post {
            id: Id::parse(note.id.into_text()?)?,
            origin: note.uri.into_text().as_deref().and_then(origin),
            author,
            has_thread: note.reply_id.is_yes() || note.replies_count.is_yes(),
            is_favoured: note.reactions > 0,
            boosted: note.renote.and_then(|note| self.post(*note)).map(Box::new),
        })
    }

    fn account(&self, user: User) -> Option<Account> {
        let says_no = user.says_no();
        let id = user.id?;
        if says_no || self.may_be_found.get(&id) != Some(&true) {
            return None;
        }
        let host = match user.host.into_text() {
            Some(host) => Some(peer_name(&host)?),
            None => None,
        };
        Some(Account { id, host })
    }
}

impl Draft {
    fn people(&self) -> impl Iterator<Item = &User> {
        let boosted = self.notes.iter().filter_map(|note| note.renote.as_deref());
        let authors = self.notes.iter().chain(boosted);
        authors
            .filter_map(|note| note.user.0.as_ref())
            .chain(&self.users)
    }
}

fn asks(step: &Step) -> Vec<(&'static str, String)> {
    let of = |key: &str, id: &Id, limit: u32| {
        serde_json::json!({ key: id.as_str(), "limit": limit }).to_string()
    };
    match step {
        Step::Feed => vec![("/api/notes/local-timeline", r#"{"limit":40}"#.to_owned())],
        Step::Thread(id) => vec![
            ("/api/notes/conversation", of("noteId", id, 40)),
            ("/api/notes/children", of("noteId", id, 60)),
        ],
        Step::Favourites(id) => vec![("/api/notes/reactions", of("noteId", id, 80))],
        Step::Account(id) => vec![("/api/users/notes", of("userId", id, 40))],
    }
}

/// Adds what one answer says.
fn read(document: &[u8], step: &Step, draft: &mut Draft) -> Result<(), Stop> {
    match step {
        Step::Favourites(_) => {
            let reactions: List<Reaction, ELEMENTS_MAX> = parse(document)?;
            let reactions = reactions.0.ok_or(Stop::NotJson)?;
            draft
                .users
                .extend(reactions.into_iter().filter_map(|reaction| reaction.user.0));
        }
        Step::Feed | Step::Thread(_) | Step::Account(_) => {
            let notes: List<Note, ELEMENTS_MAX> = parse(document)?;
            draft.notes.extend(notes.0.ok_or(Stop::NotJson)?);
        }
    }
    Ok(())
}

fn parse<T: for<'de> Deserialize<'de>>(document: &[u8]) -> Result<T, Stop> {
    parse_document(document).map_err(|_not_json| Stop::NotJson)
}

/// A post of Misskey's API.
#[derive(Debug, Default)]
struct Note {
    id: Scalar,
    uri: Scalar,
    visibility: Scalar,
    reply_id: Scalar,
    replies_count: Scalar,
    reactions: usize,
    user: Object<User>,
    renote: Option<Box<Self>>,
}

impl Members for Note {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<Taken, A::Error> {
        match key {
            "id" => self.id = map.next_value()?,
            "uri" => self.uri = map.next_value()?,
            "visibility" => self.visibility = map.next_value()?,
            "replyId" => self.reply_id = map.next_value()?,
            "repliesCount" => self.replies_count = map.next_value()?,
            "reactions" => {
                self.reactions = map.next_value::<Object<Keys>>()?.0.map_or(0, |keys| keys.0)
            }
            "user" => self.user = map.next_value()?,
            "renote" => self.renote = map.next_value::<Renoted>()?.0,
            _ => return Ok(Taken::No),
        }
        Ok(Taken::Yes)
    }
}

/// The number of keys of an object.
#[derive(Debug, Default)]
struct Keys(usize);

impl Members for Keys {
    fn member<'de, A: MapAccess<'de>>(&mut self, _: &str, _: &mut A) -> Result<Taken, A::Error> {
        self.0 = self.0.saturating_add(1);
        Ok(Taken::No)
    }
}

/// The note within a renote. A renote within that note is ignored.
struct Renoted(Option<Box<Note>>);

impl<'de> Deserialize<'de> for Renoted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(note) = Object::<Note>::deserialize(deserializer)?;
        Ok(Self(note.map(|note| {
            Box::new(Note {
                renote: None,
                ..note
            })
        })))
    }
}

#[derive(Debug, Default)]
struct Reaction {
    user: Object<User>,
}

members!(Reaction { "user" => user });

/// An account of Misskey's API, in a note or with its profile.
#[derive(Debug, Default)]
struct User {
    id: Option<Id>,
    host: Scalar,
    wants_login: Scalar,
    no_crawl: Scalar,
    is_explorable: Scalar,
    is_suspended: Scalar,
    texts: Vec<String>,
}

impl User {
    fn says_no(&self) -> bool {
        self.wants_login.is_yes()
            || self.no_crawl.is_yes()
            || self.is_explorable == Scalar::Truth(false)
            || self.is_suspended.is_yes()
            || self.texts.iter().any(|text| refuses(text))
    }
}

impl Members for User {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<Taken, A::Error> {
        match key {
            "id" => self.id = map.next_value::<Scalar>()?.into_text().and_then(Id::parse),
            "host" => self.host = map.next_value()?,
            "requireSigninToViewContents" => self.wants_login = map.next_value()?,
            "noCrawle" => self.no_crawl = map.next_value()?,
            "isExplorable" => self.is_explorable = map.next_value()?,
            "isSuspended" => self.is_suspended = map.next_value()?,
            "name" | "description" => {
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

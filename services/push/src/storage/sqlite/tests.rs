mod room;

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::notification::{Payload, PayloadHeaders};
use crate::notify::{Filter, Subscription};
use crate::storage::Presence;
use rusqlite::Row;

const NODE: &str = "here";

pub(super) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn with_user(limits: Limits) -> (Self, Sqlite) {
        let place = Self::new();
        let storage = place.open_with(limits);
        storage.add_user(&user(1, 5)).unwrap();
        (place, storage)
    }

    pub(super) fn open(&self) -> Sqlite {
        self.open_with(Limits::ORDINARY)
    }

    fn open_with(&self, limits: Limits) -> Sqlite {
        Sqlite::open(&self.path(), limits).unwrap()
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("push.db")
    }
}

pub(super) fn subscription(endpoint: &str, filter: Filter) -> Subscription {
    Subscription {
        endpoint: endpoint.to_owned(),
        public_key: vec![4; 65],
        secret: vec![1; 16],
        filter,
    }
}

fn uaid(number: u8) -> Uaid {
    Uaid::from_random([number; 16])
}

fn channel(number: u8) -> ChannelId {
    ChannelId::from_bytes([number; 16])
}

fn user(number: u8, now_ms: i64) -> User {
    User::connected(uaid(number), NODE.to_owned(), now_ms)
}

fn message(storage: &Sqlite, version: &str, topic: Option<&str>) -> Notification {
    Notification {
        topic: topic.map(|topic| Topic::try_from(topic.to_owned()).unwrap()),
        payload: Some(Payload {
            data: "AAAA".to_owned(),
            headers: PayloadHeaders {
                encoding: "aesgcm".to_owned(),
                encryption: Some("salt=AA".to_owned()),
                crypto_key: None,
            },
        }),
        place_ms: storage.place(1_000_000),
        ..Notification::sample(version)
    }
}

fn save(storage: &Sqlite, one: &Notification, room: Room) -> Saved {
    let one = std::slice::from_ref(one);
    storage.save(uaid(1), one, room).unwrap()
}

/// The user's waiting messages without a topic.
fn waiting(storage: &Sqlite) -> Vec<Notification> {
    storage.fetch_after(uaid(1), 0, 1000).unwrap()
}

fn versions(messages: &[Notification]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message.version.as_str())
        .collect()
}

#[test]
fn a_record_is_not_taken_from_another_connection() {
    let place = Place::new();
    let storage = place.open();
    assert!(storage.add_user(&user(1, 5)).unwrap());
    assert!(!storage.add_user(&user(1, 6)).unwrap(), "it is there");
    let first = storage.get_user(uaid(1)).unwrap().unwrap();
    let second = first.clone();
    assert!(storage.update_user(&first).unwrap());
    assert!(!storage.update_user(&second).unwrap(), "it has changed");
    assert!(!storage.remove_node(&second, 5).unwrap(), "it has changed");
    let third = storage.get_user(uaid(1)).unwrap().unwrap();
    assert!(storage.remove_node(&third, 5).unwrap());
    let last = storage.get_user(uaid(1)).unwrap().unwrap();
    assert_eq!((last.node, last.connected_ms), (None, 5));
    // A client connects while its former connection ends.
    assert!(storage.update_user(&third).unwrap());
    assert!(!storage.update_user(&third).unwrap(), "it has changed");
    assert!(!storage.update_user(&user(2, 5)).unwrap(), "there is none");
}

#[test]
fn messages_come_in_order_and_one_with_a_topic_replaces_the_former() {
    let (_place, storage) = Place::with_user(Limits::ORDINARY);
    let first = ["a", "b", "c"].map(|version| message(&storage, version, None));
    let saved = storage.save(uaid(1), &first, Room::Limited).unwrap();
    assert_eq!(saved, Saved::Stored);
    for version in ["d", "e"] {
        let topical = message(&storage, version, Some("news"));
        save(&storage, &topical, Room::Limited);
    }
    let topics = storage.fetch_topics(uaid(1), 1000).unwrap();
    assert_eq!(versions(&topics), ["e"]);
    let read = waiting(&storage);
    assert_eq!(read, first);
    let after = read.first().unwrap().place_ms;
    let read = storage.fetch_after(uaid(1), after, 1000).unwrap();
    assert_eq!(versions(&read), ["b", "c"]);
    assert_eq!(storage.fetch_after(uaid(1), 0, 1060).unwrap(), []);
    assert_eq!(storage.fetch_topics(uaid(1), 1060).unwrap(), []);
}

#[test]
fn what_is_done_with_does_not_come_back() {
    let (_place, storage) = Place::with_user(Limits::ORDINARY);
    let all = ["a", "b", "c"].map(|version| message(&storage, version, None));
    storage.save(uaid(1), &all, Room::Limited).unwrap();
    let [topical, newer] = ["t", "u"].map(|version| message(&storage, version, Some("news")));
    for one in [&topical, &newer] {
        save(&storage, one, Room::Limited);
    }
    for (gone, left) in [(&topical, &["u"][..]), (&newer, &[])] {
        storage.remove(uaid(1), &[Stored::of(gone)]).unwrap();
        let topics = storage.fetch_topics(uaid(1), 1000).unwrap();
        assert_eq!(versions(&topics), left);
    }
    storage.withdraw(uaid(1), "c").unwrap();
    let to = all[0].place_ms;
    storage.advance(uaid(1), to).unwrap();
    assert_eq!(versions(&waiting(&storage)), ["b"]);
    assert_eq!(storage.get_user(uaid(1)).unwrap().unwrap().read_to_ms, to);
}

#[test]
fn a_users_messages_keep_their_order_when_the_clock_goes_back() {
    let (_place, storage) = Place::with_user(Limits::ORDINARY);
    for (version, place_ms) in [("a", 9000), ("b", 9000), ("c", 1)] {
        let message = Notification {
            place_ms,
            ..message(&storage, version, None)
        };
        save(&storage, &message, Room::Limited);
    }
    let read = waiting(&storage);
    assert_eq!(versions(&read), ["a", "b", "c"]);
    let places: Vec<i64> = read.iter().map(|message| message.place_ms).collect();
    assert_eq!(places, [9000, 9001, 9002]);
    storage.advance(uaid(1), 9002).unwrap();
    let late = Notification {
        place_ms: 1,
        ..message(&storage, "d", None)
    };
    save(&storage, &late, Room::Limited);
    let read = storage.fetch_after(uaid(1), 9002, 1000).unwrap();
    assert_eq!(versions(&read), ["d"]);
}

#[test]
fn a_message_that_comes_back_replaces_no_newer_one_with_its_topic() {
    let (_place, storage) = Place::with_user(Limits::ORDINARY);
    let [old, new] = ["old", "new"].map(|version| message(&storage, version, Some("news")));
    for (message, room, expect) in [
        (&new, Room::Limited, "new"),
        (&old, Room::Promised, "new"),
        (&old, Room::Limited, "old"),
        (&new, Room::Promised, "new"),
    ] {
        save(&storage, message, room);
        let topics = storage.fetch_topics(uaid(1), 1000).unwrap();
        assert_eq!(versions(&topics), [expect]);
    }
}

#[test]
fn a_user_that_goes_takes_everything_along_and_saves_nothing_more() {
    let (_place, storage) = Place::with_user(Limits::ORDINARY);
    assert!(storage.add_channel(uaid(1), channel(1)).unwrap());
    let one = message(&storage, "a", None);
    save(&storage, &one, Room::Limited);
    assert!(storage.remove_user(uaid(1)).unwrap());
    assert_eq!(storage.channels(uaid(1)).unwrap(), []);
    assert_eq!(waiting(&storage), []);
    assert_eq!(save(&storage, &one, Room::Limited), Saved::NoUser);
    assert!(!storage.add_channel(uaid(1), channel(1)).unwrap());
}

#[test] // S30
fn user_has_a_limit_of_everything() {
    let (_place, storage) = Place::with_user(Limits {
        channels: 1,
        messages: 2,
        bytes: 30,
        ..Limits::ORDINARY
    });
    assert!(storage.add_channel(uaid(1), channel(1)).unwrap());
    assert!(storage.add_channel(uaid(1), channel(1)).unwrap(), "again");
    assert!(!storage.add_channel(uaid(1), channel(2)).unwrap());
    // Each has 17 bytes.
    let full = |version| message(&storage, version, None);
    let bare = |version| Notification {
        payload: None,
        ..full(version)
    };
    for (one, room, expect) in [
        (full("a"), Room::Limited, ["a"].as_slice()),
        (full("b"), Room::Limited, &["b"]),
        (bare("c"), Room::Limited, &["b", "c"]),
        (bare("d"), Room::Limited, &["c", "d"]),
        (full("e"), Room::Promised, &["d", "e"]),
    ] {
        assert_eq!(save(&storage, &one, room), Saved::Stored);
        assert_eq!(versions(&waiting(&storage)), expect);
    }
    assert_eq!(storage.try_write(1).unwrap().displaced, 3);
}

#[test] // S30
fn one_sender_does_not_fill_a_users_room() {
    let (_place, storage) = Place::with_user(Limits {
        channel_messages: 1,
        ..Limits::ORDINARY
    });
    for number in [1, 2] {
        assert!(storage.add_channel(uaid(1), channel(number)).unwrap());
    }
    let of = |number, version| Notification {
        channel: channel(number),
        ..message(&storage, version, None)
    };
    for (one, expect) in [
        (of(1, "a"), Saved::Stored),
        (of(1, "b"), Saved::Full),
        (of(2, "c"), Saved::Stored),
    ] {
        assert_eq!(save(&storage, &one, Room::Limited), expect);
    }
}

#[test]
fn a_full_channel_takes_a_message_that_replaces_one() {
    let (_place, storage) = Place::with_user(Limits {
        messages: 2,
        channel_messages: 1,
        bytes: 17,
        ..Limits::ORDINARY
    });
    storage.add_channel(uaid(1), channel(0)).unwrap();
    for (version, topic, expect) in [
        ("a", "news", Saved::Stored),
        ("b", "other", Saved::Full),
        ("c", "news", Saved::Stored),
    ] {
        let one = Notification {
            channel: channel(0),
            ..message(&storage, version, Some(topic))
        };
        assert_eq!(save(&storage, &one, Room::Limited), expect, "{version}");
    }
    let left = storage.fetch_topics(uaid(1), 1000).unwrap();
    assert_eq!(versions(&left), ["c"]);
}

/// Requests overtake each other between the place that they get and the storage.
#[test]
fn a_message_that_was_overtaken_still_comes() {
    let (_place, storage) = Place::with_user(Limits::ORDINARY);
    let [first, second] = ["a", "b"].map(|version| message(&storage, version, None));
    let sent_to_ms = second.place_ms;
    save(&storage, &second, Room::Limited);
    // The client has the second one.
    storage.remove(uaid(1), &[Stored::of(&second)]).unwrap();
    save(&storage, &first, Room::Limited);
    let next = storage.fetch_after(uaid(1), sent_to_ms, 1000).unwrap();
    assert_eq!(versions(&next), ["a"]);
}

/// The counters and what they count: a user's messages and bytes, and a channel's messages.
fn counted(storage: &Sqlite) -> [(i64, i64, i64); 2] {
    let read = |query| {
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        storage.read(|c| c.query_row(query, [], row)).unwrap()
    };
    [
        read(
            "SELECT messages, bytes, (SELECT messages FROM channels WHERE channel = zeroblob(16)) FROM users",
        ),
        read(
            "SELECT count(*), coalesce(sum(bytes), 0), coalesce(sum(channel = zeroblob(16)), 0) FROM messages",
        ),
    ]
}

/// Whether what the triggers count for users and networks is the sum of what there is.
fn is_counted(storage: &Sqlite) -> bool {
    let query = "SELECT total(channels) = (SELECT count(*) FROM channels) \
         AND total(held) = (SELECT total(held) FROM networks) \
         AND total(unread) = (SELECT total(unread) FROM networks) FROM users";
    storage
        .read(|c| c.query_row(query, [], |row| row.get(0)))
        .unwrap()
}

proptest! {
    #[test]
    fn the_counters_are_those_of_the_messages(steps in proptest::collection::vec((0_u8..8, 0_u8..2), 1..40)) {
        let (_place, storage) = Place::with_user(Limits::ORDINARY);
        let mut saved: Vec<Notification> = Vec::new();
        for (step, number) in steps {
            for number in [0, 1] {
                storage.add_channel(uaid(1), channel(number)).unwrap();
            }
            let last = saved.last().cloned();
            match (step, last) {
                (0..=2, _) | (_, None) => {
                    let topic = (step == 1).then_some("news");
                    let one = Notification {
                        channel: channel(number),
                        payload: None,
                        ..message(&storage, &format!("{}", saved.len()), topic)
                    };
                    let data = message(&storage, "", None).payload.filter(|_| step != 2);
                    saved.push(Notification { payload: data, ..one });
                    save(&storage, &saved[saved.len() - 1], Room::Limited);
                }
                (3, Some(last)) => storage.remove(uaid(1), &[Stored::of(&last)]).unwrap(),
                (4, Some(last)) => {
                    storage.withdraw(uaid(1), &last.version).unwrap();
                }
                (7, Some(_)) => {
                    let topic = Topic::try_from("news".to_owned()).unwrap();
                    storage.withdraw_topic(uaid(1), channel(number), &topic).unwrap();
                }
                (5, Some(last)) => storage.advance(uaid(1), last.place_ms - 1).unwrap(),
                (_, Some(_)) => {
                    storage.remove_channel(uaid(1), channel(number)).unwrap();
                    // A client may leave a message of a channel that it has unregistered.
                    let left = Notification {
                        channel: channel(number),
                        ..message(&storage, &format!("{}", saved.len()), None)
                    };
                    saved.push(left);
                    save(&storage, &saved[saved.len() - 1], Room::Promised);
                    storage.add_channel(uaid(1), channel(number)).unwrap();
                }
            }
            let [counters, messages] = counted(&storage);
            prop_assert_eq!(counters, messages);
            prop_assert!(is_counted(&storage));
        }
    }
}

#[test] // S30
fn a_full_file_takes_nothing_new_until_something_is_removed() {
    let (place, storage) = Place::with_user(Limits::ORDINARY);
    storage.add_channel(uaid(1), channel(1)).unwrap();
    let many: Vec<_> = (0..100)
        .map(|number| message(&storage, &format!("{number}"), None))
        .collect();
    storage.save(uaid(1), &many, Room::Promised).unwrap();
    drop(storage);
    let file_bytes = i64::try_from(place.path().metadata().unwrap().len()).unwrap();
    let storage = place.open_with(Limits {
        file_bytes,
        ..Limits::ORDINARY
    });
    let new = || message(&storage, "new", None);
    let save = |room| save(&storage, &new(), room);
    assert!(!storage.add_user(&user(2, 5)).unwrap());
    assert!(!storage.add_channel(uaid(1), channel(2)).unwrap());
    assert_eq!(save(Room::Limited), Saved::Full);
    assert_eq!(save(Room::Promised), Saved::Stored);
    storage.advance(uaid(1), new().place_ms).unwrap();
    assert!(storage.add_user(&user(2, 5)).unwrap());
    assert_eq!(save(Room::Limited), Saved::Stored);
}

#[test]
fn an_unregistered_channel_takes_its_messages_along() {
    let (_place, storage) = Place::with_user(Limits::ORDINARY);
    storage.add_channel(uaid(1), channel(1)).unwrap();
    save(&storage, &message(&storage, "a", None), Room::Limited);
    assert!(storage.remove_channel(uaid(1), channel(1)).unwrap());
    assert!(!storage.remove_channel(uaid(1), channel(1)).unwrap());
    assert_eq!(waiting(&storage), []);
}

#[test]
fn a_sweep_removes_what_is_over_and_nobody_who_is_connected() {
    let place = Place::new();
    let storage = place.open();
    for number in [1, 2] {
        storage.add_user(&user(number, 1_000_000)).unwrap();
    }
    save(&storage, &message(&storage, "a", None), Room::Limited);
    let left = storage.get_user(uaid(2)).unwrap().unwrap();
    storage.remove_node(&left, 1_000_000).unwrap();
    let later = 1000 + USER_SECONDS_MAX;
    assert!(!storage.sweep(later).unwrap(), "that was all");
    assert_eq!(storage.get_user(uaid(2)).unwrap(), None);
    assert!(storage.get_user(uaid(1)).unwrap().is_some());
    // At a time when it had not expired.
    assert_eq!(waiting(&storage), []);
}

#[test]
fn time_without_a_connection_counts_from_its_end() {
    let place = Place::new();
    let storage = place.open();
    for number in [1, 2] {
        storage.add_user(&user(number, 1_000_000)).unwrap();
    }
    let end_s = 1000 + USER_SECONDS_MAX;
    let left = storage.get_user(uaid(1)).unwrap().unwrap();
    storage.remove_node(&left, end_s * 1000).unwrap();
    // The other one was connected when the process was killed.
    storage.forget_connections(NODE, end_s * 1000).unwrap();
    let users = || [1, 2].map(|number| storage.get_user(uaid(number)).unwrap().is_some());
    storage.sweep(end_s + USER_SECONDS_MAX - 1).unwrap();
    assert_eq!(users(), [true, true]);
    storage.sweep(end_s + USER_SECONDS_MAX).unwrap();
    assert_eq!(users(), [false, false]);
}

#[test]
fn a_node_forgets_its_own_users_and_restores_others() {
    let place = Place::new();
    let storage = place.open();
    let there = |number| User::connected(uaid(number), "there".to_owned(), 5);
    for user in [user(1, 5), there(2), there(3)] {
        storage.add_user(&user).unwrap();
    }
    let node = |number| storage.get_user(uaid(number)).unwrap().unwrap().node;
    storage.forget_connections("there", 5).unwrap();
    assert_eq!([node(1), node(2)], [Some(NODE.to_owned()), None]);
    let confirm = |number, connected_ms| {
        let found = storage.confirm_node(uaid(number), "there", connected_ms);
        found.unwrap()
    };
    for (number, connected_ms, expected) in [
        (2, 5, Presence::Restored),
        (2, 5, Presence::Recorded),
        (3, 4, Presence::Elsewhere),
        (1, 5, Presence::Elsewhere),
        (9, 5, Presence::Elsewhere),
    ] {
        assert_eq!(confirm(number, connected_ms), expected, "{number}");
    }
    assert_eq!(node(3), None);
}

#[test]
fn users_of_a_node_unseen_for_a_day_are_away() {
    let (_place, storage) = Place::with_user(Limits::ORDINARY);
    let day_ms = 24 * 60 * 60 * 1000;
    storage.see_node(NODE, 5).unwrap();
    let sweep = |now_ms: i64| {
        storage.sweep(now_ms / 1000).unwrap();
        storage.get_user(uaid(1)).unwrap().unwrap().node
    };
    assert_eq!(sweep(day_ms), Some(NODE.to_owned()));
    storage.see_node(NODE, day_ms).unwrap();
    assert_eq!(sweep(2 * day_ms - 1000), Some(NODE.to_owned()));
    assert_eq!(sweep(2 * day_ms), None);
}

#[test]
fn another_programs_database_is_left_alone() {
    let place = Place::new();
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("CREATE TABLE t (a)").unwrap();
    let refused = Sqlite::open(&place.path(), Limits::ORDINARY);
    assert!(matches!(refused, Err(OpenError::Foreign(_))));
}

#[test]
fn a_database_of_a_newer_version_is_refused() {
    let place = Place::new();
    let newer = "PRAGMA user_version = 99";
    place.open().read(|c| c.execute_batch(newer)).unwrap();
    let refused = Sqlite::open(&place.path(), Limits::ORDINARY).unwrap_err();
    let says = "has schema 99, made by a newer version";
    assert!(refused.to_string().contains(says), "{refused}");
}

#[test] // S49
fn only_its_owner_may_read_the_database_its_log_and_a_backup() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let storage = place.open();
    let at = |name| place.folder.path().join(name);
    storage.back_up(&at("copy.db")).unwrap();
    let files = ["push.db", "push.db-wal", "push.db-shm", "copy.db"].map(at);
    let are_private = || {
        let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
        files.iter().all(|file| mode(file) == 0o600)
    };
    assert!(are_private());
    for file in files.iter().take(3) {
        let public = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(file, public).unwrap();
    }
    let _again = place.open();
    assert!(are_private());
}

#[test]
fn an_error_has_sqlites_extended_code() {
    let place = Place::new();
    let twice = "INSERT INTO secrets (name, value) VALUES ('a', x''), ('a', x'')";
    let failed = place.open().write(|t| t.execute_batch(twice)).unwrap_err();
    let code = rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY.to_string();
    assert!(failed.to_string().contains(&code), "{failed}");
}

/// Its container has no folder for one: a statement over many rows would fail.
#[test]
fn no_statement_needs_a_temporary_file() {
    let in_memory = 2;
    let chosen = |c: &Connection| c.pragma_query_value(None, "temp_store", |row| row.get(0));
    let chosen: i64 = Place::new().open().read(chosen).unwrap();
    assert_eq!(chosen, in_memory);
}

#[test]
fn a_backup_is_whole() {
    let (place, storage) = Place::with_user(Limits::ORDINARY);
    let copy = place.folder.path().join("copy.db");
    storage.back_up(&copy).unwrap();
    let copy = Sqlite::open(&copy, Limits::ORDINARY).unwrap();
    assert!(copy.get_user(uaid(1)).unwrap().is_some());
}

#[test]
fn several_nodes_may_make_the_file_at_once() {
    let place = Place::new();
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..8).map(|_| scope.spawn(|| place.open())).collect();
        for storage in opened {
            storage.join().unwrap().try_write(1).unwrap();
        }
    });
}

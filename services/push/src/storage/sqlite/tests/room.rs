use super::*;
use crate::notification::TTL_SECONDS_MAX;

#[test] // S30
fn full_user_loses_the_oldest_of_its_fullest_channel() {
    let (_place, storage) = Place::with_user(Limits {
        messages: 4,
        ..Limits::ORDINARY
    });
    for number in [1, 2, 3] {
        storage.add_channel(uaid(1), channel(number)).unwrap();
    }
    let save_at = |number, version| {
        let one = Notification {
            channel: channel(number),
            ..message(&storage, version, None)
        };
        let saved = save(&storage, &one, Room::Limited);
        assert_eq!(saved, Saved::Stored, "{version}");
        versions(&waiting(&storage)).concat()
    };
    for (number, version, expect) in [
        (1, "a", "a"),
        (1, "b", "ab"),
        (1, "c", "abc"),
        (2, "d", "abcd"),
        (3, "e", "bcde"),
        (3, "f", "cdef"),
        (2, "g", "cdfg"),
    ] {
        assert_eq!(save_at(number, version), expect);
    }
}

fn made_at(address: &str, number: u16, node: Option<&str>) -> User {
    let mut id = [7; 16];
    id[..2].copy_from_slice(&number.to_be_bytes());
    let uaid = Uaid::from_random(id);
    User {
        node: node.map(str::to_owned),
        made_at: Some(address.parse().unwrap()),
        ..User::connected(uaid, String::new(), 1_000_000)
    }
}

/// Saves a message of 4080 bytes, as stored.
fn send(storage: &Sqlite, uaid: Uaid, room: Room) -> Saved {
    let mut large = Notification {
        ttl_s: 86_400,
        ..message(storage, "large", None)
    };
    if let Some(payload) = &mut large.payload {
        payload.data = "A".repeat(5440);
    }
    storage.save(uaid, &[large], room).unwrap()
}

/// Makes users at an address, and 20 messages for each, until something is refused. Returns the
/// number of users.
fn flood(storage: &Sqlite, address: &str, first: u16, node: Option<&str>) -> u16 {
    for number in first..first + 200 {
        let user = made_at(address, number, node);
        if !storage.add_user(&user).unwrap()
            || (0..20).any(|_| send(storage, user.uaid, Room::Limited) == Saved::Full)
        {
            return number - first + 1;
        }
    }
    panic!("there is no end");
}

const FEW_BYTES: Limits = Limits {
    file_bytes: 8 * 1024 * 1024,
    ..Limits::ORDINARY
};

#[test] // S33
fn one_network_does_not_fill_the_file() {
    let place = Place::new();
    let storage = place.open_with(FEW_BYTES);
    let reader = made_at("2001:db8::1", 1, Some(NODE));
    assert!(storage.add_user(&reader).unwrap());
    assert_eq!(storage.ttl_max_s(), TTL_SECONDS_MAX);
    // All of a network's addresses have one share.
    flood(&storage, "198.51.100.1", 1000, Some(NODE));
    assert!(!storage.add_user(&made_at("198.51.7.7", 2, None)).unwrap());
    let ttl_s = storage.ttl_max_s();
    assert!((TTL_SECONDS_MAX / 2..TTL_SECONDS_MAX).contains(&ttl_s));
    for uaid in [reader.uaid, made_at("192.0.2.1", 3, None).uaid] {
        storage.add_user(&made_at("192.0.2.1", 3, None)).unwrap();
        assert!(storage.add_channel(uaid, channel(1)).unwrap());
        assert_eq!(send(&storage, uaid, Room::Limited), Saved::Stored);
    }
    // On the next day it is another network.
    let next = User {
        made_ms: 1_000_000 + 24 * 60 * 60 * 1000,
        ..made_at("198.51.100.1", 4, None)
    };
    assert!(storage.add_user(&next).unwrap());
}

#[test] // S33
fn a_full_file_has_room_for_the_census_and_makes_some() {
    let place = Place::new();
    let storage = place.open_with(FEW_BYTES);
    let reader = made_at("2001:db8::1", 1, Some(NODE));
    storage.add_user(&reader).unwrap();
    assert_eq!(send(&storage, reader.uaid, Room::Limited), Saved::Stored);
    let unused = made_at("192.0.2.1", 2, None);
    // It is about to connect.
    let new = User {
        made_ms: 4_000_000,
        ..made_at("192.0.2.1", 3, None)
    };
    for user in [&unused, &new] {
        assert!(storage.add_user(user).unwrap());
    }
    let users = (1..100).map(|number: u16| {
        let address = format!("10.{number}.0.1");
        flood(&storage, &address, number * 200, None)
    });
    assert!(users.sum::<u16>() > 100);
    assert!(storage.ttl_max_s() < 2 * 60 * 60, "{}", storage.ttl_max_s());
    assert_eq!(send(&storage, reader.uaid, Room::Limited), Saved::Full);
    assert_eq!(send(&storage, reader.uaid, Room::Reserved), Saved::Stored);
    while storage.sweep(1000 + 60 * 60).unwrap() {}
    assert!(storage.try_write(1).unwrap().displaced > 0 && is_counted(&storage));
    let is_there = |user: &User| storage.get_user(user.uaid).unwrap().is_some();
    assert_eq!([&unused, &new].map(is_there), [false, true]);
    assert_eq!(send(&storage, reader.uaid, Room::Limited), Saved::Stored);
    let left = storage.fetch_after(reader.uaid, 0, 1000).unwrap();
    assert_eq!(left.len(), 3);
}

#[test]
fn behind_an_unknown_proxy_no_network_has_a_share() {
    let place = Place::new();
    let storage = place.open_with(FEW_BYTES);
    flood(&storage, "172.18.0.1", 1000, Some(NODE));
    assert!(storage.ttl_max_s() < TTL_SECONDS_MAX / 6);
    // The proxy is known from now on.
    assert!(storage.add_user(&made_at("192.0.2.1", 1, None)).unwrap());
}

#[test]
fn a_database_of_the_first_schema_is_migrated() {
    let place = Place::new();
    let mut first = Connection::open(place.path()).unwrap();
    let schema = Migrations::from_slice(&MIGRATIONS[..1]);
    schema.to_latest(&mut first).unwrap();
    first
        .execute_batch(
            "INSERT INTO users (uaid, connected_ms, expires_s) VALUES (zeroblob(16), 5, 9000);
             INSERT INTO channels (uaid, channel) VALUES (zeroblob(16), zeroblob(16));
             INSERT INTO messages (uaid, sort_ms, channel, topic, place_ms, version, ttl_s, arrived_s, expires_s, bytes)
             VALUES (zeroblob(16), 7, zeroblob(16), '', 7, 'a', 60, 1000, 1060, 0);",
        )
        .unwrap();
    drop(first);
    let storage = place.open();
    assert!(is_counted(&storage));
    let uaid = Uaid::from_bytes([0; 16]);
    let one = message(&storage, "b", None);
    storage.save(uaid, &[one], Room::Limited).unwrap();
    assert!(storage.add_channel(uaid, channel(1)).unwrap());
    assert!(is_counted(&storage));
    let left = storage.fetch_after(uaid, 0, 1000).unwrap();
    assert_eq!(versions(&left), ["a", "b"]);
    assert_eq!(storage.get_user(uaid).unwrap().unwrap().made_ms, 0);
}

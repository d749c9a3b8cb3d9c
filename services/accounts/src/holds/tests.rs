use std::time::Duration;

use limiter::login::state::Memory;
use proptest::prelude::*;

use super::*;
use crate::file::tests::{NOW, PASSWORD, accounts, accounts_of, password, random};

fn after(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

fn address(number: u32) -> Key {
    Key::Address(format!("192.0.2.{number}"))
}

fn held(until: Timestamp) -> Record {
    Record {
        times: [NOW, after(1)].into(),
        held_until: Some(until),
        bans: 2,
        quiet_since: until,
    }
}

fn device(user: &str) -> Key {
    Key::Device {
        user: user.to_owned(),
        device: "d".to_owned(),
    }
}

#[test]
fn a_record_is_read_as_it_was_written_also_by_the_next_process() {
    let (mut accounts, folder) = accounts_of(&["ada"]);
    let user = Key::User("ada".to_owned());
    let written = [address(1), user, device("ada")].map(|key| (key, held(after(1800))));
    for (key, record) in written.clone() {
        accounts.put(key, record).unwrap();
    }
    // As a killed process leaves it: the log is not merged.
    let mut again = Accounts::open(&folder.path().join("console.db"), &mut random()).unwrap();
    for (key, record) in written {
        assert_eq!(again.get(&key).unwrap(), record);
        assert_eq!(accounts.get(&key).unwrap(), record);
    }
    assert_eq!(again.get(&address(2)).unwrap(), Record::default());
}

#[test]
fn no_address_is_kept_and_no_name_but_a_moderators() {
    let (mut accounts, folder) = accounts_of(&["ada"]);
    for key in [
        address(7),
        Key::User("my password".to_owned()),
        Key::User("ada".to_owned()),
    ] {
        accounts.put(key, held(after(1800))).unwrap();
    }
    let shown = accounts.holds(NOW).unwrap();
    let mut moderators: Vec<_> = shown.iter().map(|hold| hold.moderator.as_deref()).collect();
    moderators.sort_unstable();
    assert_eq!(moderators, [None, None, Some("ada")]);
    for name in ["console.db", "console.db-wal"] {
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        for secret in ["192.0.2", "my password"] {
            let mut parts = bytes.windows(secret.len());
            let found = parts.any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} in {name}");
        }
    }
}

#[test]
fn a_hold_is_shown_until_it_ends_and_lifted_by_its_id() {
    let (mut accounts, _folder) = accounts_of(&["ada"]);
    accounts.put(address(1), held(after(60))).unwrap();
    accounts.put(address(2), held(after(120))).unwrap();
    let shown = accounts.holds(NOW).unwrap();
    assert_eq!(shown.len(), 2);
    let first = (shown[0].kind.as_str(), shown[0].until, shown[0].bans);
    assert_eq!(first, ("address", after(120), 2));
    assert_eq!(accounts.holds(after(60)).unwrap().len(), 1);
    for nothing in ["", "ä", "00", &"0".repeat(64)] {
        assert!(!accounts.lift(nothing).unwrap(), "{nothing}");
    }
    assert!(accounts.lift(&shown[0].id).unwrap());
    assert_eq!(accounts.get(&address(2)).unwrap(), Record::default());
    assert_eq!(accounts.get(&address(1)).unwrap(), held(after(60)));
}

#[test]
fn a_flood_of_addresses_is_bounded_and_lifts_no_ban() {
    let (mut accounts, _folder) = accounts_of(&["ada"]);
    accounts.holds_max = 10;
    accounts.put(address(0), held(after(1800))).unwrap();
    for number in 1..30 {
        let record = Record {
            times: [after(u64::from(number))].into(),
            ..Record::default()
        };
        accounts.put(address(number), record).unwrap();
        let sql = "SELECT count(*) FROM holds";
        let count = accounts.connection.query_row(sql, [], |row| row.get(0));
        let count: u32 = count.unwrap();
        assert!(count <= 10, "{count}");
    }
    assert_eq!(accounts.get(&address(0)).unwrap(), held(after(1800)));
    let newest = accounts.get(&address(29)).unwrap();
    assert_ne!(newest, Record::default(), "it stays");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Records in memory and in a file are the same after any sequence of calls.
    #[test]
    fn a_file_remembers_as_memory_does(
        steps in proptest::collection::vec((0_u32..4, 0_u64..200, 0_u32..5), 1..30),
    ) {
        let (mut accounts, _folder) = accounts();
        let mut memory = Memory::new(1000);
        for (number, seconds, what) in steps {
            let keep = |_key: &Key, record: &mut Record| {
                record.bans /= 2;
                record.times.pop_front();
                record.held_until.is_some_and(|until| until > after(seconds))
            };
            if what == 0 {
                accounts.retain(keep).unwrap();
                memory.retain(keep).unwrap();
            } else {
                let record = Record {
                    times: (0..u64::from(what)).map(after).collect(),
                    held_until: (what > 1).then(|| after(seconds)),
                    bans: what,
                    quiet_since: after(seconds),
                };
                accounts.put(address(number), record.clone()).unwrap();
                memory.put(address(number), record).unwrap();
            }
            for number in 0..4 {
                let found = accounts.get(&address(number)).unwrap();
                prop_assert_eq!(found, memory.get(&address(number)).unwrap());
            }
        }
    }
}

/// Other people may have guessed at the name before.
#[test]
fn a_new_account_is_not_locked() {
    let (mut accounts, _folder) = accounts_of(&["ada"]);
    let user = Key::User("bob".to_owned());
    accounts.put(user.clone(), held(after(1800))).unwrap();
    let password = password(PASSWORD);
    accounts.add("bob", &password, NOW, &mut random()).unwrap();
    assert_eq!(accounts.get(&user).unwrap(), Record::default());
    accounts.put(user.clone(), held(after(1800))).unwrap();
    let device = device("bob");
    accounts.put(device.clone(), held(after(1800))).unwrap();
    accounts.reset("bob", &password, &mut random()).unwrap();
    for key in [user, device] {
        assert_eq!(accounts.get(&key).unwrap(), Record::default());
    }
}

/// The console and a command have the file open at the same time.
#[test]
fn two_processes_do_not_stop_each_other() {
    let (mut accounts, folder) = accounts_of(&["ada"]);
    let path = folder.path().join("console.db");
    let mut command = Accounts::open(&path, &mut random()).unwrap();
    for number in 0..20 {
        accounts.put(address(number), held(after(60))).unwrap();
        if number % 5 == 0 {
            let reset = command.reset("ada", &password(PASSWORD), &mut random());
            reset.unwrap();
        }
        let retained = accounts.retain(|_, record| {
            record.bans += 1;
            true
        });
        retained.unwrap();
        let candidate = accounts.candidate("ada").unwrap();
        let accepted = accounts.accept(&candidate, true, "000000", NOW);
        assert_eq!(accepted.unwrap(), None);
    }
}

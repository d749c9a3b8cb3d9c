use proptest::prelude::*;

use super::*;
use crate::Rows;

const HOSTS: [&str; 7] = [
    "alpha.example",
    "bravo.example",
    "charlie.example",
    "delta.example",
    "echo.example",
    "foxtrot.example",
    "golf.example",
];

/// What happens to one host between two dumps.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Lives {
        version: u8,
        state: u8,
        seen: bool,
        registrations: Option<bool>,
    },
    /// Its registrations change, if it is alive.
    Flips {
        registrations: Option<bool>,
    },
    Dies,
    Moves {
        to: usize,
    },
    Leaves,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => (0..3_u8, 0..3_u8, any::<bool>(), prop::option::of(any::<bool>()))
            .prop_map(|(version, state, seen, registrations)| Fate::Lives {
                version, state, seen, registrations,
            }),
        // Lists that differ in nothing else.
        2 => prop::option::of(any::<bool>()).prop_map(|registrations| Fate::Flips { registrations }),
        1 => Just(Fate::Dies),
        1 => (0..HOSTS.len()).prop_map(|to| Fate::Moves { to }),
        1 => Just(Fate::Leaves),
    ]
}

/// Seconds until a dump, and what happens before it.
fn steps() -> impl Strategy<Value = Vec<(i64, Vec<(usize, Fate)>)>> {
    let pause = prop_oneof![Just(0), 1..HOUR, HOUR..(4 * DAY)];
    prop::collection::vec(
        (pause, prop::collection::vec((0..HOSTS.len(), fate()), 0..5)),
        1..14,
    )
}

fn happen(world: &mut World, host: &str, fate: Fate) {
    match fate {
        Fate::Lives {
            version,
            state,
            seen,
            registrations,
        } => {
            world.list(host, &format!("{version}\"\n\u{202e}ü"));
            world.register(host, registrations);
            if let Some(Known::Listed(row)) = world.hosts.get_mut(host) {
                row.state = [ListedState::Alive, ListedState::Dying, ListedState::Moving]
                    [usize::from(state)];
                if seen {
                    row.instance.software = None;
                    row.last_alive = at(MIDNIGHT + i64::from(version));
                }
            }
        }
        Fate::Flips { registrations } => {
            if let Some(Known::Listed(row)) = world.hosts.get_mut(host) {
                row.instance.open_registrations = registrations;
            }
        }
        Fate::Dies => world.set(host, Standing::Died),
        Fate::Moves { to } => world.set(
            host,
            Standing::Moved {
                to: Some(HOSTS[to].to_owned()),
            },
        ),
        Fate::Leaves => world.set(host, Standing::Withdrawn),
    }
}

fn assert_nobody_is_named_who_left(world: &World) {
    for (host, known) in &world.hosts {
        if *known == Known::Not(Standing::Withdrawn) {
            assert_eq!(world.names(host), Vec::<String>::new(), "{host}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// From each dump to the newest, with all files at once and with each as it was published.
    #[test]
    fn all_changes_applied_to_any_earlier_dump_give_the_newest_and_name_nobody_who_left(steps in steps()) {
        let mut world = World::new();
        let mut seconds = MIDNIGHT;
        let mut late: Vec<Mirror> = Vec::new();
        let mut steady: Option<Mirror> = None;
        for (pause, fates) in steps {
            seconds += pause;
            for (host, fate) in fates {
                happen(&mut world, HOSTS[host], fate);
            }
            // If two dumps fall into the same second, the later one is dated a second later.
            seconds = seconds.max(world.publish(seconds).time.seconds());
            assert_nobody_is_named_who_left(&world);
            let (files, truth) = (world.files(), held(&world.mirror()));
            for mirror in &late {
                let mut mirror = mirror.clone();
                prop_assert_eq!(follow(&mut mirror, &files), Ok(()));
                prop_assert_eq!(&held(&mirror), &truth);
            }
            if let Some(mirror) = &mut steady {
                prop_assert_eq!(follow(mirror, &files), Ok(()));
                prop_assert_eq!(&held(mirror), &truth);
            }
            steady.get_or_insert_with(|| world.mirror());
            late.push(world.mirror());
        }
    }

    #[test]
    fn whatever_a_file_holds_it_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(bytes.is_empty() || crate::line::parse(&bytes).is_err());
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        let rows = Rows::new("rows".into(), Box::new(io::Cursor::new(bytes)));
        prop_assert!(rows.count() <= 1 + lines);
    }
}

use proptest::prelude::*;

use super::*;

const SUM: u32 = 19;

fn counts(most: u32) -> impl Strategy<Value = PerClass<u32>> {
    // Often zero, and often a crowd.
    let count = prop_oneof![Just(0), 0..=most, Just(1_000_000)];
    [count.clone(), count.clone(), count.clone(), count].prop_map(|[living, new, retry, dead]| {
        PerClass {
            living,
            new,
            retry,
            dead,
        }
    })
}

prop_compose! {
    fn rooms()(most in 1..200_u32)(most in Just(most), in_progress in counts(most), free in 0..=most) -> Room {
        let in_progress = PerClass::each(|class| (*in_progress.of(class)).min(most));
        Room { free: free.min(most.saturating_sub(in_progress.sum())), most, in_progress }
    }
}

fn only(classes: &[Class]) -> PerClass<u32> {
    PerClass::each(|class| {
        if classes.contains(&class) {
            u32::MAX
        } else {
            0
        }
    })
}

/// How many of each class were taken in `rounds` rounds with room for one and no check in progress.
fn one_by_one(shares: &mut Shares, waiting: PerClass<u32>, rounds: u32) -> PerClass<u32> {
    let mut had = PerClass::<u32>::default();
    for _ in 0..rounds {
        let granted = shares.divide(Room::empty(1), waiting);
        had = PerClass::each(|class| had.of(class) + granted.of(class));
    }
    had
}

proptest! {
    #[test]
    fn all_room_is_used_while_anybody_waits_and_never_more(story in prop::collection::vec((rooms(), counts(9)), 1..20)) {
        let mut shares = Shares::default();
        for (room, waiting) in story {
            let granted = shares.divide(room, waiting);
            for class in Class::ALL {
                prop_assert!(granted.of(class) <= waiting.of(class));
            }
            prop_assert_eq!(granted.sum(), room.free.min(waiting.sum()));
        }
    }

    /// Regardless of the past, no crowd and no backlog takes what is a class's share.
    #[test]
    fn who_waits_gets_its_share_of_a_free_room(before in prop::collection::vec((rooms(), counts(9)), 0..20), most in 1..200_u32, waiting in counts(99)) {
        let mut shares = Shares::default();
        for (room, waiting) in before {
            shares.divide(room, waiting);
        }
        let granted = shares.divide(Room::empty(most), waiting);
        for class in Class::ALL {
            let share = most * WEIGHTS.of(class) / SUM;
            prop_assert!(*granted.of(class) >= share.min(*waiting.of(class)), "{:?}: {:?} of {}", class, granted, most);
        }
    }

    /// A class that holds less than its share is served before any that holds more.
    #[test]
    fn who_holds_too_much_waits_for_who_holds_too_little(room in rooms(), before in prop::collection::vec((rooms(), counts(9)), 0..9)) {
        let mut shares = Shares::default();
        for (room, waiting) in before {
            shares.divide(room, waiting);
        }
        let granted = shares.divide(room, only(&Class::ALL));
        let lacks = |class: Class| {
            let own = guaranteed(class, room.most, SUM);
            own.saturating_sub(room.in_progress.of(class) + granted.of(class)) > 0
        };
        let has_too_much = |class: Class| {
            *granted.of(class) > 0 && room.in_progress.of(class) + granted.of(class) > guaranteed(class, room.most, SUM)
        };
        let (poor, rich) = (Class::ALL.into_iter().any(lacks), Class::ALL.into_iter().any(has_too_much));
        prop_assert!(!(poor && rich), "{:?} of {:?}", granted, room);
    }

    /// Every waiting class gets its turn within the number of starts that its weight implies,
    /// whatever other classes wait and however it began.
    #[test]
    fn with_room_for_one_the_turns_go_by_weight(
        classes in prop::sample::subsequence(Class::ALL.to_vec(), 1..=4),
        before in prop::collection::vec((rooms(), counts(9)), 0..20),
    ) {
        let mut shares = Shares::default();
        for (room, waiting) in before {
            shares.divide(room, waiting);
        }
        let sum: u32 = classes.iter().map(|class| WEIGHTS.of(*class)).sum();
        let (rounds, waiting) = (60, only(&classes));
        let had = one_by_one(&mut shares, waiting, rounds * sum);
        for class in Class::ALL {
            let fair = if classes.contains(&class) { rounds * WEIGHTS.of(class) } else { 0 };
            // At most one turn of each other class, left over from before this began.
            prop_assert!(had.of(class).abs_diff(fair) <= 12, "{:?} of {:?}: {:?}", class, classes, had);
        }
    }
}

#[test]
fn who_did_not_wait_has_saved_nothing_up() {
    let mut shares = Shares::default();
    one_by_one(&mut shares, only(&[Class::Living]), 100_000);
    let had = one_by_one(&mut shares, only(&[Class::Living, Class::Dead]), 130);
    assert!((9..=11).contains(&had.dead), "{had:?}");
    one_by_one(&mut shares, only(&[Class::Dead]), 100_000);
    let had = one_by_one(&mut shares, only(&[Class::Living, Class::Dead]), 130);
    assert!((119..=121).contains(&had.living), "{had:?}");
}

/// Checks of dead hosts take `dead_takes` times as long as others, and all classes wait all the
/// time. Returns how many slots each class held on average, in thousandths.
fn held(places: u32, dead_takes: u32) -> PerClass<u32> {
    let mut shares = Shares::default();
    let mut running: Vec<(u32, Class)> = Vec::new();
    let mut sum = PerClass::<u64>::default();
    let rounds = 5_000;
    for round in 0..rounds {
        running.retain(|(until, _)| *until > round);
        let mut in_progress = PerClass::<u32>::default();
        for (_, class) in &running {
            *in_progress.of_mut(*class) += 1;
        }
        let free = places - u32::try_from(running.len()).unwrap();
        let room = Room {
            free,
            most: places,
            in_progress,
        };
        let granted = shares.divide(room, only(&Class::ALL));
        for class in Class::ALL {
            let takes = if class == Class::Dead { dead_takes } else { 1 };
            running.extend((0..*granted.of(class)).map(|_| (round + 3 * takes, class)));
        }
        for (_, class) in &running {
            *sum.of_mut(*class) += 1;
        }
    }
    PerClass::each(|class| u32::try_from(sum.of(class) * 1000 / u64::from(rounds)).unwrap())
}

#[test]
fn overload_leaves_responding_hosts_nine_tenths_of_their_share() {
    for places in [10, 16, 40, 256] {
        for dead_takes in [1, 5, 20] {
            let held = held(places, dead_takes);
            assert!(
                held.living >= places * 1000 * 12 / SUM * 9 / 10,
                "{held:?} of {places}, {dead_takes} times as long"
            );
            assert!(held.dead + 1000 >= places * 1000 / SUM * 9 / 10, "{held:?}");
        }
    }
}

use super::*;

const KEY: HashKey = HashKey([7; 16]);
const DAY: u64 = WINDOW_SECONDS;

fn limit(number: u32) -> Limit {
    Limit::new(number).unwrap()
}

/// Charges `item` at each time in turn and compares which charges were admitted.
#[track_caller]
fn check(counters: &mut Counters, number: u32, times: &[u64], expect: &[bool]) {
    let admitted = |&now| is_admitted(counters, "a", number, now);
    let admitted: Vec<_> = times.iter().map(admitted).collect();
    assert_eq!(admitted, expect);
}

fn is_admitted(counters: &mut Counters, item: &str, number: u32, now_s: u64) -> bool {
    receipt(counters, item, number, now_s).is_some()
}

fn receipt(counters: &mut Counters, item: &str, number: u32, now_s: u64) -> Option<Receipt> {
    match counters.charge(Table::Public, item.as_bytes(), limit(number), now_s) {
        Charge::Admitted { receipt, .. } => Some(receipt),
        Charge::Refused { .. } | Charge::Full => None,
    }
}

#[test]
fn a_window_begins_with_the_first_use_and_ends_exactly_a_day_later() {
    let mut counters = Counters::new(KEY);
    let times = [1000, 1000, 1000, 1000 + DAY - 1, 1000 + DAY, 1000 + DAY];
    let expect = [true, true, false, false, true, true];
    check(&mut counters, 2, &times, &expect);
    // All counters share the window: one that is first used shortly before its end is reset at
    // once.
    assert!(is_admitted(&mut counters, "b", 1, 1000 + 2 * DAY - 1));
    assert!(is_admitted(&mut counters, "b", 1, 1000 + 2 * DAY));
}

#[test]
fn after_idle_days_the_window_is_the_one_that_holds_the_time() {
    let mut counters = Counters::new(KEY);
    check(&mut counters, 1, &[1000], &[true]);
    let later = 1000 + 5 * DAY;
    check(&mut counters, 1, &[later - 1, later - 1], &[true, false]);
    assert_eq!(counters.window_start_s(), Some(later - DAY));
    assert_eq!(counters.window_end_s(), Some(later));
    let times = [later, later + 1, later + DAY - 1];
    check(&mut counters, 1, &times, &[true, false, false]);
}

#[test]
fn a_clock_that_goes_backwards_lets_nothing_more_through() {
    let mut counters = Counters::new(KEY);
    let times = [10 * DAY, 10 * DAY - 1, 0, 9 * DAY];
    check(&mut counters, 1, &times, &[true, false, false, false]);
    // A clock that was ahead for a while does not either.
    let times = [12 * DAY, 10 * DAY, 11 * DAY];
    check(&mut counters, 1, &times, &[true, false, false]);
    check(&mut counters, 1, &[13 * DAY], &[true]);
    let times = [u64::MAX, u64::MAX, 0];
    check(&mut counters, 1, &times, &[true, false, false]);
}

#[test]
fn a_limit_of_zero_admits_nobody_and_a_changed_one_counts_at_once() {
    let mut counters = Counters::new(KEY);
    check(&mut counters, 0, &[0], &[false]);
    assert_eq!(counters.rows().count(), 0);
    check(&mut counters, 3, &[1, 1], &[true, true]);
    check(&mut counters, 1, &[1], &[false]);
    check(&mut counters, 3, &[1, 1], &[true, false]);
}

#[test]
fn tables_share_no_counter() {
    let mut counters = Counters::new(KEY);
    for table in [Table::Key, Table::Domain, Table::Public] {
        let charge = counters.charge(table, b"a", limit(1), 0);
        assert!(matches!(charge, Charge::Admitted { count: 0, .. }));
        let charge = counters.charge(table, b"a", limit(1), 0);
        assert_eq!(charge, Charge::Refused { count: 1 });
    }
    let names: Vec<_> = counters.rows().map(|row| row.table.as_str()).collect();
    assert_eq!(names, ["key", "domain", "public"]);
}

#[test]
fn what_is_given_back_makes_room_in_its_own_window_alone() {
    let mut counters = Counters::new(KEY);
    let first = receipt(&mut counters, "a", 1, 0).unwrap();
    let id = counters.row(&first).id;
    let row = |count| Row {
        table: Table::Public,
        id,
        window_start_s: 0,
        count,
    };
    assert_eq!(counters.row(&first), row(1));
    assert_eq!(counters.give_back(first), Some(row(0)));
    assert_eq!(counters.rows().count(), 0);
    let second = receipt(&mut counters, "a", 1, 0).unwrap();
    assert!(!is_admitted(&mut counters, "a", 1, DAY - 1));
    assert!(is_admitted(&mut counters, "a", 1, DAY));
    assert_eq!(counters.row(&second).count, 0);
    assert_eq!(counters.give_back(second), None);
    assert!(!is_admitted(&mut counters, "a", 1, DAY));
}

#[test]
fn giving_back_what_was_lost_meanwhile_leaves_the_counter_at_zero() {
    let held = receipt(&mut Counters::new(KEY), "a", 1, 0).unwrap();
    let mut without = Counters::resume(KEY, Some(0));
    assert_eq!(without.give_back(held).map(|row| row.count), Some(0));
    check(&mut without, 1, &[0, 0], &[true, false]);
}

#[test]
fn a_row_that_was_never_kept_is_refused() {
    let row = Row {
        table: Table::Domain,
        id: (1 << 45) - 1,
        window_start_s: 5,
        count: 1,
    };
    let mut counters = Counters::resume(KEY, Some(5));
    counters.put(row).unwrap();
    assert_eq!(counters.put(row), Err(RowError::Twice { id: row.id }));
    let id = row.id + 1;
    assert_eq!(counters.put(Row { id, ..row }), Err(RowError::Id { id }));
    let id = row.id;
    for count in [0, Limit::MAX.get() + 1] {
        let refused = counters.put(Row { count, ..row });
        assert_eq!(refused, Err(RowError::Count { id, count }));
    }
    // A row of an earlier window that was not deleted yet.
    let earlier = Row {
        id: 1,
        window_start_s: 4,
        ..row
    };
    counters.put(earlier).unwrap();
    assert_eq!(counters.rows().collect::<Vec<_>>(), [row]);
    // A row of a later window: that window had begun, even if it is not recorded elsewhere.
    let later = Row {
        id: 2,
        window_start_s: 5 + DAY,
        ..row
    };
    counters.put(later).unwrap();
    assert_eq!(counters.rows().collect::<Vec<_>>(), [later]);
    assert_eq!(counters.window_start_s(), Some(5 + DAY));
}

#[test]
fn the_greatest_count_and_id_fit_into_their_word() {
    let greatest = Row {
        table: Table::Key,
        id: (1 << 45) - 1,
        window_start_s: 0,
        count: Limit::MAX.get(),
    };
    let least = Row {
        id: 0,
        count: 1,
        ..greatest
    };
    let mut counters = Counters::resume(KEY, Some(0));
    counters.put(greatest).unwrap();
    counters.put(least).unwrap();
    assert_eq!(counters.rows().collect::<Vec<_>>(), [least, greatest]);
}

#[test]
fn a_full_table_takes_no_further_counter_and_keeps_those_it_has() {
    let mut counters = Counters {
        counters_max: 3,
        ..Counters::new(KEY)
    };
    let kept = receipt(&mut counters, "a", 9, 0).unwrap();
    assert!(is_admitted(&mut counters, "b", 9, 0));
    assert!(is_admitted(&mut counters, "c", 9, 0));
    let further = counters.charge(Table::Public, b"d", limit(9), 1);
    assert_eq!(further, Charge::Full);
    let row = Row {
        id: 1,
        ..counters.row(&kept)
    };
    assert_eq!(counters.put(row), Err(RowError::Full));
    assert_eq!(counters.tables.of(Table::Public).len(), 3);
    assert!(is_admitted(&mut counters, "a", 9, 1));
    let other_table = counters.charge(Table::Key, b"d", limit(9), 1);
    assert!(matches!(other_table, Charge::Admitted { .. }));
    for item in ["d", "e", "f"] {
        assert!(is_admitted(&mut counters, item, 9, DAY));
    }
    assert!(!is_admitted(&mut counters, "g", 9, DAY));
}

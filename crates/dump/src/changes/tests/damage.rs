use super::*;
use crate::Rows;

/// Three days with a change each, and a mirror of each dump except the last.
fn three_days() -> (World, Vec<Mirror>) {
    let mut world = World::new();
    let mut mirrors = Vec::new();
    for (day, host) in (0..).zip(["a.example", "b.example", "c.example"]) {
        world.list(host, "1");
        world.publish(MIDNIGHT + DAY * day);
        mirrors.push(world.mirror());
    }
    (world, mirrors)
}

#[test]
fn a_former_list_that_is_damaged_starts_anew_and_says_why() {
    let (world, _) = three_days();
    let rows = world.published.clone().unwrap();
    let mut line = |instance: &ListedRow| serde_json::to_string(instance).unwrap() + "\n";
    let whole: String = rows.iter().map(&mut line).collect();
    let reversed: String = rows.iter().rev().map(&mut line).collect();
    let cut = whole.trim_end().to_owned();
    let long = whole.clone() + &"x".repeat(9000);
    let not_text = whole.clone() + "\u{0}\n";
    // Another valid name: only the digest detects it.
    let flipped = whole.replace("b.example", "b.exbmple");
    let outcome_of = |former: &str| {
        let written = write_changes(
            &world.tree(),
            &about(),
            at(MIDNIGHT + 3 * DAY),
            Some(rows_of(former)),
            world.rows().into_iter().map(Ok::<_, DumpError>),
            |host| Ok(world.standing(host)),
            |host| Ok(world.has_left(host)),
        );
        written.unwrap().outcome
    };
    for former in [&reversed, &cut, &long, &not_text, &flipped] {
        let outcome = outcome_of(former);
        assert_eq!((outcome.since, outcome.counts), (None, Counts::default()));
        assert!(outcome.starts_anew.is_some(), "{former}");
        assert_eq!(outcome.hosts, 3);
    }
    assert_eq!(outcome_of(&whole).since, Some(at(MIDNIGHT + 2 * DAY)));
}

fn rows_of(text: &str) -> Rows {
    let bytes = io::Cursor::new(text.as_bytes().to_vec());
    Rows::new("rows".into(), Box::new(bytes))
}

#[test]
fn a_damaged_file_goes_with_what_it_names_and_the_others_stay() {
    for day in ["2026-11-22", "2026-11-23", "2026-11-24"] {
        let (mut world, mirrors) = three_days();
        let path = world.folder().join(format!("{day}.ndjson"));
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        world.list("d.example", "1");
        let outcome = world.publish(MIDNIGHT + 3 * DAY);
        assert_eq!(outcome.damaged.len(), 1, "{:?}", outcome.damaged);
        assert!(outcome.damaged[0].contains(day), "{:?}", outcome.damaged);
        assert!(!path.exists());
        let is_newest = day == "2026-11-24";
        assert_eq!(outcome.since.is_none(), is_newest, "{day}");
        let truth = held(&world.mirror());
        for mut mirror in mirrors {
            if follow(&mut mirror, &world.files()).is_ok() {
                assert_eq!(held(&mirror), truth);
            }
        }
    }
}

#[test]
fn no_flipped_bit_is_taken_for_what_was_written() {
    let (world, mirrors) = three_days();
    let (files, truth) = (world.files(), held(&world.mirror()));
    let name = "2026-11-24.ndjson";
    for at in 0..files[name].len() {
        for bit in 0..8 {
            let mut files = files.clone();
            files.get_mut(name).unwrap()[at] ^= 1 << bit;
            let mut mirror = mirrors[1].clone();
            if follow(&mut mirror, &files).is_ok() {
                assert_eq!(held(&mirror), truth, "bit {bit} of byte {at}");
                panic!("bit {bit} of byte {at} was not noticed");
            }
        }
    }
}

#[test]
fn a_file_that_was_cut_or_mixed_up_is_not_read() {
    let (world, _) = three_days();
    let whole = world.files()["2026-11-24.ndjson"].clone();
    for length in 1..whole.len() {
        assert!(crate::line::parse(&whole[..length]).is_err(), "{length}");
    }
    let text = String::from_utf8(whole).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines.reverse();
    assert!(crate::line::parse((lines.join("\n") + "\n").as_bytes()).is_err());
}

#[test]
fn a_file_of_another_day_or_longer_than_any_goes() {
    let (mut world, _) = three_days();
    let folder = world.folder();
    let [long, other, known] = [20, 21, 23].map(|day| folder.join(format!("2026-11-{day}.ndjson")));
    std::fs::copy(known, &other).unwrap();
    std::fs::write(&long, vec![b'\n'; DAY_FILE_BYTES_MAX + 1]).unwrap();
    std::fs::create_dir(folder.join("not-a-day.ndjson")).unwrap();
    let outcome = world.publish(MIDNIGHT + 3 * DAY);
    assert_eq!(outcome.damaged.len(), 2, "{:?}", outcome.damaged);
    assert!(outcome.since.is_some());
    assert!(!other.exists() && !long.exists());
}

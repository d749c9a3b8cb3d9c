use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use protocol::Host;

use super::*;
use crate::answers::why::{Place, Why};
use crate::write::tests::{instance, tree};

const WAITING: Answer = Answer {
    place: Place::Waiting,
    why: Why::Waiting,
    ..Answer::WITHHELD
};

const MADE_MS: i64 = 1_700_000_000_000;

fn keys(salt: Salt, count: u32) -> Vec<Key> {
    let key = |number| Key::of(salt, &Host::parse(&format!("h{number}.example")).unwrap());
    (0..count).map(key).collect()
}

/// All shards by name; checks that plain and gzipped files are equal.
fn written(folder: &Path) -> BTreeMap<String, serde_json::Value> {
    let read = |entry: io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
        let plain = fs::read(&path).unwrap();
        let zipped = fs::read(path.with_extension("json.gz")).unwrap();
        let mut unzipped = Vec::new();
        flate2::read::GzDecoder::new(zipped.as_slice())
            .read_to_end(&mut unzipped)
            .unwrap();
        assert!(plain == unzipped, "{name}");
        Some((name.to_owned(), serde_json::from_slice(&plain).unwrap()))
    };
    fs::read_dir(folder).unwrap().filter_map(read).collect()
}

fn unlisted(tree: &Tree) -> Listed<'_> {
    list::List::new(tree).unwrap().finish().unwrap()
}

fn write(tree: &Tree, salt: Salt, keys: &[Key]) -> u8 {
    let mut shards = Shards::new(tree).unwrap();
    for key in keys {
        shards.push(*key, &WAITING).unwrap();
    }
    let written = shards
        .write(Moment::from_milliseconds(MADE_MS), salt, &unlisted(tree))
        .unwrap();
    assert_eq!(written.answers, keys.len() as u64);
    let index = fs::read_to_string(tree.path("why/index.json")).unwrap();
    let digits = written.shape.digits;
    let all = fs::metadata(tree.path(&format!("why/{salt}/all.bin"))).unwrap();
    let all = all.len();
    let expect = format!(
        "{{\"made\":1700000000,\"salt\":\"{salt}\",\"digits\":{digits},\"all_bytes\":{all}}}\n"
    );
    assert_eq!(index, expect);
    assert!(all > 10 * keys.len() as u64, "{all}");
    digits
}

#[test]
fn every_answer_lies_where_its_key_says_and_every_shard_is_there() {
    let folder = tempfile::tempdir().unwrap();
    for (count, digits) in [(0, 1), (16_383, 1), (16_384, 2)] {
        let tree = tree(folder.path());
        let salt = Salt::from_random(count.into());
        let keys = keys(salt, count);
        assert_eq!(write(&tree, salt, &keys), digits, "{count}");
        let places = fs::read_dir(tree.path(FOLDER)).unwrap();
        assert_eq!(places.count(), 2, "the index and the shards");
        let shards = written(&tree.path(&format!("why/{salt}")));
        assert_eq!(shards.len(), 1 << (4 * digits));
        let mean = count / (1 << (4 * digits));
        let mut found = 0;
        for (name, shard) in &shards {
            assert_eq!(shard["made"], 1_700_000_000, "{name}");
            let entries = shard["hosts"].as_object().unwrap().len();
            assert!(
                count < 64 || entries <= 2 * mean as usize,
                "{name}: {entries}"
            );
            found += entries;
        }
        assert_eq!(found, keys.len());
        for key in keys {
            let name: String = key.digits().chars().take(digits.into()).collect();
            assert_eq!(shards[&name]["hosts"][key.entry()][0], "waiting");
        }
    }
}

#[test]
fn of_two_answers_with_one_key_one_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let salt = Salt::from_random(1);
    let tree = tree(folder.path());
    let mut shards = Shards::new(&tree).unwrap();
    for key in keys(salt, 3).into_iter().chain(keys(salt, 2)) {
        shards.push(key, &WAITING).unwrap();
    }
    let written = shards
        .write(Moment::from_milliseconds(MADE_MS), salt, &unlisted(&tree))
        .unwrap();
    assert_eq!(written.answers, 3);
}

#[test]
fn a_listed_host_has_its_line_and_a_line_alone_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path());
    let salt = Salt::from_random(1);
    let (mut shards, mut list) = (Shards::new(&tree).unwrap(), list::List::new(&tree).unwrap());
    let listed = Answer {
        place: Place::ALL[1],
        why: Why::Lives,
        ..WAITING
    };
    let names = ["a.example", "alone.example", "hidden.example"];
    for (name, answer) in names
        .into_iter()
        .zip([Some(listed), None, Some(Answer::WITHHELD)])
    {
        let key = Key::of_name(salt, name);
        let (_, span) = list.push(&instance(name, "soft")).unwrap();
        shards.listed(key, span).unwrap();
        if let Some(answer) = answer {
            shards.push(key, &answer).unwrap();
        }
    }
    let list = list.finish().unwrap();
    let made = Moment::from_milliseconds(MADE_MS);
    assert_eq!(shards.write(made, salt, &list).unwrap().answers, 2);
    let shards = written(&tree.path(&format!("why/{salt}")));
    let entry = |name| {
        let key = Key::of_name(salt, name);
        let shard: String = key.digits().chars().take(1).collect();
        shards[&shard]["hosts"][key.entry()].clone()
    };
    let alive = serde_json::json!([
        "alive", "lives", null, true, null, null, null, "1970-01", "soft", ""
    ]);
    assert_eq!(entry("a.example"), alive);
    assert_eq!(entry("alone.example"), serde_json::Value::Null);
    assert_eq!(entry("hidden.example").as_array().unwrap().len(), 6);
}

#[test]
fn shards_grow_in_number_and_never_hold_less_than_hides_a_name() {
    for (answers, expect) in [(0, 1), (262_143, 2), (262_144, 3), (u64::MAX, 3)] {
        assert_eq!(Shape::of(answers).digits, expect, "{answers}");
    }
}

/// Set in the child process whose memory is measured.
const CHILD: &str = "FEDICENSUS_TEST_SKEWED_ANSWERS";

/// 6.5 MiB is usual. A shard held in memory as text takes some 190 MiB.
const GROWTH_KIB_MAX: u64 = 16 * 1024;

#[test] // S69
fn half_a_million_answers_of_one_prefix_take_little_memory() {
    if std::env::var_os(CHILD).is_some() {
        write_half_a_million();
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact"])
        .arg("answers::shards::tests::half_a_million_answers_of_one_prefix_take_little_memory")
        .env(CHILD, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    let line = told.lines().find(|line| line.starts_with("peak memory"));
    println!("{}", line.expect("a figure"));
}

fn write_half_a_million() {
    let folder = tempfile::tempdir().unwrap();
    let before = peak_kib();
    let tree = tree(folder.path());
    let mut shards = Shards::new(&tree).unwrap();
    for number in 0..500_000_u64 {
        let mut key = [0xab, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0];
        let rest = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        key[2..].copy_from_slice(&rest.to_be_bytes());
        shards.push(Key::from_bytes(key), &WAITING).unwrap();
    }
    let salt = Salt::from_random(1);
    let written = shards
        .write(Moment::from_milliseconds(MADE_MS), salt, &unlisted(&tree))
        .unwrap();
    assert_eq!(written.answers, 500_000);
    let after = peak_kib();
    let shard = tree.path(&format!("why/{salt}/abc.json"));
    let bytes = fs::metadata(shard).unwrap().len();
    let growth = after - before;
    println!("peak memory grew by {growth} KiB, to {after} KiB, over a shard of {bytes} bytes");
    assert!(growth < GROWTH_KIB_MAX, "{growth}");
}

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

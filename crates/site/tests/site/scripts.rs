//! Runs the scripts in Node and compares their results with those of the crates.

use std::path::Path;
use std::process::Command;

use census::state::StateName;
use dump::{ListedRow, ListedState, Moment};
use protocol::Host;
use publish::{Cancel, Disk, Tree};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use site::facts::{ByState, Facts, Intake, Push, Reading};
use site::fixes::VersionHistory;
use site::{Answer, Found, Place, Salt, Site, Why};

/// Paths below the assets.
const SCRIPTS: [&str; 15] = [
    "sha256.js",
    "name.js",
    "why.js",
    "rows.js",
    "plot.js",
    "owners.js",
    "push.js",
    "notify.js",
    "stale.js",
    "known/known.js",
    "known/hosts.js",
    "known/peers.js",
    "../../../examples/autocomplete.js",
    "../../../examples/share.js",
    "../../../examples/chooser.js",
];

/// Runs `program` as a module next to the scripts, with `input` as JSON. Returns its output as
/// JSON; `None` if Node is missing and not required.
pub(crate) fn node(program: &str, input: &Value) -> Option<Value> {
    let folder = tempfile::tempdir().unwrap();
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
    for script in SCRIPTS {
        let name = Path::new(script).file_name().unwrap();
        std::fs::copy(assets.join(script), folder.path().join(name)).unwrap();
    }
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("package.json", r#"{"type":"module"}"#);
    write("input.json", &input.to_string());
    write(
        "main.js",
        &format!(
            "import {{ readFileSync }} from 'node:fs';\nconst input = JSON.parse(readFileSync(new URL('./input.json', import.meta.url), 'utf8'));\n{program}"
        ),
    );
    let output = kit::output(Command::new("node").arg(folder.path().join("main.js")))?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn readers_see_by_their_own_clock_that_a_list_is_old() {
    let read = "2026-11-29T12:00:00Z";
    let program = "import { notice } from './stale.js';\nconst at = (now) => notice(input, Date.parse(now));\nconsole.log(JSON.stringify(['2026-11-29T11:00:00Z', '2026-11-30T11:59:59Z', '2026-11-30T12:00:00Z', '2026-12-03T12:00:00Z'].map(at)));";
    let Some(said) = node(program, &json!(read)) else {
        return;
    };
    let old = |days: &str| {
        json!(format!(
            "This census has published no new list for {days}. Something is wrong with it, and what you see is as old."
        ))
    };
    assert_eq!(said, json!(["", "", old("a day"), old("4 days")]));
}

#[test]
fn the_scripts_hash_is_sha_256() {
    let mut texts = vec![
        String::new(),
        "abc".to_owned(),
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".to_owned(),
        "bücher ☕".to_owned(),
        "a".repeat(100_000),
    ];
    // Every length around the borders of a block.
    texts.extend((0..260).map(|length| "x".repeat(length)));
    let program =
        "import { sha256 } from './sha256.js';\nconsole.log(JSON.stringify(input.map(sha256)));";
    let Some(hashes) = node(program, &json!(texts)) else {
        return;
    };
    let expect: Vec<_> = texts
        .iter()
        .map(|text| hex::encode(Sha256::digest(text.as_bytes())))
        .collect();
    assert_eq!(hashes, json!(expect));
    // FIPS 180-4's own example, so that the two implementations can't share a mistake unnoticed.
    assert_eq!(
        hashes[1],
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn the_script_takes_names_as_the_census_does() {
    let names = [
        "Mastodon.Social",
        "a.example.",
        "bücher.example",
        "BÜCHER.example",
        "xn--bcher-kva.example",
        "faß.example",
        "☕.example",
        "例え.example",
        "a-b.example",
        "1.example",
        "localhost",
        "a_b.example",
        "-a.example",
        "a-.example",
        "ab--c.example",
        "1.2.3.4",
        "a..example",
        ".example",
        "a.example..",
        "a b.example",
        "xn--zz-.example",
        "\u{ad}a.example",
        "a\u{200d}b.example",
    ];
    let long = [
        format!("{}.example", "a".repeat(64)),
        format!("{}example", "a.".repeat(130)),
    ];
    let names: Vec<&str> = names
        .into_iter()
        .chain(long.iter().map(String::as_str))
        .collect();
    let program = "import { canonical } from './name.js';\nconsole.log(JSON.stringify(input.map((text) => canonical(text).host ?? null)));";
    let Some(found) = node(program, &json!(names)) else {
        return;
    };
    for (name, found) in names.iter().zip(found.as_array().unwrap()) {
        let expect = Host::parse(name).ok();
        assert_eq!(found.as_str(), expect.as_ref().map(Host::as_str), "{name}");
    }
}

#[test]
fn what_is_pasted_leads_to_its_host() {
    let typed = [
        "https://a.example/",
        "HTTP://A.Example/@user/1?x#y",
        "@user@a.example",
        "user@a.example",
        "a.example:443",
        "https://user:pass@a.example:8443/x",
        "  a.example\n",
        "//a.example/x",
        "a.example/about",
    ];
    let odd = [
        "",
        " ",
        "http://",
        "a",
        "[::1]",
        "https://127.0.0.1/",
        "2130706433",
        "a.example:99999",
        "%",
    ];
    let program = "import { canonical } from './name.js';\nconsole.log(JSON.stringify(input.map(canonical)));";
    let Some(found) = node(program, &json!([typed.as_slice(), &odd].concat())) else {
        return;
    };
    let found = found.as_array().unwrap();
    for (typed, found) in typed.iter().zip(found) {
        assert_eq!(found["host"], "a.example", "{typed}");
    }
    for (typed, found) in odd.iter().zip(found.iter().skip(typed.len())) {
        assert!(
            found["problem"]
                .as_str()
                .is_some_and(|words| words.ends_with('.')),
            "{typed}: {found}"
        );
        assert!(found.get("host").is_none(), "{typed}");
    }
}

fn facts() -> Facts {
    Facts {
        made: Moment::from_milliseconds(1_795_000_000_000),
        rows_read: Moment::from_milliseconds(1_795_000_000_000),
        user_agent: "Fedicensus/0.1.0 (+https://census.example)".to_owned(),
        title: "Fedicensus".to_owned(),
        operator: None,
        licence: "CC0-1.0".to_owned(),
        contact: "https://census.example".to_owned(),
        address: None,
        intake: Intake::Closed,
        push: Push::Closed,
        reading: Reading::Instances,
        known: ByState::new(),
        progress: None,
        trouble: None,
        salt: Salt::from_random(7),
        history: Vec::new(),
        versions: VersionHistory::default(),
        published: dump::PublishedSet::default(),
    }
}

#[test]
fn the_script_finds_every_answer_and_none_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::begin(Disk::SYSTEM, folder.path(), &Cancel::default()).unwrap();
    let mut site = Site::begin(&tree, facts()).unwrap();
    let hosts: Vec<String> = (100..400)
        .map(|number| format!("h{number}.example"))
        .collect();
    for host in &hosts {
        let at = Moment::from_milliseconds(1_700_000_000_000);
        let row = ListedRow {
            host: host.clone(),
            state: ListedState::Alive,
            instance: kit::software("a&b", "4.5"),
            first_seen: at,
            last_alive: at,
        };
        site.instance(&row).unwrap();
    }
    for (host, why) in hosts.iter().zip(Why::ALL.iter().cycle()) {
        let answer = Answer {
            place: Place::Known(StateName::Alive),
            why: *why,
            found: Some(Found::Refused(None)),
            last_checked: Some(Moment::from_milliseconds(1_700_000_000_000)),
            ..Answer::WITHHELD
        };
        site.answer(&Host::parse(host).unwrap(), &answer).unwrap();
    }
    site.finish().unwrap();
    let program = "import { indexOf, place, read } from './why.js';
        const index = indexOf(JSON.parse(readFileSync(input.folder + '/why/index.json', 'utf8')));
        const ask = (host) => {
          const { path, key } = place(host, index);
          return read(JSON.parse(readFileSync(input.folder + path, 'utf8')), key) ?? null;
        };
        const odd = [null, [], 7, 'x', {}, { hosts: null }, { hosts: { k: 7 } }, { hosts: { k: [] } }];
        console.log(JSON.stringify({
          found: input.hosts.map(ask),
          unknown: ask('unknown.example'),
          odd: odd.map((shard) => read(shard, 'k') ?? null),
          oddIndexes: [null, 7, {}, { digits: 1 }, ...[['x', 1], ['../'.repeat(11), 1], [7, 1], [index.salt, '1'], [index.salt, 0], [index.salt, 4], [index.salt, 1.5]]
            .map(([salt, digits]) => ({ salt, digits }))].map((index) => indexOf(index) ?? null),
        }));";
    let input = json!({ "folder": tree.folder(), "hosts": hosts });
    let Some(output) = node(program, &input) else {
        return;
    };
    for ((host, found), why) in hosts
        .iter()
        .zip(output["found"].as_array().unwrap())
        .zip(Why::ALL.iter().cycle())
    {
        let is_listed = why.is_listed();
        let expect = json!({
            "state": "alive", "why": why.as_str(), "found": "refused", "listed": is_listed,
            "asked": 1_700_000_000, "next": null, "leaves": null,
            "since": if is_listed { "2023-11" } else { "" },
            "software": if is_listed { "a&b" } else { "" }, "version": if is_listed { "4.5" } else { "" },
        });
        assert_eq!(*found, expect, "{host}");
    }
    assert_eq!(output["unknown"], Value::Null);
    assert!(
        output["odd"].as_array().unwrap().iter().all(Value::is_null),
        "{output}"
    );
    let odd_indexes = output["oddIndexes"].as_array().unwrap();
    assert!(odd_indexes.iter().all(Value::is_null), "{output}");
}

/// Each publication has a separate salt and separate files, and removes those of the former one.
#[test]
fn a_reader_between_two_publications_gets_the_answer_of_the_new_one() {
    let program = "import { find, place } from './why.js';
        const [old, young] = ['a', 'b'].map((digit) => ({ salt: digit.repeat(32), digits: 2 }));
        const { path, key } = place('a.example', young);
        const entry = ['alive', 'lives', 'alive', true, 7, 9];
        let asked = [];
        const told = async (indexes, files) => {
          asked = [];
          globalThis.fetch = async (path, options) => {
            asked.push([path, options.cache, options.credentials]);
            const file = path === '/why/index.json' ? indexes.shift() : files[path];
            return { ok: file !== undefined, status: file === undefined ? 404 : 200, json: async () => file };
          };
          return find('a.example').catch((error) => error.message);
        };
        const replaced = await told([old, young], { [path]: { made: 7, hosts: { [key]: entry } } });
        const requests = asked;
        const unknown = await told([young], { [path]: { made: 7, hosts: {} } });
        const missing = await told([old, young], {});
        const none = await told([], {});
        console.log(JSON.stringify({ requests, young: path, replaced, unknown, missing, none }));";
    let Some(output) = node(program, &Value::Null) else {
        return;
    };
    let young = output["young"].as_str().unwrap();
    let shard = |salt: String| {
        let hash = hex::encode(Sha256::digest(format!("{salt}a.example")));
        format!("/why/{salt}/{:.2}.json", hash)
    };
    assert_eq!(young, shard("b".repeat(32)));
    let index = json!(["/why/index.json", "no-cache", "omit"]);
    let expect = json!({
        "requests": [index, [shard("a".repeat(32)), "default", "omit"], index, [young, "default", "omit"]],
        "young": young,
        "replaced": {
            "entry": { "state": "alive", "why": "lives", "found": "alive", "listed": true, "asked": 7, "next": 9, "leaves": null, "since": "", "software": "", "version": "" },
            "made": 7,
        },
        "unknown": { "made": 7 },
        "missing": "they are being published again",
        "none": "their index is missing or of another version",
    });
    assert_eq!(output, expect);
}

#[test]
fn a_listed_host_has_links_to_others_like_it_and_a_badge() {
    let program = "import { alike, badge } from './why.js';
        console.log(JSON.stringify([alike('a&b', '4.5'), alike('a', ''), badge('a.example', '2026-12', 'https://census.example')]));";
    let Some(links) = node(program, &Value::Null) else {
        return;
    };
    let code = r#"<a href="https://census.example/why.html#a.example"><img src="known-since-2026-12.svg" alt="Known since 2026-12" width="168" height="28"></a>"#;
    assert_eq!(
        links,
        json!(["/?software=a%26b&version=4.5", "/?software=a", code])
    );
}

#[test]
fn moments_are_told_in_words() {
    let program = "import { moment, next } from './why.js';
        const now = 1700000000;
        console.log(JSON.stringify([
          moment(now, now), moment(now - 60, now), moment(now - 5 * 3600, now), moment(now + 9 * 86400, now),
          next('dead', null, now), next('waiting', null, now), next('alive', now - 7200, now), next('alive', now + 7200, now),
        ]));";
    let Some(words) = node(program, &Value::Null) else {
        return;
    };
    let expect = json!([
        "2023-11-14 22:13 UTC (now)",
        "2023-11-14 22:12 UTC (1 minute ago)",
        "2023-11-14 17:13 UTC (5 hours ago)",
        "2023-11-23 22:13 UTC (in 9 days)",
        "Not as long as this persists.",
        "",
        "Due 2023-11-14 20:13 UTC (2 hours ago). The next publication has its result.",
        "2023-11-15 00:13 UTC (in 2 hours)."
    ]);
    assert_eq!(words, expect);
}

#[test]
fn one_advice_is_given_and_what_was_found_goes_first_where_it_says_more() {
    let program = "import { advice } from './why.js';
        const reason = 'Wait.';
        console.log(JSON.stringify([
          advice({ reason, found: 'Renew it.', foundTellsMore: true }), advice({ reason, found: '', foundTellsMore: true }),
          advice({ reason, found: 'Renew it.', foundTellsMore: false }), advice({ reason: '', found: '', foundTellsMore: false }),
        ]));";
    let Some(advice) = node(program, &Value::Null) else {
        return;
    };
    assert_eq!(advice, json!(["Renew it.", "Wait.", "Wait.", ""]));
}

#[test]
fn the_census_answer_to_an_owner_is_put_in_words() {
    let program = "import { choices, outcome } from './owners.js';
        console.log(JSON.stringify([
          outcome(202, { host: 'a.example', state: 'waiting', words: 'accepted' }, 'join'), outcome(200, null, 'leave'),
          outcome(200, { state: 'alive', words: 'It is listed. The last check was at 2026-11-30T11:16:06Z: it is up.' }, 'look'),
          outcome(403, { status: 403, code: 'no_proof', detail: 'no record says so' }), outcome(429, { code: 'no_room', detail: 'Wait.' }),
          outcome(502, null), outcome(503, '<html>'),
          ...['opted_out', 'unknown', 'forgotten', 'waiting', 'alive'].map(choices),
        ]));";
    let Some(found) = node(program, &Value::Null) else {
        return;
    };
    let expect = json!([
        { "state": "waiting", "text": "Done: accepted." },
        { "text": "Done." },
        { "state": "alive", "text": "It is listed. The last check was at 2026-11-30 11:16 UTC: it is up." },
        { "text": "Not done: no record says so." },
        { "text": "Not done: Wait." },
        { "text": "Not done: the server answered with status 502." },
        { "text": "Not done: the server answered with status 503." },
        { "leave": false, "join": "Come back" },
        { "leave": false, "join": "Submit" },
        { "leave": false, "join": "Submit" },
        { "leave": true, "join": "" },
        { "leave": true, "join": "" },
    ]);
    assert_eq!(found, expect);
}

/// The daemon's own test has the same record.
#[test]
fn owners_record_is_the_hash_of_host_and_secret() {
    let program = "import { record, secretOf } from './owners.js';
        console.log(JSON.stringify([secretOf([0, 255, 16]), record('a.example', secretOf(new Uint8Array(32)))]));";
    let Some(found) = node(program, &Value::Null) else {
        return;
    };
    let secret = "0".repeat(64);
    let hash = Sha256::digest(format!("fedicensus/v1/proof a.example {secret}"));
    let value = format!("fedicensus-proof={}", hex::encode(hash));
    let record = json!({ "name": "_fedicensus.a.example", "value": value });
    assert_eq!(found, json!(["00ff10", record]));
}

const HEADER: &str =
    "host\tsoftware\tversion\tstate\topen_registrations\tfirst_seen\tlast_alive\tunicode";

const ROWS: [&str; 6] = [
    "a.example\tmastodon\t4.10.0\talive\tyes\t2024-01-02\t2026-11-22\t",
    "b.example\tLemmy\t0.19\tdying\tno\t2025-01-02\t2026-11-20\t",
    "by-lemmy.example\tmastodon\t4.9.1\talive\tyes\t2026-11-20\t2026-11-22\t",
    "c.example\t\t\talive\t\t2023-01-02\t2026-11-21\t",
    "lemmy.example\tpleroma\t2.1\tmoving\t\t2026-11-22\t2026-11-22\t",
    "xn--bcher-kva.example\tmastodon\t4.9.1\talive\tno\t2024-01-02\t2026-11-22\tbücher.example",
];

fn list() -> String {
    format!("{HEADER}\n{}\n", ROWS.join("\n"))
}

#[test]
fn the_list_is_read_sorted_and_shown_in_parts() {
    let program = "import { COLUMNS, fields, inSight, parse, sorted } from './rows.js';
        const table = parse(input);
        let refused = false;
        try { parse('<!DOCTYPE html>'); } catch { refused = true; }
        const by = (sort, rows = [5, 4, 3, 2, 1, 0]) => [...sorted(table, rows, sort)];
        console.log(JSON.stringify({
          lines: [...Array(table.count).keys()].map((row) => { const found = fields(table, row); return COLUMNS.map((name) => found[name]).join('\\t'); }),
          refused, empty: parse(input.split('\\n')[0] + '\\n').count,
          names: by('-host'), software: by('software'), versions: by('version'), newest: by('-first_seen', [5, 1, 0]),
          sight: [inSight(0, 100, 10, 1000), inSight(5000, 100, 10, 1000), inSight(9900, 100, 10, 1000), inSight(50, 100, 10, 3), inSight(0, 100, 10, 0)],
        }));";
    let Some(output) = node(program, &json!(list())) else {
        return;
    };
    let expect = json!({
        "lines": ROWS, "refused": true, "empty": 0,
        "names": [5, 4, 3, 2, 1, 0], "software": [1, 0, 2, 5, 4, 3],
        "versions": [1, 4, 2, 5, 0, 3], "newest": [1, 0, 5],
        "sight": [
            { "first": 0, "end": 30 }, { "first": 490, "end": 520 }, { "first": 980, "end": 1000 },
            { "first": 0, "end": 3 }, { "first": 0, "end": 0 },
        ],
    });
    assert_eq!(output, expect);
}

#[test]
fn host_matches_come_first_and_filters_leave_out_the_rest() {
    let queries = [
        ("?q=lemmy", json!([4, 2, 1])),
        ("?q=LEMMY+dying", json!([])),
        ("?q=lemmy+0.19", json!([1])),
        ("?q=https://lemmy.example/@a", json!([4, 2])),
        ("?q=@a@b.example", json!([1])),
        ("?q=bücher", json!([5])),
        ("?q=BÜCHER.example", json!([5])),
        ("?q=4.9", json!([2, 5])),
        ("?software=mastodon", json!([2, 0, 5])),
        ("?software=mastodon&version=4.9", json!([2, 5])),
        ("?software=lemmy", json!([])),
        ("?state=moving", json!([4])),
        ("?state=dead", json!([4, 2, 1, 0, 5, 3])),
        ("?signup=yes&sort=host", json!([0, 2])),
        ("?signup=unknown", json!([4, 3])),
        ("?since=7", json!([4, 2])),
        ("?since=1", json!([4])),
        ("?sort=-version", json!([3, 0, 2, 5, 4, 1])),
        ("?q=lemmy&sort=host", json!([1, 2, 4])),
    ];
    let program = "import { found, parse, readQuery } from './rows.js';
        const table = parse(input.list);
        console.log(JSON.stringify(input.queries.map((query) => [...found(table, readQuery(query), '2026-11-22')])));";
    let input = json!({ "list": list(), "queries": queries.iter().map(|(query, _)| *query).collect::<Vec<_>>() });
    let Some(found) = node(program, &input) else {
        return;
    };
    for ((query, expect), found) in queries.iter().zip(found.as_array().unwrap()) {
        assert_eq!(found, expect, "{query}");
    }
}

#[test]
fn what_is_shown_is_in_the_address_and_comes_back_from_it() {
    let addresses = [
        "",
        "?q=a+b&software=%3Cb%3E&version=4.5&state=dying&signup=unknown&since=30&sort=-host",
        "?q=b%C3%BCcher",
    ];
    let odd = [
        "?sort=unicode&state=x&since=2&foo=1",
        "?sort=--host",
        "?sort=",
    ];
    let program = "import { narrows, readQuery, writeQuery } from './rows.js';
        console.log(JSON.stringify(input.map((address) => [writeQuery(readQuery(address)), narrows(readQuery(address))])));";
    let input = json!([addresses.as_slice(), &odd].concat());
    let Some(found) = node(program, &input) else {
        return;
    };
    let found = found.as_array().unwrap();
    for (address, found) in addresses.iter().zip(found) {
        assert_eq!(*found, json!([address, !address.is_empty()]));
    }
    for found in &found[addresses.len()..] {
        assert_eq!(*found, json!(["", false]));
    }
}

#[test]
fn a_plots_values_are_read_at_the_nearest_day() {
    let program = "import { nearest, reading } from './plot.js';
        const days = [0, 7, 14];
        console.log(JSON.stringify([
          nearest([0], 0.7), nearest(days, -1), nearest(days, 0.2), nearest(days, 0.3), nearest(days, 2),
          reading('2024-02-28', 7, [{ name: 'new', value: 1234.5 }, { name: 'gone', value: undefined }]),
        ]));";
    let Some(found) = node(program, &Value::Null) else {
        return;
    };
    assert_eq!(
        found,
        json!([0, 0, 0, 1, 2, "6 Mar 2024: 1\u{a0}234.5 new"])
    );
}

/// The delay for a reader: a key stroke in a list of 30 000 rows, and in one of a million. The
/// bounds are ten times the time on an idle core, so that a busy machine does not fail them.
#[test]
fn a_key_stroke_is_answered_at_once_in_30_000_rows_and_soon_in_a_million() {
    let program = "import { found, parse, readQuery } from './rows.js';
        const timed = (what) => { const start = performance.now(); what(); return Math.round(performance.now() - start); };
        const measure = (count) => {
          const rows = [];
          for (let i = 0; i < count; i += 1) rows.push(`h${i}.example\\tsoftware${i % 200}\\t4.${i % 70}.${i % 9}\\talive\\tyes\\t2025-01-0${1 + (i % 9)}\\t2026-11-22\\t`);
          const text = `${input}\\n${rows.join('\\n')}\\n`;
          let table;
          const parsed = timed(() => { table = parse(text); });
          const stroke = (query) => timed(() => found(table, readQuery(query), '2026-11-22'));
          return { parsed, first: stroke('?q=h1'), host: stroke('?q=h12'), software: stroke('?q=software7'), sorted: stroke('?sort=version') };
        };
        console.log(JSON.stringify([measure(30000), measure(1000000)]));";
    let Some(ms) = node(program, &json!(HEADER)) else {
        return;
    };
    println!("milliseconds for 30 000 and 1 000 000 rows: {ms}");
    for step in ["parsed", "first", "host", "software", "sorted"] {
        assert!(ms[0][step].as_u64().unwrap() < 1000, "{ms}");
        assert!(ms[1][step].as_u64().unwrap() < 30_000, "{ms}");
    }
}

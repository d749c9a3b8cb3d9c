//! The scripts and the program that look up many names, and the examples.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::scripts::node;

/// 2026-11-18.
const MADE: i64 = 1_795_000_000;
const SALT: &str = "abababababababababababababababab";

/// Every word, some with a finding.
const CLASSES: &str = "withheld,up,failing,refuses,waiting,moved,moved_to_listed,gone,gone no_such_name,never,never no_such_name,never tls";

/// Answers requests from `indexes` and `files`, whose contents are hex digits.
const SERVE: &str = "let asked = [];
    const serve = (indexes, files) => {
      asked = [];
      globalThis.fetch = async (path) => {
        asked.push(path);
        if (path === '/why/index.json') return new Response(JSON.stringify(indexes.shift()));
        return files[path] === undefined ? new Response('', { status: 404 }) : new Response(Buffer.from(files[path], 'hex'));
      };
    };
    const failure = (promise) => promise.then(() => null, (error) => error.message);";

/// A file with a host of each class, `h0.example` and so on. Its age is ten more than its class.
fn world() -> Vec<u8> {
    let mut entries: Vec<Vec<u8>> = (0..12)
        .map(|class| {
            let hash = Sha256::digest(format!("{SALT}h{class}.example"));
            hash.into_iter()
                .take(8)
                .chain([class, class + 10])
                .collect()
        })
        .collect();
    entries.sort();
    let classes: Vec<_> = CLASSES.split(',').collect();
    let header = json!({ "made": MADE, "entry_bytes": 10, "classes": classes });
    [format!("{header}\n").into_bytes(), entries.concat()].concat()
}

/// Runs a program with the file of [`world`] and its index.
fn served(program: &str, given: &Value) -> Option<Value> {
    let file = world();
    let input = json!({ "index": index(&file), "path": format!("/why/{SALT}/all.bin"), "file": hex::encode(file), "given": given });
    node(&format!("{SERVE}\n{program}"), &input)
}

fn index(file: &[u8]) -> Value {
    json!({ "made": MADE, "salt": SALT, "digits": 1, "all_bytes": file.len() })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Python, which writes no files among ours; `None` without it.
fn python(arguments: &[&str]) -> Option<Output> {
    let mut python = Command::new("python3");
    python.arg("-B").args(arguments);
    kit::output(python.current_dir(root().join("examples")))
}

#[test]
fn every_class_is_found_and_other_names_are_unknown() {
    let program = "import { groupOf, lookUp, sentence } from './known.js';
        serve([input.index], { [input.path]: input.file });
        const hosts = Array.from({ length: 13 }, (_, number) => `h${number}.example`);
        const { known, answers } = await lookUp(hosts);
        const lines = answers.map((answer) => `${answer.host} ${groupOf(answer.word)}: ${sentence(answer, known.made)} ${answer.found}`.trim());
        console.log(JSON.stringify({ asked, lines: lines.join('\\n') }));";
    let Some(found) = served(program, &Value::Null) else {
        return;
    };
    let expect = "h0.example withheld: withheld
h1.example up: up
h2.example failing: failing
h3.example unchecked: refuses checks, known for 13 weeks
h4.example unchecked: waiting for its first check
h5.example moved: moved since 2025-08
h6.example moved: moved since 2025-07, to a host that is up
h7.example gone: gone since 2025-06
h8.example gone: gone since 2025-05 no_such_name
h9.example never: never answered, known for 19 weeks
h10.example never: never answered, known for 20 weeks no_such_name
h11.example never: never answered, known for 21 weeks tls
h12.example unknown: not known, or forgotten";
    assert_eq!(found["lines"], expect);
    // No request has a name.
    let path = format!("/why/{SALT}/all.bin");
    assert_eq!(found["asked"], json!(["/why/index.json", path]));
}

#[test]
fn a_publication_in_between_starts_the_lookup_over_once() {
    let program = "import { load } from './known.js';
        const old = { ...input.index, salt: '0'.repeat(32) };
        const files = { [input.path]: input.file };
        serve([old, input.index, input.index], files);
        const known = await load();
        const isKept = (await load(known)) === known;
        const requests = asked.map((path) => path.replaceAll(/[0-9a-f]{32}/g, (salt) => salt[0]));
        serve([old, old, input.index], files);
        console.log(JSON.stringify({ requests, isKept, twice: await failure(load()) }));";
    let Some(found) = served(program, &Value::Null) else {
        return;
    };
    let [index, old, new] = ["/why/index.json", "/why/0/all.bin", "/why/a/all.bin"];
    assert_eq!(found["requests"], json!([index, old, index, new, index]));
    assert_eq!(found["isKept"], true);
    assert_eq!(found["twice"], "they are being published again");
}

#[test]
fn damaged_files_are_refused_with_their_reason() {
    let program = "import { load } from './known.js';
        const head = { made: 7, entry_bytes: 10, classes: ['up'] };
        const entry = (first, kind) => first.repeat(16) + kind + '00';
        const file = (header, rest) => Buffer.from(`${typeof header === 'string' ? header : JSON.stringify(header)}\\n`).toString('hex') + rest;
        const sound = file(head, entry('1', '00'));
        const [version, index] = ['the first line of their file is damaged or of another version', 'their index is missing or of another version'];
        const wrong = [];
        for (const [content, reason, bytes] of [
          [sound, null],
          [sound, 'their file is longer than the index says', 9],
          [sound, 'their file is shorter than the index says', 99],
          [sound, 'their file is larger than 64 MB', 2 ** 26 + 1],
          [sound, index, '9'], [sound, index, 0], [sound, index, 1.5],
          ['20'.repeat(70000), 'the first line of their file is longer than 64 kB'],
          [file('<html>', ''), version], [file('null', ''), version],
          [file({ ...head, entry_bytes: 11 }, ''), version], [file({ ...head, made: 1e99 }, ''), version],
          [file({ ...head, classes: {} }, ''), version], [file({ ...head, classes: ['up', '__proto__'] }, ''), version],
          [file(head, '00'.repeat(11)), 'the last entry of their file is cut'],
          [file(head, entry('2', '00') + entry('1', '00')), 'the entries of their file are not in order'],
          [file(head, entry('1', '01')), 'an entry of their file has no class'],
        ]) {
          serve([{ ...input.index, all_bytes: bytes ?? content.length / 2 }], { [input.path]: content });
          const found = await failure(load());
          if (found !== reason) wrong.push([found, reason]);
        }
        console.log(JSON.stringify(wrong));";
    let Some(wrong) = served(program, &Value::Null) else {
        return;
    };
    assert_eq!(wrong, json!([]));
}

#[test]
fn lists_of_peers_are_read_in_all_their_forms() {
    let program = "import { names, split } from './peers.js';
        const found = [];
        for (const text of input) found.push((await names(split(text))).hosts);
        console.log(JSON.stringify(found));";
    let texts = [
        r#"["a.example","B.example","a.example."]"#,
        r#"[{"domain":"a.example"},{"domain":"b.example","suspended_at":"2026"}]"#,
        r#"{"federated_instances":{"linked":[{"id":1,"domain":"a.example"},{"domain":"b.example"}],"blocked":[{"domain":"c.example"}]}}"#,
        r#"[{"id":"x","host":"a.example"},{"host":"b.example"}]"#,
        "\u{feff}a.example\r\n\r\n https://b.example/about \r\n",
        "#domain,#severity\n\"a.example\",silence\nb.example;x\n",
    ];
    let Some(found) = node(program, &json!(texts)) else {
        return;
    };
    for (text, found) in texts.iter().zip(found.as_array().unwrap()) {
        assert_eq!(*found, json!(["a.example", "b.example"]), "{text}");
    }
}

#[test]
fn hostile_lists_do_no_harm() {
    let program = "import { names, split } from './peers.js';
        const failed = (text) => failure(Promise.resolve().then(() => split(text)));
        const odd = [null, 7, [], { domain: {} }, '__proto__', 'constructor', '<img src=x onerror=alert(1)>', 'o*g.*u**', 'x'.repeat(5000), 'a.example'];
        const many = JSON.stringify(Array(250001).fill('a.example'));
        const texts = [many, 'a.example\\n'.repeat(250001), 'x'.repeat(16 * 1024 * 1024 + 1), '[1', '{}', '{\"__proto__\":{\"linked\":[]}}', '[]', ' '];
        console.log(JSON.stringify({
          odd: await names(split(JSON.stringify(odd))),
          some: (await names(split('<b>\\n'.repeat(30)))).unusable,
          failures: await Promise.all(texts.map(failed)),
        }));";
    let Some(found) = node(&format!("{SERVE}\n{program}"), &Value::Null) else {
        return;
    };
    assert_eq!(found["odd"]["hosts"], json!(["a.example"]));
    assert_eq!(found["odd"]["unusable"]["count"], 9);
    assert_eq!(found["odd"]["unusable"]["some"][8], "x".repeat(80));
    assert_eq!(
        found["some"],
        json!({ "count": 30, "some": vec!["<b>"; 20] })
    );
    let most = "a list may have 250000 names and 16 MB";
    let json = "the list begins like JSON, and is not valid JSON";
    let [peers, empty] = ["this JSON has no list of peers", "the list is empty"];
    let failures = json!([most, most, most, json, peers, peers, empty, empty]);
    assert_eq!(found["failures"], failures);
}

#[test]
fn only_names_without_dns_for_90_days_are_purged() {
    let program = "import { isPurgeable, purgeLines } from './peers.js';
        const purged = (text) => { const [word, found, age] = text.split(' '); return isPurgeable({ host: 'a.example', word, found, age: Number(age) }); };
        const many = Array.from({ length: 51 }, (_, number) => ({ host: `h${number}.example`, word: 'gone', found: 'no_such_name', age: 4 }));
        const lines = purgeLines([{ host: 'up.example', word: 'up', found: '', age: 0 }, ...many]);
        console.log(JSON.stringify([
          ['gone no_such_name 4', 'gone no_such_name 255', 'never no_such_name 13', 'never no_such_name 255'].filter((text) => !purged(text)),
          ['gone no_such_name 3', 'never no_such_name 12', 'gone  255', 'never  255', 'gone no_address 255', 'gone answered_gone 255', 'gone dns_broken 255', 'never tls 255',
            ...['withheld', 'unknown', 'failing', 'refuses', 'waiting', 'moved', 'moved_to_listed', 'up'].map((word) => `${word} no_such_name 255`)].filter(purged),
          lines.map((line) => [line.split(' ').slice(0, 5).join(' '), line.split(' ').length - 4]),
        ]));";
    let Some(found) = node(program, &Value::Null) else {
        return;
    };
    let line = |host: &str| format!("bin/tootctl domains purge --dry-run {host}");
    let lines = json!([[line("h0.example"), 50], [line("h50.example"), 1]]);
    assert_eq!(found, json!([[], [], lines]));
}

#[test]
fn my_hosts_are_kept_and_compared_with_the_last_check() {
    let program = "import { add, changes, read } from './hosts.js';
        const added = add(new Map([['a.example', 'up']]), ' b.example, https://c.example/x\\n<img a.example');
        const full = add(new Map(), Array.from({ length: 501 }, (_, number) => `h${number}.example`).join(' '));
        const list = new Map([['up.example', 'up'], ['down.example', 'up'], ['new.example', ''], ['same.example', 'gone']]);
        const answers = [['up', 'up'], ['down', 'failing'], ['new', 'gone'], ['same', 'gone']].map(([name, word]) => ({ host: `${name}.example`, word, found: '', age: 0 }));
        const odd = [null, 'x', '7', '{}', '[7,[],[\"x\"],[\"<b>\",\"up\"],[\"A.example\",\"\"],[\"a.example\",\"__proto__\"],[\"b.example\",\"gone\"]]'];
        console.log(JSON.stringify({
          list: [...added.list], problems: added.problems, empty: add(new Map(), ' ').problems,
          full: [full.list.size, full.problems], was: changes(list, answers).map(({ was }) => was),
          odd: odd.map((text) => [...read(text)]), again: [...read(JSON.stringify([...added.list]))],
        }));";
    let Some(found) = node(program, &Value::Null) else {
        return;
    };
    let list = json!([["a.example", "up"], ["b.example", ""], ["c.example", ""]]);
    let expect = json!({
        "list": list, "again": list, "was": ["", "up", "", ""],
        "problems": ["“<img”: That is not a domain. Type one such as mastodon.social."],
        "empty": ["Type a domain, such as mastodon.social."],
        "full": [500, ["The list is full: it has 500 names."]],
        "odd": [[], [], [], [], [["b.example", "gone"]]],
    });
    assert_eq!(found, expect);
}

#[test]
fn scripts_and_program_hash_names_as_the_vectors_say() {
    let vectors = std::fs::read_to_string(root().join("examples/vectors.json")).unwrap();
    let program = "import { find } from './known.js';
        import { place } from './why.js';
        console.log(JSON.stringify(input.map(({ salt, name, hash16, shard, key }) => {
          const entries = new DataView(Uint8Array.from(Buffer.from(`${hash16}0007`, 'hex')).buffer);
          const places = shard.map((digits, at) => place(name, { salt, digits: at + 1 }));
          const isPlaced = places.every((place, at) => place.key === key && place.path === `/why/${salt}/${shard[at]}.json`);
          return isPlaced && find({ salt, classes: [{ word: 'up', found: '' }], entries }, name).age === 7;
        })));";
    let vectors: Value = serde_json::from_str(&vectors).unwrap();
    let Some(found) = node(program, &vectors) else {
        return;
    };
    assert_eq!(found, json!([true, true, true, true, true]));
    let program = "import json, check_peers
for vector in json.load(open('vectors.json')):
    name, entry = vector['name'], bytes.fromhex(vector['hash16'] + '0007')
    assert check_peers.look_up([name], vector['salt'], [('up', '')], entry) == {name: ('up', '', 7)}";
    let Some(output) = python(&["-c", program]) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_program_finds_the_same_groups_as_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let answers = folder.path().join("why").join(SALT);
    std::fs::create_dir_all(&answers).unwrap();
    std::fs::write(answers.join("all.bin"), world()).unwrap();
    let index = index(&world()).to_string();
    std::fs::write(folder.path().join("why/index.json"), index).unwrap();
    let mut names: Vec<String> = (0..14).map(|number| format!("H{number}.example")).collect();
    names.extend(["<b>".to_owned(), "1.2.3.4".to_owned()]);
    let list = folder.path().join("peers.json");
    std::fs::write(&list, json!(names).to_string()).unwrap();
    let census = format!("file://{}", folder.path().display());
    let run = |more: &[&str]| {
        let fixed = ["check_peers.py", &census, list.to_str().unwrap()];
        let output = python(&[fixed.as_slice(), more].concat())?;
        let lines = String::from_utf8(output.stdout).unwrap();
        Some((output.status.code(), lines))
    };
    let Some((_, counts)) = run(&[]) else {
        return;
    };
    let program = "import { lookUp } from './known.js';
        import { grouped, names, purgeLines } from './peers.js';
        serve([input.index], { [input.path]: input.file });
        const { hosts, unusable } = await names(input.given);
        const { answers } = await lookUp(hosts);
        const groups = [...grouped(answers)].map(([group, members]) => `${group} ${members.length}`);
        console.log(JSON.stringify({ counts: [...groups, `unusable ${unusable.count}`, ''].join('\\n'), purge: `${purgeLines(answers).join('\\n')}\\n` }));";
    let Some(found) = served(program, &json!(names)) else {
        return;
    };
    let (_, purge) = run(&["--purge"]).unwrap();
    assert_eq!(found, json!({ "counts": counts, "purge": purge }));
    assert!(purge.ends_with(" h8.example h10.example\n"), "{purge}");
    let moved = (Some(0), "h5.example\nh6.example\n".to_owned());
    assert_eq!(run(&["--names", "moved"]), Some(moved));
    std::fs::write(answers.join("all.bin"), b"{}\n").unwrap();
    assert_eq!(run(&[]), Some((Some(1), String::new())));
}

#[test]
fn the_program_starts_over_once_after_a_publication() {
    let program = "import io, json, sys, urllib.error, urllib.request, check_peers
asked = []
def urlopen(url, timeout):
    asked.append(url)
    if url.endswith('index.json'):
        salt = ('0' if len(asked) == 1 or sys.argv[1] == 'never' else '1') * 32
        return io.BytesIO(json.dumps({'salt': salt, 'all_bytes': 45}).encode())
    if '/0' in url:
        raise urllib.error.URLError('missing')
    return io.BytesIO(b'{\"made\":7,\"entry_bytes\":10,\"classes\":[\"up\"]}\\n')
urllib.request.urlopen = urlopen
try:
    print(check_peers.load('x')[0][0], len(asked))
except urllib.error.URLError:
    print('failed', len(asked))";
    for (argument, expect) in [("once", "1 4\n"), ("never", "failed 4\n")] {
        let Some(output) = python(&["-c", program, argument]) else {
            return;
        };
        assert_eq!(String::from_utf8_lossy(&output.stdout), expect);
    }
}

#[test]
fn the_examples_complete_share_and_choose() {
    let program = "import { completions, names } from './autocomplete.js';
        import { choose, newest } from './chooser.js';
        import { SHARES, target } from './share.js';
        const by = [{ software: 'mastodon', hosts: ['b.example', 'ab.example'] }, { software: null, hosts: ['aa.example', '__proto__'] }];
        const all = names(by);
        const shares = names(by, SHARES);
        const row = (host, version, more) => ({ host, version, software: 'mastodon', state: 'alive', open_registrations: true, variant: null, ...more });
        const rows = [
          ...Array.from({ length: 150 }, (_, number) => row(`old${number}.example`, '4.9.1', { open_registrations: false })),
          row('a.example', '4.10.0'), row('b.example', 'v4.10.3+glitch', { variant: 'glitch', open_registrations: null }), row('own.example', '99.0'), row('c.example', null), row('d.example', '4.10.1', { state: 'dying' }), row('e.example', '1', { software: '__proto__' }),
        ];
        const chosen = (wishes) => choose(rows, wishes).map(({ host }) => host);
        console.log(JSON.stringify({
          all, begun: completions(all, ' A'), one: completions(all, 'a', 1), nothing: completions(all, ' '),
          target: [target(shares, 'B.example ', 'a & b'), target(shares, 'aa.example', 'x') ?? null],
          newest: newest(rows).get('mastodon'), current: chosen({ isCurrent: true }), open: chosen({ signup: 'yes', software: 'mastodon' }), glitch: chosen({ variant: 'glitch', signup: 'unknown' }),
        }));";
    let Some(found) = node(program, &Value::Null) else {
        return;
    };
    let expect = json!({
        "all": ["__proto__", "aa.example", "ab.example", "b.example"],
        "begun": ["aa.example", "ab.example"], "one": ["aa.example"], "nothing": [],
        "target": ["https://b.example/share?text=a+%26+b", null],
        "newest": "4.10", "current": ["a.example", "b.example"],
        "open": ["a.example", "own.example", "c.example"], "glitch": ["b.example"],
    });
    assert_eq!(found, expect);
}

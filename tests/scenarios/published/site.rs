//! The pages of a running census, served by nginx with our configuration and examined in a browser.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use census::state::StateName;
use census::time::Calendar;
use lab::crowd::Crowd;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tests::{Need, Options, PATIENCE, Role, Web, World};

use crate::time::passing::{CROWD, check_until, pass, stored};

const LEAVER: &str = "pleroma.lab.test";
/// Responds, and is denied by the operator later.
const DENIED: &str = "misskey.lab.test";
const DYING: &str = "dying.lab.test";
const MOVING: &str = "moving.lab.test";
const BARREN: &str = "no-nodeinfo.lab.test";
const GONE: &str = "gone.lab.test";
/// Names in the list of `junk.lab.test`, below a domain that has room for one.
const CROWDED: [&str; 7] = [
    "upper.lab-junk.test",
    "dot.lab-junk.test",
    "scheme.lab-junk.test",
    "path.lab-junk.test",
    "at.lab-junk.test",
    "handle.lab-junk.test",
    "xn--bcher-kva.lab-junk.test",
];
/// Names below one domain, of which one a day is checked until an operator decides.
const HELD: u32 = 31;
const UNKNOWN: &str = "never-heard-of.lab.test";

/// The answer for hosts that opted out, hide, are denied or are parked.
const WITHHELD: &str = "Its owner asked to be left out, or this census does not list it.";

/// Hosts, the state that they reach, and how the answer begins.
const ANSWERS: [(&str, StateName, &str); 10] = [
    ("mastodon.lab.test", StateName::Alive, "It is up."),
    (
        DYING,
        StateName::Dying,
        "It was up recently, and its checks",
    ),
    (
        MOVING,
        StateName::Moving,
        "It redirects to another host, where",
    ),
    (
        BARREN,
        StateName::Dying,
        "None of its checks has found an instance",
    ),
    (GONE, StateName::Dying, "It answered 410 Gone"),
    (
        "refuses-403.lab.test",
        StateName::Discovered,
        "A server answers, but it has refused",
    ),
    ("robots-all.lab.test", StateName::OptedOut, WITHHELD),
    (LEAVER, StateName::OptedOut, WITHHELD),
    ("pleroma-private.lab.test", StateName::Alive, WITHHELD),
    (DENIED, StateName::Alive, WITHHELD),
];

/// Those of [`ANSWERS`] that are listed.
const LISTED: [&str; 3] = ["mastodon.lab.test", DYING, MOVING];

/// The later state of three of them.
const LATER: [(&str, StateName, &str); 3] = [
    (
        DYING,
        StateName::Dead,
        "No check has found an instance here for several days.",
    ),
    (
        MOVING,
        StateName::Moved,
        "It has redirected to another host for more than a week.",
    ),
    (GONE, StateName::Parked, WITHHELD),
];

/// The answer for hosts in a group that is held back, after the operator has denied it.
const GROUP_DENIED: &str = WITHHELD;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scenarios/published/site")
        .join(name)
}

/// The file of axe-core. Without it, the path is empty and the examination of pages counts as a
/// skipped test.
pub(crate) fn axe() -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe.js");
    if file.exists() {
        return file;
    }
    let why = format!(
        "no accessibility checker: python3 tests/scenarios/published/site/fetch_axe.py {}",
        file.display()
    );
    tests::skip(Need::Programs, &why);
    PathBuf::new()
}

/// Asserts that at least this many looks were examined, and that no page violates a rule of
/// axe-core or is wider than its screen.
pub(crate) fn assert_examined(found: &Value, axe: &Path, least: usize) -> anyhow::Result<()> {
    let examined = found["examined"].as_object().context("by look")?;
    let has_axe = !axe.as_os_str().is_empty();
    for (look, said) in examined {
        assert!(said["overflow"].as_i64() <= Some(0), "{look}: {said}");
        if has_axe {
            assert_eq!(said["violations"], serde_json::json!([]), "{look}");
            // Proves that axe examined the page.
            assert!(said["rulesPassed"].as_u64() > Some(10), "{look}: {said}");
        }
    }
    let looks = examined.len();
    assert!(!has_axe || looks >= least, "{looks} of {least} looks");
    Ok(())
}

/// The browser's findings: on `pages`, or about `answers` only. Its screenshots stay in the target
/// folder, `tmp/pictures`.
fn looked_at(web: &Web, what: &str, asked: &[&str]) -> anyhow::Result<Value> {
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("pictures")
        .join(what);
    std::fs::create_dir_all(&pictures)?;
    let profile = tempfile::tempdir()?;
    let axe = axe();
    let output = Command::new("node")
        .arg(script("browser.mjs"))
        .args(["chromium", web.address()])
        .args([profile.path(), &pictures, &axe])
        .arg(what)
        .args(asked)
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(found["troubles"], serde_json::json!([]));
    assert_examined(&found, &axe, 1)?;
    Ok(found)
}

fn salt(public: &Path) -> anyhow::Result<String> {
    let index: Value = serde_json::from_slice(&std::fs::read(public.join("why/index.json"))?)?;
    Ok(index["salt"].as_str().context("no salt")?.to_owned())
}

/// Asserts that a host's answer begins like this, and that the server did not learn its name: only
/// a digit of its hash was sent.
fn assert_told(found: &Value, salt: &str, (host, says): (&str, &str), is_listed: bool) {
    let told = &found["why"][host];
    let told_why = told["answer-why"].as_str().unwrap_or_default();
    assert!(told_why.starts_with(says), "{host}: {told}");
    let verdict = match (is_listed, says) {
        (true, says) if says.starts_with("It was up recently") => "Listed, and failing",
        (true, says) if says.starts_with("It redirects") => "Listed, and moving",
        (true, _) => "Listed",
        (false, _) => "Not listed",
    };
    assert_eq!(told["answer-verdict"], verdict, "{host}: {told}");
    let hash = hex::encode(Sha256::digest(format!("{salt}{host}")));
    let shard = format!("/why/{salt}/{}.json", hash.split_at(1).0);
    let mut requests: Vec<&str> = told["requests"]
        .as_array()
        .map(|requests| requests.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    // The browser requests the icon whenever it has time.
    requests.retain(|path| *path != "/icon.svg");
    assert_eq!(requests, ["/why/index.json", shard.as_str()], "{told}");
}

/// The first rows are in the page, everything else is in the address, and nothing is loaded before
/// the reader requests it.
fn assert_list(list: &Value) -> anyhow::Result<()> {
    let hosts = |name: &str| -> anyhow::Result<Vec<&str>> {
        let rows = list[name].as_array().context("rows")?;
        ensure!(!rows.is_empty(), "{name}: no row");
        rows.iter()
            .map(|row| row[0].as_str().context("a host"))
            .collect()
    };
    assert_eq!(list["isLoadedUnasked"], false);
    assert!(hosts("sorted")?.is_sorted(), "{list}");
    assert_eq!(list["sortedAddress"], "?sort=host");
    let first = hosts("first")?[0];
    assert_eq!(hosts("found")?, [first]);
    let address = list["foundAddress"].as_str().unwrap_or_default();
    assert!(address.contains(&format!("q={first}")), "{address}");
    assert_eq!(list["none"], "/why.html#no%20such%20host");
    for name in ["filtered", "linked"] {
        let rows = list[name].as_array().context("rows")?;
        ensure!(
            !rows.is_empty() && rows.iter().all(|row| row[1] == "mastodon"),
            "{list}"
        );
    }
    assert!(hosts("linked")?.iter().rev().is_sorted(), "{list}");
    Ok(())
}

/// No word of a table is cut in two, no host's name is cut, no text lies on a line of a plot,
/// nothing moves while a page loads, and no page is wider than its screen.
fn assert_widths(widths: &Value) -> anyhow::Result<()> {
    let widths = widths.as_object().context("pages by width")?;
    ensure!(widths.len() >= 28, "{widths:?}");
    for (page, found) in widths {
        for trouble in ["broken", "cut", "covered"] {
            assert_eq!(found[trouble], serde_json::json!([]), "{trouble} on {page}");
        }
        assert!(
            found["shift"]["sum"].as_f64() < Some(0.01),
            "{page}: {found}"
        );
        assert!(found["overflow"].as_i64() <= Some(0), "{page}: {found}");
    }
    Ok(())
}

/// Paths of the files that contain this text, compressed or not.
fn files_with(public: &Path, text: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in tests::files_below(public)? {
        let bytes = std::fs::read(&path)?;
        let mut plain = Vec::new();
        match path.extension().and_then(std::ffi::OsStr::to_str) {
            Some("gz") => {
                flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain)?;
            }
            Some(_) | None => plain = bytes,
        }
        if String::from_utf8_lossy(&plain).contains(text) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Status, headers and body of an answer to a GET with these further header lines.
fn get(web: &Web, path: &str, headers: &str) -> anyhow::Result<(u16, String, Vec<u8>)> {
    let place = web.address().trim_start_matches("http://");
    let mut stream = TcpStream::connect(place)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n{headers}\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .context("no headers")?;
    let body = answer.split_off(end + 4);
    let head = String::from_utf8(answer)?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, head, body))
}

/// An interrupted download can be resumed, and a client with the newest file gets "not modified".
fn assert_ranges(web: &Web, public: &Path) -> anyhow::Result<()> {
    let path = "/data/instances.ndjson";
    let whole = std::fs::read(public.join("data/instances.ndjson"))?;
    let (status, head, body) = get(web, path, "Range: bytes=10-19\r\n")?;
    assert_eq!((status, body.as_slice()), (206, &whole[10..20]), "{head}");
    let tag = head
        .lines()
        .find_map(|line| line.strip_prefix("ETag: "))
        .context("no ETag")?;
    let (status, head, body) = get(
        web,
        path,
        &format!("Range: bytes=10-\r\nIf-Range: {tag}\r\n"),
    )?;
    assert_eq!((status, body.as_slice()), (206, &whole[10..]), "{head}");
    // A set other than the one that was begun is never appended.
    let (status, head, body) = get(web, path, "Range: bytes=10-\r\nIf-Range: \"other\"\r\n")?;
    assert_eq!((status, body.as_slice()), (200, whole.as_slice()), "{head}");
    let (status, ..) = get(web, path, &format!("If-None-Match: {tag}\r\n"))?;
    assert_eq!(status, 304);
    Ok(())
}

/// A client that requests more than a person or a mirror would must slow down, and the others are
/// served.
fn assert_limit(web: &Web) -> anyhow::Result<()> {
    let mut statuses = std::collections::BTreeMap::<u16, u32>::new();
    for _ in 0..1000 {
        let (status, head, body) = get(web, "/robots.txt", "Accept: text/html,*/*\r\n")?;
        *statuses.entry(status).or_default() += 1;
        if status == 429 {
            assert!(head.contains("Cache-Control: no-store"), "{head}");
            let page = String::from_utf8_lossy(&body);
            assert!(page.contains("<h1>Too many requests</h1>"), "{page}");
            break;
        }
    }
    assert_eq!(statuses.get(&429), Some(&1), "{statuses:?}");
    let (status, ..) = get(web, "/health", "")?;
    assert_eq!(status, 200, "whoever watches the server is not counted");
    Ok(())
}

/// Checks a host by hand until it is in this state.
async fn check_until_state(world: &World, host: &str, state: StateName) -> anyhow::Result<()> {
    check_until(world, host, &format!("is {state:?}"), |stored| {
        let record = &stored.record;
        record.last_checked.is_some() && record.state.name() == state
    })
    .await?;
    Ok(())
}

fn assert_states(world: &World, wanted: &[(&str, StateName)]) -> anyhow::Result<()> {
    for (host, state) in wanted {
        let found = stored(world, host)?.record.state;
        assert_eq!(found.name(), *state, "{host}");
    }
    Ok(())
}

fn held() -> impl Iterator<Item = String> {
    (0..HELD).map(|number| format!("h{number}.held-farm.test"))
}

/// A census in which every host of [`ANSWERS`] has reached its state, stopped right after it
/// published that. `files` holds its rules.
async fn world_with_every_state(files: &Path) -> anyhow::Result<World> {
    let (rules, deny) = (files.join("rules"), files.join("deny"));
    std::fs::write(&rules, "domain lab-junk.test 1\ndomain test 1000\n")?;
    std::fs::write(&deny, "")?;
    let mut options = Options::new(&["junk.lab.test"]);
    options
        .seeds
        .extend(ANSWERS.iter().map(|(host, ..)| (*host).to_owned()));
    options.seeds.extend(held());
    options.seeds.extend(Crowd::new(CROWD, 1).names());
    options.crowd = CROWD;
    // No day passes automatically: hosts are checked by hand.
    options.interval_divisor = Calendar::REAL.divisor;
    options.settings = vec![
        ("admission_rules", rules.display().to_string()),
        ("deny_list", deny.display().to_string()),
        ("group_threshold", HELD.saturating_sub(1).to_string()),
        // For the buttons. No push service runs.
        ("push_socket", "true".to_owned()),
    ];
    let mut world = World::start(options).await?;
    for host in [LEAVER, DENIED, "junk.lab.test"] {
        check_until_state(&world, host, StateName::Alive).await?;
    }
    let public = publish::current(&world.path("public"));
    ensure!(world.command(&["dump", "--force"])?.status.success());
    for name in [LEAVER, DENIED] {
        ensure!(
            files_with(&public, name)?.contains(&public.join("list.txt")),
            "{name}"
        );
    }
    ensure!(world.command(&["opt-out", LEAVER])?.status.success());
    std::fs::write(&deny, format!("{DENIED} # its owner sells mail\n"))?;
    ensure!(world.command(&["admission", "reload"])?.status.success());
    for (host, state, _) in ANSWERS {
        check_until_state(&world, host, state).await?;
    }
    world
        .until("no room is left and a group is held", PATIENCE, |world| {
            let known = |name: &&str| matches!(world.host(name), Ok(Some(_)));
            let shown = world.command(&["groups", "show", "held-farm.test", "--json"])?;
            let shown: Value = serde_json::from_slice(&shown.stdout)?;
            Ok(CROWDED.iter().any(known) && shown["held"] == true)
        })
        .await?;
    ensure!(world.command(&["dump", "--force"])?.status.success());
    world.stop(Role::Run).await?;
    assert_states(&world, &ANSWERS.map(|(host, state, _)| (host, state)))?;
    Ok(world)
}

/// Hosts whose answers do not depend on themselves alone, and how their answers begin.
fn others(world: &World) -> anyhow::Result<[(String, &'static str); 3]> {
    let is_in = |name: &str| world.host(name).map(|stored| stored.is_some());
    let mut waiting = CROWDED
        .iter()
        .filter(|name| matches!(is_in(name), Ok(false)));
    let is_untouched = |name: &String| {
        let stored = world.host(name).ok().flatten();
        stored.is_some_and(|stored| stored.record.last_checked.is_none())
    };
    let held = held()
        .find(is_untouched)
        .context("most of them were never asked")?;
    Ok([
        (
            waiting.next().context("one came in")?.to_string(),
            "Another server named it, and it waits",
        ),
        (held, "There are more hosts below its registered domain"),
        (UNKNOWN.to_owned(), "We do not know this name."),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_finds_the_list_and_an_answer_for_every_host_and_nothing_to_complain_of()
-> anyhow::Result<()> {
    if !tests::are_there(&["nginx", "chromium", "node", "sqlite3"]) {
        return Ok(());
    }
    let files = tempfile::tempdir()?;
    let mut world = world_with_every_state(files.path()).await?;
    let public = publish::current(&world.path("public"));
    let others = others(&world)?;
    let [_, (group_member, _), _] = &others;
    let answers: Vec<(&str, &str)> = ANSWERS
        .iter()
        .map(|(host, _, says)| (*host, *says))
        .chain(others.iter().map(|(host, says)| (host.as_str(), *says)))
        .collect();
    // Invariant I7, on pages and in data alike.
    for (host, _) in &answers {
        let is_listed = LISTED.contains(host);
        assert_eq!(!files_with(&public, host)?.is_empty(), is_listed, "{host}");
    }
    let folder = tempfile::tempdir()?;
    let web = Web::start(folder.path(), &world.path("public")).await?;
    let asked: Vec<&str> = answers.iter().map(|(host, _)| *host).collect();
    let found = looked_at(&web, "pages", &asked)?;
    for (host, says) in answers {
        let is_listed = LISTED.contains(&host);
        assert_told(&found, &salt(&public)?, (host, says), is_listed);
    }
    assert_list(&found["list"])?;
    // A browser without a screen allows no notifications.
    let says = found["notify"].as_str().unwrap_or_default();
    assert!(says.starts_with("Not done: your browser blocks"), "{says}");
    assert_widths(&found["widths"])?;
    for (path, width) in found["narrow"].as_object().context("sizes")? {
        assert!(width.as_u64() <= Some(320), "{path} is {width} wide");
    }
    assert_ranges(&web, &public)?;

    pass(&world, Calendar::REAL.dying_at_least())?;
    world.begin(Role::Run).await?;
    for (host, state, _) in LATER {
        if host != GONE {
            check_until_state(&world, host, state).await?;
        }
    }
    let deny = [
        "groups",
        "deny",
        "held-farm.test",
        "--reason",
        "all made up",
    ];
    ensure!(world.command(&deny)?.status.success());
    world.stop(Role::Run).await?;
    // No command parks a host, and a daemon restores one whose name is admitted.
    let park = "UPDATE hosts SET state = 'parked', state_before = NULL, count = 0, gone = 0, gone_last = 0, due = NULL \
                WHERE name = 'gone.lab.test'";
    let database = world.path("data/census.db");
    let parked = Command::new("sqlite3").arg(database).arg(park).output()?;
    ensure!(
        parked.status.success() && parked.stderr.is_empty(),
        "{parked:?}"
    );
    ensure!(world.command(&["dump", "--force"])?.status.success());
    let later: Vec<(&str, &str)> = LATER
        .iter()
        .map(|(host, _, says)| (*host, *says))
        .chain([(group_member.as_str(), GROUP_DENIED)])
        .collect();
    let asked: Vec<&str> = later.iter().map(|(host, _)| *host).collect();
    let found = looked_at(&web, "answers", &asked)?;
    for (host, says) in later {
        assert_told(&found, &salt(&public)?, (host, says), false);
        // Its death or move is listed among the changes.
        let mut files = files_with(&public, host)?;
        files.retain(|file| !file.starts_with(public.join("data/changes")));
        assert_eq!(files, Vec::<PathBuf>::new(), "{host}");
    }
    assert_limit(&web)
}

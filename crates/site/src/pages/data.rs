//! The page for users of the data: which files exist, and how to read them.

use census::state::StateName;
use dump::{ListedRow, ListedState, Moment};
use maud::{Markup, html};
use protocol::Instance;

use super::layout::{Page, fill_in, moment};
use crate::facts::Facts;
use crate::fixes::LIST;
use crate::text::{grouped, size};

const FOLDER: &str = "/data/";

/// The published files that are meant for programs, and their contents.
const FILES: [(&str, &str); 13] = [
    (
        "/data/index.json",
        "All files with their sizes, SHA-256, times and schema versions.",
    ),
    (
        "/data/nodes.json",
        "The names of all listed hosts, a sorted JSON array. Also at /nodes.json.",
    ),
    (
        "/data/instances.ndjson",
        "One JSON object per line and listed host: host, software, version, variant (the fork), state, open_registrations, first_seen, last_alive.",
    ),
    (
        "/data/instances.csv",
        "The same as CSV with a header line (RFC 4180).",
    ),
    (
        "/data/instances.sqlite",
        "The same as an SQLite database, table instances.",
    ),
    (
        "/data/software.json",
        "How many listed hosts run which software and version.",
    ),
    (
        "/data/by-software.json",
        "The names by software, for completion, share buttons and choosers: one array, unknown software is null.",
    ),
    (
        "/data/software/mastodon.json",
        "The names of one software, a file for each of the 200 most frequent.",
    ),
    (
        DAYS,
        "What changed from one publication to the next, one file per day; the index lists the days. A mirror can follow with these files only.",
    ),
    (
        "/data/changes/feed.atom",
        "The newest changes for feed readers (Atom).",
    ),
    (
        "/data/changes/weekly.atom",
        "The same by week, Monday to Sunday.",
    ),
    (
        "/data/index.json.minisig",
        "The signature of the index (minisign); its hashes cover every other file.",
    ),
    ("/data/fedicensus.pub", "The public key of the signature."),
];

/// The files of the days. The page does not know which of them exist: a day without a publication
/// has none.
const DAYS: &str = "/data/changes/YYYY-MM-DD.ndjson";

/// Ways to read the files, each with a heading and lines; `{}` is the site's address.
const EXAMPLES: [(&str, &str); 5] = [
    (
        "curl and jq: the number of instances, and all that run Lemmy and let people sign up",
        "curl -s --compressed {}/data/nodes.json | jq length\n\
         curl -s --compressed {}/data/instances.ndjson | jq -r 'select(.software == \"lemmy\" and .open_registrations) | .host'\n",
    ),
    (
        "curl: download only what is new",
        "curl -s --compressed --etag-save nodes.etag --etag-compare nodes.etag -o nodes.json {}/data/nodes.json\n",
    ),
    (
        "SQL: the ten most frequent kinds of software",
        "curl -s -O {}/data/instances.sqlite\n\
         sqlite3 instances.sqlite 'SELECT software, count(*) AS hosts FROM instances GROUP BY software ORDER BY hosts DESC LIMIT 10'\n",
    ),
    (
        "Python: the same without a database",
        "import collections, json, urllib.request\n\
         \n\
         with urllib.request.urlopen(\"{}/data/instances.ndjson\") as lines:\n\
         \x20   software = collections.Counter(json.loads(line)[\"software\"] for line in lines)\n\
         for name, hosts in software.most_common(10):\n\
         \x20   print(hosts, name)\n",
    ),
    (
        "A mirror: fetch the index, verify its signature, then fetch the files whose hash is new",
        "curl -s -O {}/data/fedicensus.pub -O {}/data/index.json -O {}/data/index.json.minisig\n\
         minisign -V -p fedicensus.pub -m index.json && jq -r '.files[] | .sha256 + \"  \" + .name' index.json\n",
    ),
];

pub(crate) fn data(facts: &Facts) -> String {
    let content = html! {
        p.lead { "Everything that this census publishes is a file, under the licence " (facts.licence) ". There is a new list about every six hours, and soon after an opt-out." }
        (sample())
        @if let Some(instances) = facts.published.instances {
            p { "The files of " (moment(facts.rows_read)) " list " (grouped(instances)) " instances." }
        }
        p { "Pages of any origin may read them, without a key. Please request only what is new: every file has an " code { "ETag" } "." }
        h2 { "Files" }
        div.scroll {
            table.files {
                thead { tr { th scope="col" { "File" } th scope="col" { "What it holds" } th.number scope="col" { "Size" } } }
                tbody {
                    @for (path, says) in FILES {
                        tr {
                            th scope="row" { code { @if path == DAYS { (path) } @else { a href=(path) { (path) } } } }
                            td { (says) }
                            td.number { @if let Some(bytes) = bytes_of(facts, path) { (size(bytes)) } }
                        }
                    }
                }
            }
        }
        p { "The list, the changes, the feeds and the index also exist compressed, with " code { ".gz" } " appended to their names; clients that accept gzip get that automatically." }
        @if !facts.versions.fixes.is_empty() {
            p { "How far each " a href=(LIST) { "security fix" } " has spread, day by day, is in " code { "/data/fixes/" } "; its page links to the file." }
        }
        (rules())
        h2 { "Examples" }
        (fill_in(facts))
        @for (title, lines) in EXAMPLES {
            h3 { (title) }
            pre.copy tabindex="0" { code { (lines.replace("{}", facts.address())) } }
        }
    };
    Page {
        path: "/data.html",
        title: "Data for programs",
        about: "All listed instances of the Fediverse as JSON, CSV and SQLite, with signatures, changes and feeds.",
        scripts: &["/copy.js"],
    }
    .around(facts, &content)
}

/// Size of the file at this path; `None` if the index does not name it.
fn bytes_of(facts: &Facts, path: &str) -> Option<u64> {
    let name = path.strip_prefix(FOLDER)?;
    let mut files = facts.published.files.iter();
    files.find(|file| file.name == name).map(|file| file.bytes)
}

/// A row as programs get it.
fn sample() -> Markup {
    let row = ListedRow {
        host: "instance.example".to_owned(),
        state: ListedState::Alive,
        first_seen: Moment::from_milliseconds(1_798_761_600_000),
        last_alive: Moment::from_milliseconds(1_800_000_000_000),
        instance: Instance {
            software: Some("mastodon".to_owned()),
            version: Some("4.5.1".to_owned()),
            open_registrations: Some(true),
            ..Instance::default()
        },
    };
    // Serialising our own types can't fail.
    let line = serde_json::to_string(&row).unwrap_or_default();
    html! { pre tabindex="0" { code { (line) } } }
}

fn rules() -> Markup {
    html! {
        h2 { "Which hosts are listed" }
        p { "A host is listed if its NodeInfo described an instance within the last 14 days, unless it asks to be left out of statistics, asks us to stay away, answers 410, or redirects permanently to a listed host. An instance that stops answering stays for a week of failed daily checks." }
        dl {
            @for (state, says) in [
                (StateName::Alive, "It answered its last check."),
                (StateName::Dying, "It was up, and its last checks failed."),
                (StateName::Moving, "It was up, and redirects to another host where no instance has answered yet."),
            ] {
                dt { code { (state.as_str()) } ", shown as “" (state.for_people()) "”" }
                dd { (says) }
            }
        }
        p { "Software names and versions are what instances say of themselves. Escape them before you show them." }
    }
}

//! For users of the data: which files there are, and how to read them.

use maud::{Markup, html};

use super::layout::{Page, fill_in};
use crate::facts::Facts;

/// The published files that are meant for programs, and what each holds.
const FILES: [(&str, &str); 10] = [
    (
        "/data/index.json",
        "All files with their sizes, SHA-256, times and schema versions.",
    ),
    (
        "/data/nodes.json",
        "The names of all listed hosts: a sorted JSON array. Also at /nodes.json.",
    ),
    (
        "/data/instances.ndjson",
        "A JSON object a line for each listed host: host, software, version, state, first_seen, last_alive.",
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
        "How many listed hosts run which software, and which versions of it.",
    ),
    (
        DAYS,
        "What changed from one publication to the next, a file a day; the index has which days there are. A mirror follows with these alone.",
    ),
    (
        "/data/changes/feed.atom",
        "The newest changes for feed readers (Atom).",
    ),
    (
        "/data/index.json.minisig",
        "The index's signature, and with its hashes that of every file (minisign).",
    ),
    ("/data/fedicensus.pub", "The key that it is signed with."),
];

/// The files of many days. Which of them stand is not known here: a day on which nothing was published has none.
const DAYS: &str = "/data/changes/YYYY-MM-DD.ndjson";

/// Ways to read them, each a heading and its lines; `{}` stands for the address of this site.
const EXAMPLES: [(&str, &str); 5] = [
    (
        "curl and jq: how many, and the names of all that run Lemmy",
        "curl -s --compressed {}/data/nodes.json | jq length\n\
         curl -s --compressed {}/data/instances.ndjson | jq -r 'select(.software == \"lemmy\") | .host'\n",
    ),
    (
        "curl: only when there is something new",
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
        "A mirror: fetch the index, make sure that it is ours, then take what is new in it",
        "curl -s -O {}/data/fedicensus.pub -O {}/data/index.json -O {}/data/index.json.minisig\n\
         minisign -V -p fedicensus.pub -m index.json && jq -r '.files[] | .sha256 + \"  \" + .name' index.json\n",
    ),
];

/// The page.
pub(crate) fn data(facts: &Facts) -> String {
    let content = html! {
        p { "All that this census publishes is files, made anew about every six hours and each replaced at once, so that nobody ever sees half of one. They may be read from any origin, without a key. Please ask for what is new only: every file has an " code { "ETag" } "." }
        h2 { "Files" }
        table {
            thead { tr { th scope="col" { "File" } th scope="col" { "What it holds" } } }
            tbody {
                @for (path, says) in FILES {
                    tr {
                        th scope="row" { @if path == DAYS { (path) } @else { a href=(path) { (path) } } }
                        td { (says) }
                    }
                }
            }
        }
        p { "The files of the list, the changes, the feed and the index are there compressed as well, with " code { ".gz" } " behind their names." }
        (rules())
        h2 { "Examples" }
        (fill_in(facts))
        @for (title, lines) in EXAMPLES {
            h3 { (title) }
            pre tabindex="0" { code { (lines.replace("{}", facts.address())) } }
        }
    };
    Page {
        path: "/data.html",
        title: "Data for programs",
        script: None,
    }
    .around(facts, &content)
}

fn rules() -> Markup {
    html! {
        h2 { "Who is listed" }
        p { "A host is listed when NodeInfo named it as an instance within the last 14 days, unless it asks to be left out of statistics, asks us to stay away, answers 410, or redirects for good to a host that is listed itself. An instance that stops answering stays for a week of daily failures before it counts as dead." }
        dl {
            dt { code { "alive" } }
            dd { "It answered when it was last asked." }
            dt { code { "dying" } }
            dd { "It was alive, and has not answered lately." }
            dt { code { "moving" } }
            dd { "It was alive, and sends us to another host that is not alive yet." }
        }
        p { "Software names and versions are what instances say of themselves. Escape them before you show them." }
    }
}

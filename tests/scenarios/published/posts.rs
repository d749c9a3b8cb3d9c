//! Every route that takes a `POST`: guarded against pages of other sites, or exempt by name.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::Context as _;
use tests::{Options, PATIENCE, Role, World};

/// Requests by which a page's visitor changes something: the part, their type, their paths.
const GUARDED: [(Role, &str, &str, &str); 3] = [
    (
        Role::Console,
        "console",
        "application/x-www-form-urlencoded",
        "/decisions /groups /host /list /login /logins /logout /sources",
    ),
    (
        Role::Intake,
        "intake",
        "application/json",
        "/opt-out /proof /submit",
    ),
    (Role::Push, "push", "application/json", "/subscribe"),
];

/// Web Push: pages of all sites may send messages to endpoints and register some.
const EXEMPT: &str = "/v1/{router}/{app}/registration \
     /v1/{router}/{app}/registration/{uaid}/subscription /wpush/{token} /wpush/{version}/{token}";

/// Adds the paths of all routes in a folder of sources that take a `POST`.
fn add_posts(folder: &Path, paths: &mut BTreeSet<String>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            add_posts(&path, paths)?;
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        for call in text.split(".route(").skip(1).map(arguments) {
            if call.contains("post(") {
                let path = call.split('"').nth(1).with_context(|| call.to_owned())?;
                paths.insert(path.to_owned());
            }
        }
    }
    Ok(())
}

fn arguments(text: &str) -> &str {
    let mut depth = 1;
    let end = text.find(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth == 0
    });
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

fn status(socket: &Path, path: &str, kind: &str, site: &str) -> anyhow::Result<u16> {
    let mut stream = UnixStream::connect(socket)?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: census.test\r\nconnection: close\r\ncontent-type: {kind}\r\n\
         sec-fetch-site: {site}\r\ncontent-length: 2\r\n\r\n{{}}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split(' ').nth(1).context("no answer")?.parse()?)
}

#[tokio::test(flavor = "multi_thread")] // S35 S58
async fn every_post_is_guarded_or_exempt_by_name() -> anyhow::Result<()> {
    let services = Path::new(env!("CARGO_MANIFEST_DIR")).join("../services");
    let mut found = BTreeSet::new();
    for (_, name, ..) in GUARDED {
        add_posts(&services.join(name).join("src"), &mut found)?;
    }
    let guarded = GUARDED.map(|(.., paths)| paths).join(" ");
    let named = guarded.split(' ').chain(EXEMPT.split(' '));
    assert_eq!(found, named.map(str::to_owned).collect(), "name it above");

    let mut world = World::prepare(Options::new(&[])).await?;
    world.set("push_address", "https://push.lab.test");
    for (role, name, kind, paths) in GUARDED {
        world.begin(role).await?;
        let socket = world.path(&format!("run/{name}-http/http.sock"));
        let listens = |_: &World| Ok(UnixStream::connect(&socket).is_ok());
        world.until("it listens", PATIENCE, listens).await?;
        for path in paths.split(' ') {
            assert_eq!(status(&socket, path, kind, "cross-site")?, 403, "{path}");
            assert_eq!(status(&socket, path, "text/plain", "none")?, 415, "{path}");
        }
        for path in EXEMPT.split(' ').filter(|_| role == Role::Push) {
            let path = path.replace(['{', '}'], "");
            let status = status(&socket, &path, "text/plain", "cross-site")?;
            assert!(![403, 415].contains(&status), "{path}: {status}");
        }
    }
    Ok(())
}

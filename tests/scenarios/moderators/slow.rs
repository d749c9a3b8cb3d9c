//! Clients that send a login form as slowly as they can.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tests::{Options, PATIENCE, Role, Web, World};

/// More than the logins of unknown browsers that the console takes at once, from 63 addresses.
const SLOW: u32 = 1008;
const OF_ONE_ADDRESS: u32 = 16;

/// Begins a login: the head, and one byte of the longest form.
fn begin(web: &Web, address: &str) -> anyhow::Result<TcpStream> {
    let place = web.console_address().trim_start_matches("http://");
    let mut stream = TcpStream::connect(place)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "POST /login HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {address}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 4000\r\n\r\nf"
    )?;
    Ok(stream)
}

/// The status of a complete login form without its token, which the console refuses at once.
fn asked(web: &Web, address: &str) -> anyhow::Result<u16> {
    let place = web.console_address().trim_start_matches("http://");
    let mut stream = TcpStream::connect(place)?;
    write!(
        stream,
        "POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Forwarded-For: {address}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 6\r\n\r\nform=x"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split(' ').nth(1).unwrap_or_default().parse()?)
}

/// Slow bodies used to block all logins for as long as their senders liked.
#[tokio::test(flavor = "multi_thread")] // S26
async fn slow_login_forms_delay_moderators_for_seconds_only() -> anyhow::Result<()> {
    if !tests::are_there(&["nginx"]) {
        return Ok(());
    }
    let own = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: own.maximum,
        maximum: own.maximum,
    };
    setrlimit(Resource::Nofile, raised)?;
    let mut world = World::prepare(Options::new(&[])).await?;
    let accounts = tempfile::tempdir()?;
    world.set("data_dir", &accounts.path().display().to_string());
    world.begin(Role::Console).await?;
    let socket = world.path("run/console-http/http.sock");
    world
        .until("the console serves", PATIENCE, |_| Ok(socket.exists()))
        .await?;
    let folder = tempfile::tempdir()?;
    let believed = "set_real_ip_from 127.0.0.1;\nreal_ip_header X-Forwarded-For;\n";
    std::fs::write(folder.path().join("clients.conf"), believed)?;
    let web = Web::start_with_console(folder.path(), &world.path("public"), &socket).await?;
    let moderator = "203.0.113.9";
    assert_eq!(asked(&web, moderator)?, 403);
    let mut slow = Vec::new();
    for number in 0..SLOW {
        let address = format!("198.51.100.{}", number / OF_ONE_ADDRESS);
        slow.push(begin(&web, &address)?);
    }
    // Each gets an answer although it never sends its form.
    for stream in &mut slow {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        assert!(!answer.is_empty(), "a slow client is still waited for");
    }
    world
        .until("there is room again", PATIENCE, |_| {
            Ok(asked(&web, moderator)? == 403)
        })
        .await?;
    web.fits_into_its_memory()
}

//! A flood of logins through the web server, and a moderator's pages at the same time.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tests::{Options, Role, Web, World};

use super::client::{Cookies, Way, cookies_of};
use super::samples::quantile;
use super::say;

const PASSWORD: &str = "correct horse battery";

/// The moderator's address.
const MODERATOR: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Pages that are loaded again and again.
const PAGES: [&str; 3] = ["/", "/groups", "/logins"];

/// Between two pages: a moderator reads faster than that never.
const PAUSE: Duration = Duration::from_millis(20);

/// Pages are loaded for this long after the flood began.
const MEASURED: Duration = Duration::from_secs(5);

pub(crate) async fn measure(logins: usize, addresses: usize) -> Result<()> {
    let mut options = Options::new(&["mastodon.lab.test"]);
    options.settings.push(("console_socket", "true".to_owned()));
    let mut world = World::start(options).await?;
    let accounts = tempfile::tempdir()?;
    let place = accounts.path().display().to_string();
    let added = world.command_that_reads(
        &format!("{PASSWORD}\n"),
        &[("data_dir", &place)],
        &["moderator", "add", "ada"],
    )?;
    let told = String::from_utf8(added.stdout)?;
    let mut codes = told
        .lines()
        .filter(|line| line.matches('-').count() == 3)
        .map(str::trim);
    let data = world.setting("data_dir");
    world.set("data_dir", &place);
    world.begin(Role::Console).await?;
    world.set("data_dir", &data);
    let socket = world.path("run/console-http/http.sock");
    world
        .until("the console serves", Duration::from_secs(60), |_| {
            Ok(socket.exists())
        })
        .await?;
    let folder = tempfile::tempdir()?;
    let web = Web::start_with_console(folder.path(), &world.path("public"), &socket).await?;
    let port = web.console_address().rsplit(':').next().unwrap_or_default();
    let way = Way::Web(port.parse()?);

    let code = codes.next().context("no recovery code")?;
    let cookies = log_in(&way, &Cookies::new(), code).await?;
    let before = world.usage(Role::Console)?;
    say(&format!("console, before: {before:?}"))?;
    pages("quiet", &way, &cookies).await?;
    let began = Instant::now();
    let flood = tokio::spawn(flood(way.clone(), logins, addresses));
    pages("in the flood", &way, &cookies).await?;
    let known = log_in(&way, &cookies, codes.next().context("no code")?).await;
    say(&format!(
        "the right password from a known browser, {:.1} s after the flood began: {}",
        began.elapsed().as_secs_f64(),
        if known.is_ok() {
            "gets in"
        } else {
            "is refused"
        }
    ))?;
    for (status, count) in flood.await?? {
        say(&format!("flood: {count} times {status}"))?;
    }
    say(&format!(
        "console, after: {:?}",
        world.usage(Role::Console)?
    ))?;
    known.map(|_| ())
}

/// Logs the moderator in, and gives the cookies of session and browser.
async fn log_in(way: &Way, cookies: &Cookies, code: &str) -> Result<Cookies> {
    let (form_cookies, token) = way.login_form(MODERATOR).await?;
    let mut sent = form_cookies;
    sent.extend(
        cookies
            .iter()
            .filter(|(name, _)| name.ends_with("browser"))
            .cloned(),
    );
    let password = PASSWORD.replace(' ', "+");
    let body = format!("form={token}&name=ada&password={password}&code={code}");
    let reply = way.post(MODERATOR, "/login", &sent, &body).await?;
    ensure!(reply.status == 303, "not logged in: {}", reply.text);
    Ok(cookies_of(&reply))
}

async fn pages(when: &str, way: &Way, cookies: &Cookies) -> Result<()> {
    let began = Instant::now();
    let mut seconds = Vec::new();
    for page in PAGES.iter().cycle() {
        if began.elapsed() > MEASURED {
            break;
        }
        let asked = Instant::now();
        let reply = way.get(MODERATOR, page, cookies).await?;
        ensure!(reply.status == 200, "{page}: {}", reply.text);
        seconds.push(asked.elapsed().as_secs_f64());
        tokio::time::sleep(PAUSE).await;
    }
    say(&format!(
        "pages, {when}: {} loaded, median {:.0} ms, 95th percentile {:.0} ms, longest {:.0} ms",
        seconds.len(),
        quantile(&seconds, 0.5) * 1000.0,
        quantile(&seconds, 0.95) * 1000.0,
        quantile(&seconds, 1.0) * 1000.0
    ))?;
    Ok(())
}

/// Sends all logins at once, and counts the answers by status.
async fn flood(way: Way, logins: usize, addresses: usize) -> Result<BTreeMap<String, usize>> {
    let (form_cookies, token) = way.login_form(MODERATOR).await?;
    let sending: Vec<_> = (0..logins)
        .map(|number| {
            let last = u8::try_from(number % addresses.clamp(1, 250)).unwrap_or_default();
            let from = Ipv4Addr::new(127, 0, 1, last + 1);
            let (way, cookies) = (way.clone(), form_cookies.clone());
            let body = format!("form={token}&name=user{number}&password=wrong&code=0");
            tokio::spawn(async move {
                match way.post(from, "/login", &cookies, &body).await {
                    Ok(reply) => reply.status.to_string(),
                    Err(error) => error.to_string(),
                }
            })
        })
        .collect();
    let mut counted = BTreeMap::new();
    for sent in sending {
        *counted.entry(sent.await?).or_insert(0) += 1;
    }
    Ok(counted)
}

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

/// Pages that are loaded repeatedly.
const PAGES: [&str; 3] = ["/", "/groups", "/logins"];

/// Pause between pages, shorter than a human's.
const PAUSE: Duration = Duration::from_millis(5);

/// Number of floods, each from different addresses, because each gets its addresses banned.
const ROUNDS: u8 = 5;

/// Longest time for 95 of 100 pages during a flood.
const PAGE_TIME_MAX: f64 = 0.2;

/// A refused login is tried again after this.
const AGAIN: Duration = Duration::from_millis(300);

/// A moderator gives up after this.
const LOGIN_TIME_MAX: Duration = Duration::from_secs(10);

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
    let quiet = tokio::time::sleep(Duration::from_secs(3));
    let quiet = pages(&way, &cookies, quiet).await?;
    report("quiet", &quiet)?;
    let mut flooded = Vec::new();
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for round in 1..=ROUNDS {
        let code = codes.next().context("no recovery code")?;
        let flooding = flood(way.clone(), round, logins, addresses);
        let flooding = tokio::spawn(flooding);
        let known = tokio::spawn(known_browser(way.clone(), cookies.clone(), code.to_owned()));
        let mut statuses = None;
        let until_over = async { statuses = Some(flooding.await) };
        flooded.extend(pages(&way, &cookies, until_over).await?);
        for (status, count) in statuses.context("the flood")??? {
            *counted.entry(status).or_default() += count;
        }
        let seconds = known.await??;
        say(&format!(
            "round {round}: the right password from a known browser got in after {seconds:.1} s"
        ))?;
    }
    report("in the flood", &flooded)?;
    for (status, count) in counted {
        say(&format!("flood: {count} times {status}"))?;
    }
    let after = world.usage(Role::Console)?;
    say(&format!("console, after: {after:?}"))?;
    ensure!(
        quantile(&flooded, 0.95) <= PAGE_TIME_MAX,
        "pages take longer than {PAGE_TIME_MAX} s"
    );
    Ok(())
}

/// Logs in until it succeeds. Returns the seconds that this took.
async fn known_browser(way: Way, cookies: Cookies, code: String) -> Result<f64> {
    let began = Instant::now();
    loop {
        match log_in(&way, &cookies, &code).await {
            Ok(_) => return Ok(began.elapsed().as_secs_f64()),
            Err(error) if began.elapsed() > LOGIN_TIME_MAX => return Err(error),
            Err(_busy) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// Logs the moderator in. Returns the cookies of session and browser.
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

/// Loads pages until `over`. Returns the seconds of each.
async fn pages(way: &Way, cookies: &Cookies, over: impl Future<Output = ()>) -> Result<Vec<f64>> {
    let mut seconds = Vec::new();
    let loading = async {
        // From several addresses, because nginx limits the requests of one.
        let addresses = (2..=60).map(|last| Ipv4Addr::new(127, 0, 0, last)).cycle();
        for (page, from) in PAGES.iter().cycle().zip(addresses) {
            let asked = Instant::now();
            let reply = way.get(from, page, cookies).await?;
            ensure!(reply.status == 200, "{page}: {}", reply.text);
            seconds.push(asked.elapsed().as_secs_f64());
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    };
    tokio::select! {
        loaded = loading => loaded?,
        () = over => {}
    }
    Ok(seconds)
}

fn report(when: &str, seconds: &[f64]) -> Result<()> {
    say(&format!(
        "pages, {when}: {} loaded, median {:.0} ms, 95th percentile {:.0} ms, longest {:.0} ms",
        seconds.len(),
        quantile(seconds, 0.5) * 1000.0,
        quantile(seconds, 0.95) * 1000.0,
        quantile(seconds, 1.0) * 1000.0
    ))
}

/// Sends all logins at once, and counts the answers by status.
async fn flood(
    way: Way,
    round: u8,
    logins: usize,
    addresses: usize,
) -> Result<BTreeMap<String, usize>> {
    let (form_cookies, token) = way.login_form(MODERATOR).await?;
    let sending: Vec<_> = (0..logins)
        .map(|number| {
            let last = u8::try_from(number % addresses.clamp(1, 250)).unwrap_or_default();
            let from = Ipv4Addr::new(127, 0, round, last + 1);
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

//! How soon each place says that a census is ill: `target/tables/ill.md`.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use anyhow::Context as _;
use tokio::time::Instant;

use super::{Role, World};
use crate::tables::{directory, join};
use crate::{PATIENCE, patient};

const PLACES: [&str; 5] = ["status", "health", "metrics", "log", "site"];

/// The setting by which a world serves [`World::metrics`].
pub const WITH_METRICS: (&str, &str) = ("optional_sockets", "metrics");

/// Where an illness has been said since it began.
#[derive(Debug, Clone)]
pub struct Heard {
    began: Instant,
    after_s: BTreeMap<&'static str, f64>,
    logged_before: usize,
}

impl World {
    /// The samples of the metrics page, by their series.
    pub fn metrics(&self) -> anyhow::Result<BTreeMap<String, f64>> {
        let (head, page) = self.ask_metrics("GET /metrics")?;
        anyhow::ensure!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let lines = page.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.filter_map(|line| line.rsplit_once(' '));
        samples
            .map(|(series, value)| Ok((series.to_owned(), value.parse()?)))
            .collect()
    }

    /// Head and body of the answer to a request on the metrics socket.
    pub fn ask_metrics(&self, request: &str) -> anyhow::Result<(String, String)> {
        let mut stream = UnixStream::connect(self.path("run/metrics/metrics.sock"))?;
        stream.set_read_timeout(Some(patient(PATIENCE)))?;
        write!(stream, "{request} HTTP/1.1\r\nhost: metrics\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("a head")?;
        Ok((head.to_owned(), body.to_owned()))
    }
}

impl Heard {
    /// The illness begins now.
    pub fn begin(world: &World) -> Self {
        Self {
            began: Instant::now(),
            after_s: BTreeMap::new(),
            logged_before: errors(world).len(),
        }
    }

    /// Looks at all places. Returns whether all but the site say it, which may take a minute.
    pub fn look(&mut self, world: &World) -> anyhow::Result<bool> {
        let exits_ill = |command| anyhow::Ok(world.command(&[command])?.status.code() == Some(3));
        for place in PLACES {
            if self.after_s.contains_key(place) {
                continue;
            }
            let says = match place {
                "status" | "health" => exits_ill(place),
                "metrics" => Ok(world.metrics()?.get("fedicensus_ill") == Some(&1.0)),
                "log" => Ok(errors(world).len() > self.logged_before),
                _ => Ok(
                    std::fs::read_to_string(world.path("public/current/index.html"))
                        .is_ok_and(|page| page.contains("Something is wrong with this census")),
                ),
            };
            if says? {
                let after_s = self.began.elapsed().as_secs_f64();
                self.after_s.insert(place, after_s);
            }
        }
        let mut all = PLACES.iter().filter(|place| **place != "site");
        Ok(all.all(|place| self.after_s.contains_key(place)))
    }

    /// Writes the row, with the sentence that `health` says.
    pub fn write(&self, world: &World, fault: &str) -> anyhow::Result<()> {
        let said = world.command(&["health"])?.stderr;
        let said = String::from_utf8_lossy(&said).replace('\n', " ");
        let said = said.trim().replace('|', "\\|");
        let cells = PLACES.map(|place| {
            let after = self.after_s.get(place);
            after.map_or("-".to_owned(), |after| format!("{after:.1} s"))
        });
        let head = format!(
            "| what is ill | {} | what they say |\n{}\n",
            PLACES.join(" | "),
            "|---".repeat(PLACES.len() + 2) + "|"
        );
        let row = format!("| {fault} | {} | {said} |\n", cells.join(" | "));
        let part = fault.replace(|letter: char| !letter.is_alphanumeric(), "-");
        join(&directory()?, "ill", &head, &part, &row)
    }
}

fn errors(world: &World) -> Vec<String> {
    let log = world.log(Role::Run);
    let errors = log.lines().filter(|line| line.contains(" ERROR "));
    errors.map(str::to_owned).collect()
}

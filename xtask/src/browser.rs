//! Examines the pages of the whole stack, as the lab's script started it, in a browser.
//!
//! Prints one line about the results; screenshots are in the target folder, `pictures`. A wrong
//! answer, a message on the console, a request to another server or a breach of accessibility is an
//! error.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::step::{Outcome, output, passes, say, target_folder};

/// Where the scenario of the pages expects the accessibility checker: cargo's
/// `CARGO_TARGET_TMPDIR`, below the target folder.
const AXE: &str = "tmp/axe.js";

/// The answer for every host that opted out or hides.
const WITHHELD: &str = "Its owner asked to be left out";

/// Hosts of the lab, and how their answers begin.
const ANSWERS: [(&str, &str); 4] = [
    ("mastodon.lab.test", "It is up."),
    ("robots-all.lab.test", WITHHELD),
    ("pleroma-private.lab.test", WITHHELD),
    ("never-heard-of.lab.test", "We do not know this name."),
];

pub(crate) fn fetch_axe(root: &Path) -> anyhow::Result<Outcome> {
    let place = target_folder(root).join(AXE);
    std::fs::create_dir_all(place.parent().context("a file in a folder")?)?;
    let script = root.join("tests/scenarios/published/site/fetch_axe.py");
    passes(Command::new("python3").arg(script).arg(place))?;
    Ok(Outcome::Passed)
}

/// Examines all pages at `http://127.0.0.1:PORT`.
pub(crate) fn look(root: &Path, port: &str) -> anyhow::Result<()> {
    let target = target_folder(root);
    let (pictures, profile) = (target.join("pictures"), target.join("browser"));
    std::fs::create_dir_all(&pictures)?;
    let found = output(
        Command::new("node")
            .arg(root.join("tests/scenarios/published/site/browser.mjs"))
            .args(["chromium", &format!("http://127.0.0.1:{port}")])
            .args([&profile, &pictures, &target.join(AXE)])
            .arg("pages")
            .args(ANSWERS.map(|(host, _)| host)),
    );
    // If the browser did not start, the folder does not exist.
    std::fs::remove_dir_all(&profile).ok();
    let found: Value = serde_json::from_str(&found?)?;
    for (host, says) in ANSWERS {
        let told = part(&found, &["why", host, "answer-why"])?;
        ensure!(
            told.as_str().is_some_and(|told| told.starts_with(says)),
            "the page says of {host}: {told}"
        );
    }
    let troubles = part(&found, &["troubles"])?;
    ensure!(is_empty(troubles), "the browser complains of: {troubles}");
    let examined = part(&found, &["examined"])?
        .as_object()
        .context("nothing was examined")?;
    for (page, said) in examined {
        let violations = part(said, &["violations"])?;
        ensure!(
            is_empty(violations),
            "{page} is not accessible: {violations}"
        );
    }
    ensure!(!examined.is_empty(), "no page was examined");
    say(&format!(
        "browser: {} looks at pages, screenshots in {}",
        examined.len(),
        pictures.display()
    ))
}

fn part<'v>(value: &'v Value, path: &[&str]) -> anyhow::Result<&'v Value> {
    path.iter()
        .try_fold(value, |value, name| value.get(name))
        .with_context(|| format!("the browser says nothing of {}", path.join(": ")))
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

//! The images: built with the cargo profile `ci`, under tags of CI's own, and bounded in size.

use std::process::Command;

use anyhow::bail;

use super::extent::IMAGE_TAG;
use super::lab::NAME;
use super::step::Context;
use crate::step::{Outcome, output, passes, say};

/// Largest images, in bytes. A checker is started for every check and is all that a hostile host could ever use.
const IMAGE_BYTES_MAX: [(&str, u64); 2] = [
    ("localhost/fedicensus-checker", 10_000_000),
    ("localhost/fedicensus-orchestrator", 30_000_000),
];

/// Without a registry these take minutes of downloading and unpacking.
pub(super) fn bases(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let mut build = Command::new(context.root.join("deploy/build"));
    passes(build.arg("--bases").current_dir(context.root))?;
    Ok(Outcome::Passed)
}

pub(super) fn build(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let mut build = Command::new(context.root.join("deploy/build"));
    passes(
        build
            .arg("--lab")
            .env("FEDICENSUS_LAB_NAME", NAME)
            .current_dir(context.root),
    )?;
    let engine = context.engine()?;
    for (name, most) in IMAGE_BYTES_MAX {
        let image = format!("{name}:{IMAGE_TAG}");
        let arguments = ["image", "inspect", "--format", "{{.Size}}", &image];
        let size: u64 = output(engine.command().args(arguments))?.trim().parse()?;
        say(&format!("{image}: {:.1} MB", size as f64 / 1e6))?;
        if size > most {
            bail!("{image} has {size} bytes; at most {most} are allowed");
        }
    }
    Ok(Outcome::Passed)
}

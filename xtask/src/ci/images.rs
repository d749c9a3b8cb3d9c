//! The images: built under CI's own tags, and limited in size.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;

use super::lab::NAME;
use super::step::{Context, PROFILE};
use crate::step::{Outcome, output, passes, say, target_folder};

/// Largest images, in bytes. Every check starts a checker, and it contains everything that a
/// hostile host could ever use.
const IMAGE_BYTES_MAX: [(&str, u64); 2] = [
    ("localhost/fedicensus-checker", 10_000_000),
    ("localhost/fedicensus-orchestrator", 30_000_000),
];

/// Without a registry, these take minutes of downloading and unpacking.
pub(super) fn bases(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let mut build = Command::new(context.root.join("deploy/build"));
    passes(build.arg("--bases").current_dir(context.root))?;
    Ok(Outcome::Passed)
}

/// Writes the tree, with changes that are not committed, as git does under umask 077 and with
/// `core.autocrlf`.
fn strict_checkout(root: &Path) -> anyhow::Result<PathBuf> {
    const SCRIPT: &str = r#"
        umask 077
        rm -rf "$1"
        mkdir -p "$1"
        export GIT_INDEX_FILE="$1.index"
        git add --all
        git -c core.autocrlf=true checkout-index --all --prefix="$1/"
        rm "$GIT_INDEX_FILE"
    "#;
    let checkout = target_folder(root).join("ci/checkout");
    let mut bash = Command::new("bash");
    let bash = bash.args(["-euc", SCRIPT, "checkout"]).arg(&checkout);
    passes(bash.current_dir(root))?;
    Ok(checkout)
}

/// Builds the lab's images from the checkout of a hardened machine, so that no image depends on
/// modes or line ends.
pub(super) fn build(context: &Context<'_>) -> anyhow::Result<Outcome> {
    let checkout = strict_checkout(context.root)?;
    let mut build = Command::new(checkout.join("deploy/build"));
    passes(
        build
            .arg("--lab")
            .env("FEDICENSUS_LAB_NAME", NAME)
            .env(PROFILE, context.profile())
            .current_dir(&checkout),
    )?;
    let engine = context.engine()?;
    for (name, most) in IMAGE_BYTES_MAX {
        let image = format!("{name}:fedicensus-{NAME}");
        let arguments = ["image", "inspect", "--format", "{{.Size}}", &image];
        let size: u64 = output(engine.command().args(arguments))?.trim().parse()?;
        say(&format!("{image}: {:.1} MB", size as f64 / 1e6))?;
        if size > most {
            bail!("{image} has {size} bytes; at most {most} are allowed");
        }
    }
    Ok(Outcome::Passed)
}

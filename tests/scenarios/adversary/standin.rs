//! Builds the attacker: static, with the standard library alone, laid over the checker's image.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;
use tempfile::TempDir;
use tests::Options;

use crate::containers::docker;

/// The attacker as a program in a directory of its own.
pub(super) struct Program {
    directory: TempDir,
}

impl Program {
    pub(super) fn build() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/adversary/main.rs");
        let built = Command::new("rustc")
            .args(["--edition", "2024", "-O", "-D", "warnings"])
            .args(["-C", "target-feature=+crt-static", "-o"])
            .arg(directory.path().join("standin"))
            .arg(source)
            .status()?;
        if !built.success() {
            bail!("the stand-in does not build");
        }
        Ok(Self { directory })
    }

    /// Where it lies; the real checker is laid beside it, because for most hosts it becomes that.
    pub(super) fn beside_the_checker(&self) -> anyhow::Result<PathBuf> {
        let test = std::env::current_exe()?;
        let built = test.ancestors().nth(2).unwrap_or(Path::new("."));
        let checker = self.directory.path().join("fedicensus-checker");
        std::fs::copy(built.join("fedicensus-checker"), checker)?;
        Ok(self.directory.path().join("standin"))
    }
}

/// The attacker as an image; removed when dropped.
pub(super) struct Image {
    socket: PathBuf,
    pub(super) name: String,
}

impl Image {
    pub(super) fn build(socket: &Path, tag: &str) -> anyhow::Result<Self> {
        let program = Program::build()?;
        let directory = program.directory.path();
        let checker = Options::new(&[]).checker;
        let checker = checker.as_deref().unwrap_or(tests::world::CHECKER_IMAGE);
        archive(directory)?;
        let containerfile = directory.join("Containerfile");
        std::fs::write(
            &containerfile,
            format!(
                "FROM {checker}\nADD standin.tar /\nENTRYPOINT [\"/standin\"]\nLABEL org.fedicensus=test\n"
            ),
        )?;
        let name = format!(
            "localhost/fedicensus-test-standin:{tag}-{}",
            std::process::id()
        );
        let (file, context) = (
            containerfile.display().to_string(),
            directory.display().to_string(),
        );
        docker(socket, &["build", "-q", "-t", &name, "-f", &file, &context])?;
        Ok(Self {
            socket: socket.to_owned(),
            name,
        })
    }
}

/// The program as it lies in the image: to be executed and not read, as the checker is. In an archive, because whoever runs the test could not
/// hand it to the engine otherwise.
fn archive(directory: &Path) -> anyhow::Result<()> {
    let made = Command::new("tar")
        .args(["--create", "--owner=0", "--group=0", "--mode=0111"])
        .arg("--file")
        .arg(directory.join("standin.tar"))
        .arg("--directory")
        .arg(directory)
        .arg("standin")
        .status()?;
    if !made.success() {
        bail!("no archive of the stand-in");
    }
    Ok(())
}

impl Drop for Image {
    fn drop(&mut self) {
        docker(&self.socket, &["image", "rm", "-f", &self.name]).ok();
    }
}

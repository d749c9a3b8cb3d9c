//! Builds the attacker: static, with the standard library only, laid over the checker's image.
//!
//! Without a compiler, `FEDICENSUS_TEST_STANDIN` names the program.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use tempfile::TempDir;
use tests::{EngineApi, Options};

/// The attacker as a program in a separate directory.
pub(super) struct Program {
    directory: TempDir,
}

impl Program {
    pub(super) fn build() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        if let Some(built) = std::env::var_os("FEDICENSUS_TEST_STANDIN") {
            std::fs::copy(&built, directory.path().join("standin"))
                .with_context(|| format!("FEDICENSUS_TEST_STANDIN={}", built.display()))?;
            return Ok(Self { directory });
        }
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

    /// Copies the real checker next to it, which the attacker becomes for most hosts. Returns the
    /// attacker's path.
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
    engine: EngineApi,
    pub(super) name: String,
}

impl Image {
    pub(super) fn build(engine: &EngineApi, tag: &str) -> anyhow::Result<Self> {
        let program = Program::build()?;
        let directory = program.directory.path();
        let checker = Options::new(&[]).checker;
        let checker = checker.unwrap_or_else(tests::world::checker_image);
        // Executable and not readable, like the checker. An archive within the archive, because an
        // unprivileged user can't own files as root.
        archive(directory, "standin.tar", "0111", &["standin"])?;
        std::fs::write(
            directory.join("Containerfile"),
            format!(
                "FROM {checker}\nADD standin.tar /\nENTRYPOINT [\"/standin\"]\nLABEL org.fedicensus=test\n"
            ),
        )?;
        archive(
            directory,
            "context.tar",
            "0644",
            &["Containerfile", "standin.tar"],
        )?;
        let name = format!(
            "localhost/fedicensus-test-standin:{tag}-{}",
            std::process::id()
        );
        engine.build(&name, std::fs::read(directory.join("context.tar"))?)?;
        Ok(Self {
            engine: engine.clone(),
            name,
        })
    }
}

/// Puts files into an archive, owned by root and with this mode.
fn archive(directory: &Path, name: &str, mode: &str, files: &[&str]) -> anyhow::Result<()> {
    let made = Command::new("tar")
        .args(["--create", "--owner=0", "--group=0"])
        .arg(format!("--mode={mode}"))
        .arg("--file")
        .arg(directory.join(name))
        .arg("--directory")
        .arg(directory)
        .args(files)
        .status()?;
    if !made.success() {
        bail!("no archive of {files:?}");
    }
    Ok(())
}

impl Drop for Image {
    fn drop(&mut self) {
        self.engine.remove_image(&self.name).ok();
    }
}

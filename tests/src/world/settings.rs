//! The settings of a world's parts: environment variables, and the file with the lab's settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

const LAB_PREFIX: &str = "lab.";

const FILE: &str = "fedicensus.toml";

/// Settings by their keys in `docs/settings.md`; those of the table `[lab]` begin with `lab.`.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    values: BTreeMap<String, String>,
    /// Variables that are not settings.
    variables: BTreeMap<String, String>,
}

impl Settings {
    pub(super) fn set(&mut self, key: &str, value: &str) {
        self.values.insert(key.to_owned(), value.to_owned());
    }

    pub(super) fn set_variable(&mut self, key: &str, value: &str) {
        self.variables.insert(key.to_owned(), value.to_owned());
    }

    /// A setting's value; empty if it has the product's default.
    pub(super) fn get(&self, key: &str) -> String {
        self.values.get(key).cloned().unwrap_or_default()
    }

    /// The environment of a part with these settings. Writes the settings file that it names into
    /// `directory`.
    pub(super) fn environment(&self, directory: &Path) -> anyhow::Result<BTreeMap<String, String>> {
        let lab = self
            .values
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(LAB_PREFIX)?, value)));
        let file = write_lab_file(directory, lab)?;
        let settings = self
            .values
            .iter()
            .filter(|(key, _)| !key.starts_with(LAB_PREFIX))
            .map(|(key, value)| (format!("FEDICENSUS_{}", key.to_uppercase()), value.clone()));
        let file = ("FEDICENSUS_CONFIG".to_owned(), file.display().to_string());
        let variables = self.variables.clone();
        Ok(variables
            .into_iter()
            .chain(settings)
            .chain([file])
            .collect())
    }
}

/// Writes a settings file with these keys and values in the table `[lab]` into `directory`, in one
/// step, and returns its path.
pub fn write_lab_file<Key: AsRef<str>, Value: AsRef<str>>(
    directory: &Path,
    settings: impl IntoIterator<Item = (Key, Value)>,
) -> anyhow::Result<PathBuf> {
    let lines: String = settings
        .into_iter()
        .map(|(key, value)| format!("{} = {:?}\n", key.as_ref(), value.as_ref()))
        .collect();
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    std::io::Write::write_all(&mut file, format!("[lab]\n{lines}").as_bytes())?;
    let path = directory.join(FILE);
    file.persist(&path)
        .with_context(|| format!("{} can't be written", path.display()))?;
    Ok(path)
}

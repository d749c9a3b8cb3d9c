//! The settings file: TOML with plain values, and the lab's settings in the table `[lab]`.

use std::collections::BTreeMap;
use std::path::Path;

use super::ConfigError;
use super::table::{self, LAB_PREFIX};
use super::variables::nearest;

/// Most bytes of a settings file; a full one with comments is below 8 KiB.
const BYTES_MAX: u64 = 64 * 1024;

/// The values in the file at `path`, by the keys of the settings' table.
///
/// # Errors
/// The file can't be read, is not TOML with plain values, or holds an unknown key.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, String>, ConfigError> {
    let refuse = |problem: String| ConfigError::File {
        path: path.to_owned(),
        problem,
    };
    let length = std::fs::metadata(path)
        .map_err(|error| refuse(error.to_string()))?
        .len();
    if length > BYTES_MAX {
        return Err(refuse(format!(
            "it holds {length} bytes; at most {BYTES_MAX} are read"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    parse(&text).map_err(refuse)
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| with_line(text, &error))?;
    let lab = match table.remove(LAB_PREFIX.trim_end_matches('.')) {
        None => toml::Table::new(),
        Some(toml::Value::Table(lab)) => lab,
        Some(_) => return Err("`lab` must be a table, `[lab]`".to_owned()),
    };
    let mut written = BTreeMap::new();
    take(table, "", &mut written)?;
    take(lab, LAB_PREFIX, &mut written)?;
    Ok(written)
}

fn with_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.unwrap_or_default().matches('\n').count();
    format!("line {}: {}", line + 1, error.message())
}

/// Adds a table's values, whose keys begin with `prefix` in the settings' table.
fn take(
    table: toml::Table,
    prefix: &str,
    written: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        // A quoted key at the top level may hold a dot, which does not make it a lab setting.
        let is_known = table::all().any(|setting| setting.key == key) && !name.contains('.');
        if !is_known {
            let keys = table::all().map(|setting| setting.key.to_owned());
            let nearest = nearest(&key, keys);
            return Err(format!(
                "`{key}` is not a setting; did you mean `{nearest}`? `fedicensus settings` lists them"
            ));
        }
        let value = plain(&value).ok_or_else(|| {
            format!("`{key}` must be a text, a number, a boolean or a list of texts")
        })?;
        written.insert(key, value);
    }
    Ok(())
}

fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(value) => Some(value.to_string()),
        toml::Value::Array(items) => items
            .iter()
            .map(plain)
            .collect::<Option<Vec<_>>>()
            .map(|items| items.join(",")),
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&[(&str, &str)], &str>) {
        let pairs = |pairs: &[(&str, &str)]| {
            let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            pairs.iter().map(owned).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(
            parse(text),
            expect.map(pairs).map_err(str::to_owned),
            "{text}"
        );
    }

    #[test]
    fn what_is_no_toml_is_named_with_its_line() {
        let error = parse("checks_max = 2\nseeds = = 1\n").unwrap_err();
        assert!(error.starts_with("line 2: "), "{error}");
    }

    #[test]
    fn the_labs_settings_stand_in_a_table_of_their_own() {
        check(
            "checks_max = 2\n[lab]\nallow_private = true\n",
            Ok(&[("checks_max", "2"), ("lab.allow_private", "true")]),
        );
        check("lab = 1", Err("`lab` must be a table, `[lab]`"));
        for (text, key, nearest) in [
            ("check_max = 2", "check_max", "checks_max"),
            ("allow_private = true", "allow_private", "lab.allow_private"),
            ("[lab]\nchecks_max = 2", "lab.checks_max", "lab.checks_min"),
            (
                "[lab]\nallow_privat = true",
                "lab.allow_privat",
                "lab.allow_private",
            ),
            (
                "\"lab.allow_private\" = true",
                "lab.allow_private",
                "lab.allow_private",
            ),
        ] {
            let unknown = format!(
                "`{key}` is not a setting; did you mean `{nearest}`? `fedicensus settings` lists them"
            );
            check(text, Err(&unknown));
        }
        check(
            "[lab.allow_private]\n",
            Err("`lab.allow_private` must be a text, a number, a boolean or a list of texts"),
        );
    }
}

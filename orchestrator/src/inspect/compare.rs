//! Compares our published list with another.

use std::collections::BTreeSet;

use protocol::limits::TEXT_BYTES_MAX;
use protocol::{Host, escaped};
use serde::Serialize;

/// Most hosts of our list alone in the text: against a small list they are nearly all of ours.
const OURS_SHOWN_MAX: usize = 20;

/// Names that are in both lists or in only one of them.
#[derive(Debug, Default, Serialize)]
pub struct Comparison {
    pub both: u64,
    /// Hosts in our published list only.
    pub only_ours: Vec<String>,
    /// Hosts in the other list only, and why they are not in ours.
    pub only_theirs: Vec<Missing>,
    /// Entries of the other list that are not host names, escaped.
    pub invalid: Vec<String>,
}

/// A host that is missing from our list.
#[derive(Debug, Serialize)]
pub struct Missing {
    pub host: Host,
    /// Its state, as in `fedicensus explain`.
    pub state: String,
    /// Why it is not listed, as in `fedicensus explain`.
    pub why: String,
}

/// Compares `ours` with the names of another list. `explain` returns the state of a missing host
/// and why it is not listed.
pub fn compare<E>(
    ours: impl Iterator<Item = Result<String, E>>,
    theirs: &[String],
    mut explain: impl FnMut(&Host) -> Result<(String, String), E>,
) -> Result<Comparison, E> {
    let mut comparison = Comparison::default();
    let mut left = BTreeSet::new();
    for name in theirs {
        match Host::parse(name) {
            Ok(host) => {
                left.insert(host);
            }
            Err(_) => comparison
                .invalid
                .push(escaped(name.as_bytes(), TEXT_BYTES_MAX)),
        }
    }
    for name in ours {
        let name = name?;
        let is_theirs = Host::parse(&name).is_ok_and(|host| left.remove(&host));
        if is_theirs {
            comparison.both = comparison.both.saturating_add(1);
        } else {
            comparison.only_ours.push(name);
        }
    }
    for host in left {
        let (state, why) = explain(&host)?;
        comparison.only_theirs.push(Missing { host, state, why });
    }
    Ok(comparison)
}

impl Comparison {
    /// Counts, then names, as text.
    pub fn text(&self) -> String {
        let mut lines = vec![format!(
            "{} in both lists, {} only in ours, {} only in theirs, {} not a host name",
            self.both,
            self.only_ours.len(),
            self.only_theirs.len(),
            self.invalid.len(),
        )];
        let missing = self.only_theirs.iter();
        lines.extend(
            missing.map(|missing| format!("only theirs: {}: {}", missing.host, missing.why)),
        );
        let ours = self.only_ours.iter().take(OURS_SHOWN_MAX);
        lines.extend(ours.map(|host| format!("only ours: {host}")));
        let more = self.only_ours.len().saturating_sub(OURS_SHOWN_MAX);
        if more > 0 {
            lines.push(format!("… and {more} more only in ours; --json shows all"));
        }
        lines.extend(
            self.invalid
                .iter()
                .map(|name| format!("not a host name: {name}")),
        );
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn each_name_is_in_both_lists_or_in_one_of_them() {
        let ours = ["a.example", "b.example", "xn--bcher-kva.example"];
        let theirs = [
            "B.example.",
            "bücher.example",
            "c.example",
            "c.example",
            "no host",
        ];
        let comparison = compare(
            ours.into_iter()
                .map(|name| Ok::<_, Infallible>(name.to_owned())),
            &theirs.map(str::to_owned),
            |host| Ok(("unknown".to_owned(), format!("we do not know {host}"))),
        )
        .unwrap();
        let expect = "2 in both lists, 1 only in ours, 1 only in theirs, 1 not a host name\n\
            only theirs: c.example: we do not know c.example\n\
            only ours: a.example\n\
            not a host name: no host";
        assert_eq!(comparison.text(), expect);
    }

    #[test]
    fn few_of_the_hosts_of_our_list_alone_are_shown() {
        let comparison = Comparison {
            only_ours: (0..25).map(|number| format!("h{number}.example")).collect(),
            ..Comparison::default()
        };
        let text = comparison.text();
        assert_eq!(text.matches("only ours: ").count(), OURS_SHOWN_MAX);
        assert!(text.ends_with("… and 5 more only in ours; --json shows all"));
    }
}

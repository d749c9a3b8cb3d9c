//! Parses forms, with bounds that apply before the parsing.

use std::time::Duration;

use local_socket::guard::{self, Guard};
use url::form_urlencoded;

/// The guard of moderators' forms. The longest has a hundred domains and a reason.
pub(crate) const MODERATORS: Guard = Guard {
    kind: guard::FORM,
    bytes_max: 64 * 1024,
    time_max: Duration::from_secs(5),
};

/// The guard of the login form, which strangers send too: a name, a password of up to 128
/// characters, and a code.
pub(crate) const LOGIN: Guard = Guard {
    kind: guard::FORM,
    bytes_max: 4 * 1024,
    time_max: Duration::from_secs(2),
};

pub(crate) const FIELDS_MAX: usize = 500;

/// The fields of a form or a query.
#[derive(Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn of_query(query: Option<&str>) -> Self {
        Self::parse(query.unwrap_or_default().as_bytes())
    }

    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(bytes).into_owned();
        Self(pairs.take(FIELDS_MAX).collect())
    }

    #[cfg(feature = "fuzzing")]
    pub(crate) fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }

    /// The first value of a field. Empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        let mut of_name = self.0.iter().filter(|(key, _)| key == name);
        of_name
            .next()
            .map(|(_, value)| value.as_str())
            .unwrap_or_default()
    }

    pub(crate) fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        let of_name = self.0.iter().filter(move |(key, _)| key == name);
        of_name.map(|(_, value)| value.as_str())
    }

    /// A field's number. 0 if there is none.
    pub(crate) fn number<T: std::str::FromStr + Default>(&self, name: &str) -> T {
        self.text(name).parse().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_its_fields() {
        let sent = Fields::parse(b"a=1&b=%C3%A4+%26&a=2");
        assert_eq!(sent.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!((sent.text("b"), sent.text("c")), ("\u{e4} &", ""));
        assert_eq!(sent.number::<u32>("a"), 1);
    }
}

//! What an instance says about itself in its NodeInfo.
//!
//! The same struct goes from the checker's `alive` event to the verdict, the record, the published
//! row and the pages, so that a further member is added here and where it is written out.

use serde::{Deserialize, Deserializer, Serialize};

use crate::limits::SOFTWARE_BYTES_MAX;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// `software.name`, in lower case, at most [`SOFTWARE_BYTES_MAX`] bytes. Every `alive` event
    /// has it. `None` for a host that was never found alive.
    #[serde(deserialize_with = "some_text")]
    pub software: Option<String>,
    /// `software.version` cut to [`SOFTWARE_BYTES_MAX`] bytes. `None` if it is no string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Not stored: the record keeps whether the host is hidden, which also depends on earlier
    /// checks.
    pub private: Private,
    /// `openRegistrations`. `None` if it is no boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_registrations: Option<bool>,
    /// The fork that it runs, in one lower-case word, as its version or its repository names it.
    /// `None` for the software's own version, and where nothing names a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// Whether an instance asks to be left out of statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Private {
    Yes,
    /// The flag was read and is not set.
    No,
    /// The flag could not be read, so the earlier answer stays.
    #[default]
    Unknown,
}

impl Instance {
    /// Whether it has a software name, and all texts are within their bounds.
    pub fn is_within_bounds(&self) -> bool {
        let is_short = |text: &String| text.len() <= SOFTWARE_BYTES_MAX;
        self.software
            .as_ref()
            .is_some_and(|name| !name.is_empty() && is_short(name))
            && [&self.version, &self.variant]
                .into_iter()
                .flatten()
                .all(is_short)
    }
}

/// The member is required and no `null`, although the type would allow both.
fn some_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

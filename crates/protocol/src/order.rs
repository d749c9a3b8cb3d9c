//! What a check is asked to do beyond its host. The gateway lays it beside the egress socket; see decision record 0002.

use serde::{Deserialize, Serialize};

/// The content of `order.json` in a check's egress directory.
///
/// A launch request carries a check id and a host and nothing else, so that no request can change a container; what a check should ask for
/// reaches it as a file beside the socket that it is given anyway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckOrder {
    /// Who runs this census, as a URL or an address of mail: it stands in the user agent, `Fedicensus/<version> (+<contact>)`.
    pub contact: String,
    /// Whether to ask for peers after `alive`.
    pub peers: AskPeers,
}

/// Whether a check asks for peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskPeers {
    /// Ask, where robots.txt lets us.
    Ask,
    /// This time only the finding is wanted; the outcome is `none`.
    Skip,
}

//! The bounds of one check as values, so that tests can shorten them. `protocol::limits` has the
//! numbers and their reasons.

use std::time::Duration;

use protocol::limits;

/// Decoded bytes of an opt-out flag's document. `siteinfo.json` of a large Hubzilla hub holds 20
/// KiB.
const FLAG_BYTES_MAX: u64 = 256 * 1024;

/// The bounds of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time for the whole check.
    pub whole: Duration,
    /// From a request's start, connecting included, to the end of the answer's head.
    pub first_byte: Duration,
    /// Time in which each [`Self::body_bytes_per_window`] of a body has to arrive.
    pub body_window: Duration,
    /// Bytes of a body that have to arrive in each window, or the rest of the body.
    pub body_bytes_per_window: u64,
    /// Requests, redirects and pages included.
    pub requests: u32,
    /// Requests in one second.
    pub requests_per_second: u32,
    /// Redirects followed from one request.
    pub redirects: u32,
    /// Decoded bytes of robots.txt that are parsed; the rest is not read.
    pub robots_bytes: u64,
    /// Decoded bytes of either NodeInfo document.
    pub nodeinfo_bytes: u64,
    /// Decoded bytes of an opt-out flag's document.
    pub flag_bytes: u64,
    /// Decoded bytes of all peers answers.
    pub peers_bytes: u64,
    /// Decoded bytes of a public list.
    pub list_bytes: u64,
    pub peers: u64,
    /// Bytes of everything that is printed.
    pub stdout_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            whole: Duration::from_secs(limits::CHECKER_SECONDS_MAX),
            first_byte: Duration::from_secs(limits::FIRST_BYTE_SECONDS_MAX),
            body_window: Duration::from_secs(limits::BODY_WINDOW_SECONDS),
            body_bytes_per_window: limits::BODY_BYTES_PER_WINDOW_MIN,
            requests: limits::REQUESTS_MAX,
            requests_per_second: limits::REQUESTS_PER_SECOND,
            redirects: limits::REDIRECTS_MAX,
            robots_bytes: limits::ROBOTS_BYTES_MAX,
            nodeinfo_bytes: limits::NODEINFO_BYTES_MAX,
            flag_bytes: FLAG_BYTES_MAX,
            peers_bytes: limits::PEERS_BYTES_MAX,
            list_bytes: limits::LIST_BYTES_MAX,
            peers: limits::PEERS_MAX,
            stdout_bytes: limits::STDOUT_BYTES_MAX,
        }
    }
}

//! What the launcher and its clients read from each other, and from a probe container.

pub mod launcher_frames;
pub mod launcher_request;
pub mod probe_report;

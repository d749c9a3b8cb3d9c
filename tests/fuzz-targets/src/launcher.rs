//! Input of the launcher and its clients from each other, and from a probe container.

pub mod launcher_frames;
pub mod launcher_request;
pub mod probe_report;

//! Compressed twins of files (RFC 1952). Equal bytes give equal bytes: the header has no time and
//! no system.

use std::io::Write;

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

/// How a twin's name ends, after the name of the file.
pub const GZIP_END: &str = ".gz";

/// The gzip header's code for "unknown" (RFC 1952 §2.3.1).
const SYSTEM_UNKNOWN: u8 = 255;

/// gzip's default: higher levels take twice the time to save one per cent.
const LEVEL: u32 = 6;

pub type Gzip<W> = GzEncoder<W>;

/// Compresses what is written to it into `to`.
pub fn gzip<W: Write>(to: W) -> Gzip<W> {
    GzBuilder::new()
        .mtime(0)
        .operating_system(SYSTEM_UNKNOWN)
        .write(to, Compression::new(LEVEL))
}

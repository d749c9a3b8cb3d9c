//! Compressed companions of files, and the size and SHA-256 that a reader needs to verify a file.
//!
//! Memory doesn't grow with the file.

use std::io::{self, BufWriter, Read, Write};

use publish::{Gzip, gzip};
use sha2::{Digest as _, Sha256};

/// Bytes that are buffered per write, and read at once.
pub(crate) const BUFFER_BYTES: usize = 64 * 1024;

/// Whether a file has a companion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    None,
    Gzip,
}

/// Size and digest of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// Counts and hashes what is written through it.
pub(crate) struct Measured<W> {
    inner: W,
    bytes: u64,
    hash: Sha256,
}

impl<W> Measured<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            bytes: 0,
            hash: Sha256::new(),
        }
    }

    pub(crate) fn measure(self) -> (W, Measure) {
        let measure = Measure {
            bytes: self.bytes,
            sha256: hex::encode(self.hash.finalize()),
        };
        (self.inner, measure)
    }

    fn passed(&mut self, bytes: &[u8]) {
        self.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.hash.update(bytes);
    }
}

impl<W: Write> Write for Measured<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // All or nothing, so that exactly the written bytes are hashed.
        self.inner.write_all(bytes)?;
        self.passed(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

type Sink<F> = Measured<BufWriter<F>>;

/// A companion while it is written.
pub(crate) struct Packer<F: Write>(Gzip<Sink<F>>);

impl<F: Write> Packer<F> {
    pub(crate) fn new(file: F) -> Self {
        Self(gzip(sink(file)))
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Finishes the companion and returns its file.
    pub(crate) fn finish(self) -> io::Result<(F, Measure)> {
        let (buffer, measure) = self.0.finish()?.measure();
        let file = buffer.into_inner().map_err(|error| error.into_error())?;
        Ok((file, measure))
    }
}

fn sink<F: Write>(file: F) -> Sink<F> {
    Measured::new(BufWriter::with_capacity(BUFFER_BYTES, file))
}

/// Passes all bytes to `visit` in chunks, and measures them.
pub(crate) fn each_piece<E: From<io::Error>>(
    from: &mut impl Read,
    mut visit: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Measure, E> {
    let mut measured = Measured::new(());
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let piece = buffer.get(..count).unwrap_or_default();
        if piece.is_empty() {
            return Ok(measured.measure().1);
        }
        measured.passed(piece);
        visit(piece)?;
    }
}

#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;

    use super::*;

    fn packed(mut packer: Packer<Vec<u8>>, bytes: &[u8]) -> Vec<u8> {
        packer.write_all(bytes).unwrap();
        let (file, measure) = packer.finish().unwrap();
        assert_eq!(measure.bytes, u64::try_from(file.len()).unwrap());
        assert_eq!(measure.sha256, hex::encode(Sha256::digest(&file)));
        file
    }

    #[test]
    fn what_is_packed_comes_out_again_and_equal_bytes_give_equal_bytes() {
        let long: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        for bytes in [&b""[..], b"x", &long] {
            let gzip = packed(Packer::new(Vec::new()), bytes);
            let mut back = Vec::new();
            GzDecoder::new(gzip.as_slice())
                .read_to_end(&mut back)
                .unwrap();
            assert!(back == bytes);
            // Time and system in the header (RFC 1952 §2.3).
            assert_eq!(gzip[4..8], [0, 0, 0, 0]);
            assert_eq!(gzip[9], 255);
            assert!(gzip == packed(Packer::new(Vec::new()), bytes));
        }
    }

    /// The test vector of one million letters `a` of FIPS 180-2, read in chunks.
    #[test]
    fn a_measure_is_the_sha256_of_all_pieces() {
        let measure =
            each_piece::<io::Error>(&mut io::repeat(b'a').take(1_000_000), |_piece| Ok(()));
        let measure = measure.unwrap();
        assert_eq!(measure.bytes, 1_000_000);
        assert_eq!(
            measure.sha256,
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }
}

//! Reads files that an operator names, up to a size limit.
//!
//! Of a file over the limit, one more byte is returned, so that the parser rejects it. Folders,
//! devices and pipes in the file system are rejected: a command could wait for a pipe forever. A
//! descriptor that was passed on purpose (`/dev/stdin`, a shell's `<(…)`) may be a pipe.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Where Linux shows a process's own descriptors as files.
const DESCRIPTORS: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// The names of standard input, [`DASH`] among them.
const STDIN: [&str; 4] = [DASH, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// The name of standard input on command lines.
pub const DASH: &str = "-";

/// Why a file was not read.
#[derive(Debug, Error)]
pub enum FileError {
    #[error("{what} {}: can't be read ({source}); check the path and its permissions", path.display())]
    Unreadable {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{what} {}: is not a regular file; name a file", path.display())]
    NotAFile { what: &'static str, path: PathBuf },
}

/// Reads the first `bytes_max` bytes of the file at `path`, and one more if there is one. `what`
/// names the expected content in errors.
pub fn read(what: &'static str, path: &Path, bytes_max: usize) -> Result<Vec<u8>, FileError> {
    let unreadable = |source| FileError::Unreadable {
        what,
        path: path.to_owned(),
        source,
    };
    let is_handed_over = DESCRIPTORS.iter().any(|place| path.starts_with(place));
    // Checked before opening: opening a pipe would wait for its writer.
    if !is_handed_over && !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(FileError::NotAFile {
            what,
            path: path.to_owned(),
        });
    }
    let file = File::open(path).map_err(unreadable)?;
    bounded(file, bytes_max).map_err(unreadable)
}

/// Like [`read`], from standard input.
pub fn read_stdin(what: &'static str, bytes_max: usize) -> Result<Vec<u8>, FileError> {
    bounded(io::stdin().lock(), bytes_max).map_err(|source| FileError::Unreadable {
        what,
        path: DASH.into(),
        source,
    })
}

/// Whether the path is a name of standard input.
pub fn is_stdin(path: &Path) -> bool {
    STDIN.iter().any(|name| path == Path::new(name))
}

fn bounded(source: impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    source
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_file_is_read_up_to_a_byte_over_its_bound() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"12345").unwrap();
        for (bytes_max, expect) in [(3, "1234"), (4, "12345"), (5, "12345"), (0, "1")] {
            let bytes = read("a list", file.path(), bytes_max).unwrap();
            assert_eq!(bytes, expect.as_bytes());
        }
    }

    #[test]
    fn what_is_no_file_is_named_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        // A program that opens it anyway gets a list.
        let mut writer = File::options().read(true).write(true).open(&pipe).unwrap();
        writer.write_all(&[b'\n'; 10]).unwrap();
        for path in [&pipe, folder.path(), Path::new("/dev/zero")] {
            let error = read("a list", path, 9).unwrap_err().to_string();
            let expect = format!(
                "a list {}: is not a regular file; name a file",
                path.display()
            );
            assert_eq!(error, expect);
        }
        let error = read("a list", Path::new("/nonexistent"), 9).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a list /nonexistent: can't be read (No such file or directory (os error 2)); check the path and its permissions"
        );
    }

    #[test]
    fn a_pipe_that_was_handed_over_is_read() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"12345").unwrap();
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        assert_eq!(read("a list", Path::new(&path), 3).unwrap(), b"1234");
    }

    #[test]
    fn standard_input_has_several_names() {
        for name in ["-", "/dev/stdin", "/dev/fd/0", "/dev//stdin"] {
            assert!(is_stdin(Path::new(name)), "{name}");
        }
        for name in ["./-", "/dev/fd/10", "/dev/fd", "/dev/stdin/x"] {
            assert!(!is_stdin(Path::new(name)), "{name}");
        }
    }
}

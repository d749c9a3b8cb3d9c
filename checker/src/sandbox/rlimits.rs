//! The limits that the checker sets on itself before it reads a byte.
//!
//! Engines ignore some ulimits, so a limit that must hold is also set here, soft and hard. It can't
//! be raised again.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files: stdio, the runtime's four, one connection and the few for reading the order. 64
/// leaves room for reconnecting.
const OPEN_FILES_MAX: u64 = 64;

/// Lowers the limits of open files (64) and of core dumps (0 bytes, so that a crash writes
/// nothing). Never raises a lower limit.
pub fn lower_limits() -> io::Result<()> {
    lower(Resource::Nofile, OPEN_FILES_MAX)?;
    lower(Resource::Core, 0)
}

fn lower(resource: Resource, value: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let hard = now.maximum.map_or(value, |hard| hard.min(value));
    let soft = now.current.map_or(hard, |soft| soft.min(hard));
    setrlimit(
        resource,
        Rlimit {
            current: Some(soft),
            maximum: Some(hard),
        },
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_lowered_and_never_raised() {
        // Nothing else in the test process uses `RLIMIT_MSGQUEUE`.
        lower(Resource::Msgqueue, 1000).unwrap();
        lower(Resource::Msgqueue, 5000).unwrap();
        let now = getrlimit(Resource::Msgqueue);
        assert_eq!((now.current, now.maximum), (Some(1000), Some(1000)));
    }
}

//! How many files this process may have open: as many as it is allowed to ask for.
//!
//! In: nothing. Out: the limit in force. The ordinary soft limit of 1024 is there for programs that watch files by `select`, which can't take more; hundreds
//! of hosts that are resolved and dialled at once need some sockets each.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open files to the hard one. Where that fails the limit stays as it is, which is said.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(limit = limit.current, %error, "the limit on open files could not be raised; hosts that can't be dialled for it are put off");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_the_hard_one_afterwards() {
        raise();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}

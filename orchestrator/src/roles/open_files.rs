//! Raises the limit on open files to the highest value that this process may set.
//!
//! The usual soft limit of 1024 exists for programs that use `select`, which can't watch more
//! files. Hundreds of hosts that are resolved and dialled at once need some sockets each.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open files to the hard limit. If that fails, the limit stays and this
/// is logged.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(limit = limit.current, %error, "the limit on open files could not be raised; hosts that can't be dialled because of it are deferred");
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

//! The bounded queue of the one thread that writes: a handle for requests, batches, and the thread.

pub(crate) mod batch;
pub(crate) mod handle;
pub(crate) mod thread;

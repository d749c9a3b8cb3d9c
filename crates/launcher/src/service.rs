//! The launcher's service: its socket, the running checks, and the supervision of the engine.

pub(crate) mod server;

pub(crate) mod launch;

pub(crate) mod state;

pub(crate) mod registry;

pub(crate) mod supervisor;

pub(crate) mod reaper;

pub(crate) mod probe;

pub(crate) mod probe_container;

//! One container: its limits, its system calls, and its life from create to exit.

pub mod spec;

pub(crate) mod confinement;

pub mod seccomp;

pub(crate) mod slot;

//! A Web Push service that is compatible with autopush: browsers and distributors of `UnifiedPush`
//! hold a WebSocket open, applications send messages to endpoints over HTTP.
//!
//! [`session`] decides what happens on a client's connection, [`endpoint`] what an application may
//! send; neither does any I/O. [`storage`] keeps users, channels and messages.

#![warn(
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        reason = "tests reckon with numbers of their own"
    )
)]

pub mod endpoint;
pub mod ids;
pub mod notification;
pub mod notify;
pub mod process;
pub mod remote;
pub mod serve;
pub mod session;
pub mod storage;
pub mod wire;

mod broadcasts;

pub use broadcasts::{Broadcasts, Subscriptions, Versions};

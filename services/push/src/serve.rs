//! The running service: connections of clients, requests of applications and of other nodes.

mod census;
mod clients;
mod connection;
mod delivery;
mod listen;
mod meters;
mod nodes;
mod remote;
mod routes;
mod service;
mod storage_thread;
mod sweep;

pub use census::{BROADCAST, Census, LOOK_EVERY};
pub use clients::held::Bounds;
pub use listen::{bind, converse, listen};
pub use nodes::{follow, stay_known};
#[cfg(feature = "fuzzing")]
pub use routes::fuzzing;
pub use routes::{Routes, internal, public, some};
pub use service::{Now, Service, Settings};
pub use sweep::sweep;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Checks for a new list at the interval `every`, [`LOOK_EVERY`] in a deployment, and notifies
/// subscribers here and at other push services, until `shutdown`. Without a census, it only waits
/// for `shutdown`.
pub async fn tell(service: Arc<Service>, every: Duration, shutdown: CancellationToken) {
    let Some(census) = &service.census else {
        return shutdown.cancelled().await;
    };
    let (found, newest) = watch::channel(None);
    tokio::join!(
        census::keep_looking(&service, census, every, &found, &shutdown),
        remote::deliver(&service, census, every, newest, &shutdown),
        remote::confirm(&service, census, every, &shutdown),
    );
}

//! Removes expired data, and makes room in a file that is nearly full.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::service::Service;

/// Removes expired messages and users at the interval `every`, some at a time, until `shutdown`.
pub async fn sweep(service: &Arc<Service>, every: Duration, shutdown: &CancellationToken) {
    let mut turn = tokio::time::interval(every);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = turn.tick() => {}
        }
        while !shutdown.is_cancelled() {
            let now_s = service.now_s();
            match service
                .storage
                .call(move |storage| storage.sweep(now_s))
                .await
            {
                Ok(true) => {}
                Ok(false) | Err(_) => break,
            }
        }
    }
}

//! Whether gateway, launcher, engine and store work, by their own report.

use gateway::GatewayClient;
use protocol::egress::Way;
use scheduler::Event;
use store::{Location, StoreError};

use super::state::Daemon;
use crate::check::services::Services;
use crate::ground::fault::Fault;

impl Daemon {
    pub(super) fn ask_parts(&mut self) {
        let (services, location) = (self.services.clone(), self.store.location().clone());
        // Each for itself: one that hangs must not hold back what the others say.
        for way in Way::ALL
            .into_iter()
            .filter(|_| services.second_gateway.is_some())
        {
            let gateway = services.gateway_of(way).clone();
            self.asks.spawn(async move {
                let status = gateway_status(&gateway).await;
                Ok(Event::WayStatus { way, status })
            });
        }
        self.asks
            .spawn(async move { Ok(Event::PartStatus(status(&services, &location).await)) });
    }
}

/// What does not work, for the operator.
async fn status(services: &Services, location: &Location) -> Result<(), String> {
    let store = |error| Fault::Store(error).to_string();
    location.check().map_err(store)?;
    if services.second_gateway.is_none() {
        gateway_status(&services.gateway).await?;
    }
    let launcher = services.launcher.status().await;
    let launcher = launcher.map_err(|error| Fault::Launcher(error).to_string())?;
    if let Some(trouble) = launcher.trouble {
        return Err(format!("launcher: {trouble}"));
    }
    services.writer.try_write().await.map_err(store)
}

async fn gateway_status(gateway: &GatewayClient) -> Result<(), String> {
    let gateway = gateway.status().await;
    let gateway = gateway.map_err(|error| Fault::Gateway(error).to_string())?;
    if gateway.families.is_empty() {
        return Err("the gateway has no network".to_owned());
    }
    gateway
        .trouble
        .map_or(Ok(()), |trouble| Err(format!("gateway: {trouble}")))
}

/// A failure of the store, in words for the operator.
pub(super) fn store_trouble(error: StoreError, location: &Location) -> anyhow::Result<String> {
    if matches!(error, StoreError::Closed) {
        anyhow::bail!("{error}");
    }
    // The failure may be due to the missing file, which is the more useful message.
    let error = location.check().err().unwrap_or(error);
    Ok(Fault::Store(error).to_string())
}

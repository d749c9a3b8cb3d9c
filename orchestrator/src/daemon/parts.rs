//! Whether gateway, launcher, engine and store work, by their own report.

use scheduler::Event;
use store::{Location, StoreError};

use super::state::Daemon;
use crate::check::services::Services;
use crate::ground::fault::Fault;

impl Daemon {
    pub(super) fn ask_parts(&mut self) {
        let (services, location) = (self.services.clone(), self.store.location().clone());
        self.asks
            .spawn(async move { Ok(Event::PartStatus(status(&services, &location).await)) });
    }
}

/// What does not work, for the operator.
async fn status(services: &Services, location: &Location) -> Result<(), String> {
    let store = |error| Fault::Store(error).to_string();
    location.check().map_err(store)?;
    let gateway = services.gateway.status().await;
    let gateway = gateway.map_err(|error| Fault::Gateway(error).to_string())?;
    if gateway.families.is_empty() {
        return Err("the gateway has no network".to_owned());
    }
    if let Some(trouble) = gateway.trouble {
        return Err(format!("gateway: {trouble}"));
    }
    let launcher = services.launcher.status().await;
    let launcher = launcher.map_err(|error| Fault::Launcher(error).to_string())?;
    if let Some(trouble) = launcher.trouble {
        return Err(format!("launcher: {trouble}"));
    }
    services.writer.try_write().await.map_err(store)
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

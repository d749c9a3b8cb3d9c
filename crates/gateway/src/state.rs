//! The state that all connections to the gateway share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use crate::egress::directory::Root;
use crate::net::dial::Dialler;
use crate::net::family::{self, Horizon, Routes};
use crate::net::ledger::PaceLedger;
use crate::net::resolve::Resolver;
use crate::service::error::GatewayError;
use crate::service::log_once::LogOnce;
use crate::settings::Settings;
use crate::wire::control::{Family, Status};

/// State shared by all connections.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) resolver: Resolver,
    pub(crate) paces: PaceLedger,
    pub(crate) routes: Box<dyn Routes>,
    pub(crate) egresses: Arc<Root>,
    pub(crate) dials_total: AtomicU64,
    pub(crate) opens_total: AtomicU64,
    /// One permit per open check.
    pub(crate) slots: Arc<Semaphore>,
    /// The families that had a route at the last check, so that each change is logged once.
    families: Mutex<Vec<Family>>,
    /// The reason why no egress can be created.
    no_egress: Mutex<LogOnce>,
}

impl Shared {
    /// Opens the egress volume and the resolver. Removes the egress directories that an earlier
    /// process left, so only the one gateway that serves may call it.
    pub(crate) fn prepare(
        settings: Settings,
        routes: Box<dyn Routes>,
    ) -> Result<Self, GatewayError> {
        let egresses = Root::new(&settings.egress_root);
        let swept = egresses
            .sweep()
            .map_err(|source| GatewayError::EgressRoot {
                path: settings.egress_root.clone(),
                source,
            })?;
        if swept > 0 {
            tracing::warn!(
                directories = swept,
                "left-over egress directories were removed"
            );
        }
        let horizon = Horizon::of(&settings);
        Ok(Self {
            families: Mutex::new(family::families(routes.as_ref(), horizon)),
            no_egress: Mutex::default(),
            resolver: Resolver::new(&settings)?,
            paces: PaceLedger::new(&settings),
            routes,
            egresses,
            dials_total: AtomicU64::new(0),
            opens_total: AtomicU64::new(0),
            slots: Arc::new(Semaphore::new(
                usize::try_from(settings.open_max).unwrap_or(Semaphore::MAX_PERMITS),
            )),
            settings,
        })
    }

    pub(crate) fn horizon(&self) -> Horizon {
        Horizon::of(&self.settings)
    }

    pub(crate) fn dialler(&self) -> Dialler<'_> {
        Dialler {
            paces: &self.paces,
            routes: self.routes.as_ref(),
            settings: &self.settings,
            dials_total: &self.dials_total,
        }
    }

    /// The families with a route now.
    pub(crate) fn families(&self) -> Vec<Family> {
        family::families(self.routes.as_ref(), self.horizon())
    }

    /// Logs that a family appeared or disappeared, once and not per host.
    pub(crate) fn tell_of(&self, families: &[Family]) {
        let mut known = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        for family in [Family::V4, Family::V6] {
            match (known.contains(&family), families.contains(&family)) {
                (true, false) => tracing::warn!(
                    ?family,
                    "this address family has no route any more; hosts without another family are deferred, and no failure counts"
                ),
                (false, true) => tracing::info!(?family, "this address family has a route again"),
                (true, true) | (false, false) => {}
            }
        }
        families.clone_into(&mut known);
    }

    /// Logs when no egress can be created, because of this machine, and when it is possible again.
    pub(crate) fn tell_of_egress(&self, failure: Option<&str>) {
        let now = tokio::time::Instant::now().into_std();
        let mut told = self
            .no_egress
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match failure {
            Some(reason) if told.seen(reason, now) => {
                tracing::error!(
                    reason,
                    "egress sockets can't be made, so no check can start"
                );
            }
            None if told.absent(now) => {
                tracing::info!("egress sockets can be made again");
            }
            Some(_) | None => {}
        }
    }

    pub(crate) async fn status(&self) -> Status {
        let no_ledger = self.paces.trouble().await;
        let free = u32::try_from(self.slots.available_permits()).unwrap_or(u32::MAX);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            families: self.families(),
            open: self.settings.open_max.saturating_sub(free),
            opens_total: self.opens_total.load(Ordering::Relaxed),
            dials_total: self.dials_total.load(Ordering::Relaxed),
            lab: self.settings.is_lab(),
            trouble: no_ledger.or_else(|| self.resolver.trouble()),
        }
    }
}

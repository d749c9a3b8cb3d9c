//! Runs one container from start to end, in its own network namespace or in a slot's.
//!
//! The supervisor chooses the [`Way`]. Containers to be removed afterwards are returned in
//! [`Leftovers`], because the last frame need not wait for a removal.

use protocol::CheckId;
use tokio::io::AsyncWrite;

use crate::container::run::{Outcome, Signals, create_failed, fault, run};
use crate::container::spec::{Network, Spec};
use crate::engine::{ContainerId, Engine, bounded};
use crate::service::holders::Holder;
use crate::service::state::Shared;
use crate::settings::Settings;
use crate::wire::LaunchFault;
use crate::wire::frames::FrameWriter;

/// Where containers have their network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namespaces {
    /// Each container has its own.
    Own,
    /// Each container joins its slot's.
    Slots,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) namespaces: Namespaces,
    /// The runtime. `None` for the engine's default.
    pub(crate) runtime: Option<&'static str>,
}

/// Containers to be removed after the report of how the guest ended.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    guest: Option<ContainerId>,
    /// Removed after the guest, because Podman removes no container while another one shares its
    /// namespace.
    holder: Option<Holder>,
}

impl Leftovers {
    pub(crate) fn has_guest(&self) -> bool {
        self.guest.is_some()
    }
}

impl<E: Engine> Shared<E> {
    /// Runs a container to its end. The caller clears `left` away, whatever the outcome.
    ///
    /// A holder that has died costs one retry in a new namespace, because nothing had run yet.
    pub(crate) async fn run<W: AsyncWrite + Unpin>(
        &self,
        settings: &Settings,
        way: Way,
        spec: impl Fn(Network) -> Spec,
        signals: &Signals,
        frames: &mut FrameWriter<W>,
        left: &mut Leftovers,
    ) -> Outcome {
        let engine = &self.engine;
        let spec = |network| Spec {
            runtime: way.runtime,
            ..spec(network)
        };
        let own = spec(Network::Own);
        if way.namespaces == Namespaces::Slots {
            let holder = match self.holder(&own.image).await {
                Ok(holder) => holder,
                Err(fault) => return Outcome::Fault(fault),
            };
            let spec = spec(holder.network());
            let outcome = run(engine, settings, &spec, signals, frames, &mut left.guest).await;
            left.holder = match outcome {
                Outcome::End(_) => self.holders.give_back(holder),
                // The guest may still be in the holder's namespace, or the holder itself may be
                // broken.
                Outcome::NotStarted(_) | Outcome::Fault(_) | Outcome::Gone => Some(holder),
            };
            if !matches!(outcome, Outcome::NotStarted(_)) {
                return outcome;
            }
            tracing::info!(network = ?spec.network, "no container could join its slot; it gets a network namespace of its own");
            self.clear(std::mem::take(left)).await;
        }
        run(engine, settings, &own, signals, frames, &mut left.guest).await
    }

    /// Removes what a container left behind.
    pub(crate) async fn clear(&self, left: Leftovers) {
        self.remove(left.guest).await;
        if let Some(holder) = left.holder {
            // It stays registered until then, so that no sweep removes it as well.
            self.remove(Some(holder.container.clone())).await;
        }
    }

    /// Starts a holder unless a free one exists.
    pub(crate) async fn ready_holder(&self, image: &str) -> Result<(), LaunchFault> {
        let holder = self.holder(image).await?;
        self.holders.put(holder);
        Ok(())
    }

    /// A holder without a guest, started if there is none.
    async fn holder(&self, image: &str) -> Result<Holder, LaunchFault> {
        if let Some(holder) = self.holders.take() {
            return Ok(holder);
        }
        // Read before the start, so that a holder given up during its start has the old generation.
        let generation = self.holders.generation();
        let (check, entry) = loop {
            let check = CheckId::from_random(rand::random());
            if let Some(entry) = self.registry.enter(&check) {
                break (check, entry);
            }
        };
        let spec = Spec::holder(&self.settings, image, &check);
        let (engine, limit) = (&self.engine, self.settings.start_timeout);
        let container = match bounded("create", limit, engine.create(&spec)).await {
            Ok(container) => container,
            Err(error) => return Err(create_failed(engine, &self.settings, &spec, error).await),
        };
        if let Err(error) = bounded("start", limit, engine.start(&container)).await {
            self.remove(Some(container)).await;
            return Err(fault(&error));
        }
        Ok(Holder::new(container, generation, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::spec::LABEL_HOLDER;
    use crate::tests::fake_engine::{FakeEngine, IMAGE_ID, Mishap, Script};
    use crate::wire::FaultKind;
    use protocol::Host;

    fn shared(script: Script) -> Shared<FakeEngine> {
        Shared::new(Settings::default(), FakeEngine::new(script))
    }

    /// Runs a check in a slot, and removes what it left behind.
    async fn checked(shared: &Shared<FakeEngine>, number: u128, signals: &Signals) -> Outcome {
        let (settings, check) = (&shared.settings, CheckId::from_random(number));
        let host = Host::parse("a.example").unwrap();
        let spec = |network| Spec::check(settings, IMAGE_ID, &check, &host, network);
        let mut frames = FrameWriter::new(tokio::io::sink());
        let mut left = Leftovers::default();
        let slots = Way {
            namespaces: Namespaces::Slots,
            runtime: None,
        };
        let running = shared.run(settings, slots, spec, signals, &mut frames, &mut left);
        let outcome = running.await;
        shared.clear(left).await;
        outcome
    }

    fn networks(engine: &FakeEngine) -> Vec<Network> {
        let specs = engine.specs().into_iter();
        let guests = specs.filter(|spec| !spec.labels.contains_key(LABEL_HOLDER));
        guests.map(|spec| spec.network).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn checks_join_one_namespace_one_after_the_other() {
        let shared = shared(Script::Print(0));
        for number in 1..=3 {
            let outcome = checked(&shared, number, &Signals::default()).await;
            assert!(matches!(outcome, Outcome::End(_)), "{outcome:?}");
        }
        let networks = networks(&shared.engine);
        assert_eq!(networks.len(), 3);
        assert_ne!(networks[0], Network::Own);
        assert!(networks.iter().all(|network| *network == networks[0]));
        assert_eq!(shared.engine.names(), ["c1"], "the holder stays");
    }

    /// The fake engine panics when a holder gets a second guest.
    #[tokio::test(start_paused = true)]
    async fn checks_at_once_join_a_namespace_each() {
        let shared = shared(Script::Late(5));
        let signals = Signals::default();
        let all = (1..=4).map(|number| checked(&shared, number, &signals));
        for outcome in futures_util::future::join_all(all).await {
            assert!(matches!(outcome, Outcome::End(_)), "{outcome:?}");
        }
        assert_eq!(shared.engine.holders(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_died_costs_one_retry_and_is_replaced() {
        let shared = shared(Script::Print(0));
        checked(&shared, 1, &Signals::default()).await;
        shared.engine.kill_holders();
        let outcome = checked(&shared, 2, &Signals::default()).await;
        assert!(matches!(outcome, Outcome::End(_)), "{outcome:?}");
        assert!(
            shared.engine.names().is_empty(),
            "the dead holder is removed"
        );
        checked(&shared, 3, &Signals::default()).await;
        assert_eq!(shared.engine.holders(), 1);
        let networks = networks(&shared.engine);
        assert_eq!(
            (networks.len(), &networks[2]),
            (4, &Network::Own),
            "{networks:?}"
        );
        assert_ne!(networks[3], networks[0]);
    }

    /// The guest may still be in the holder's namespace.
    #[tokio::test(start_paused = true)]
    async fn a_holder_whose_guest_did_not_end_in_order_is_not_used_again() {
        let shared = shared(Script::Silent);
        let signals = Signals::default();
        signals.gone.cancel();
        assert_eq!(checked(&shared, 1, &signals).await, Outcome::Gone);
        assert!(shared.engine.names().is_empty(), "both are removed");
        // The next check's calls: create and start of its holder, then create, attach, start, wait.
        shared.engine.set_script(Script::Print(0));
        shared.engine.go_wrong(5, Mishap::Down);
        let outcome = checked(&shared, 2, &Signals::default()).await;
        assert!(matches!(outcome, Outcome::Fault(_)), "{outcome:?}");
        assert!(shared.holders.take().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_can_not_be_started_is_a_fault_and_leaves_nothing() {
        for (call, mishap) in [
            (0, Mishap::Refused),
            (0, Mishap::Down),
            (1, Mishap::Refused),
            (1, Mishap::Hang),
        ] {
            let shared = shared(Script::Print(0));
            shared.engine.go_wrong(call, mishap);
            let outcome = checked(&shared, 1, &Signals::default()).await;
            assert!(matches!(outcome, Outcome::Fault(_)), "{outcome:?}");
            assert!(shared.engine.names().is_empty(), "{call} {mishap:?}");
        }
        let shared = shared(Script::Print(0));
        shared.engine.set_image(false);
        let Outcome::Fault(fault) = checked(&shared, 1, &Signals::default()).await else {
            panic!("there is no image");
        };
        assert_eq!(fault.kind, FaultKind::ImageMissing);
    }
}

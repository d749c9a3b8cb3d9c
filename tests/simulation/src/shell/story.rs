//! What differs between the simulations.

use std::fmt::Debug;
use std::time::Duration;

use census::class::PerClass;
use census::state::{Record, Verdict};
use census::time::Timestamp;
use protocol::Host;
use scheduler::command::Release;
use scheduler::event::Trigger;

use super::Shell;

pub(crate) trait Story: Debug + Sized {
    /// Everything that happens within this time happens at once, so that the store's writes share
    /// transactions.
    const STEP: Duration;

    /// A look-up of a name that exists.
    const LOOK_UP: Duration;

    /// Its own work at each moment, before all else.
    async fn work(shell: &mut Shell<Self>) -> anyhow::Result<()>;

    /// When it has work next.
    fn works_at(&self) -> Timestamp;

    /// The numbers of hosts to take if the scheduler wants these.
    fn takes(&self, wanted: PerClass<u32>) -> PerClass<u32> {
        wanted
    }

    /// Hosts were taken, for which there was this room. It may change them.
    async fn taken(
        shell: &mut Shell<Self>,
        taken: &mut [store::Taken],
        room: u32,
        trigger: Trigger,
    ) -> anyhow::Result<()>;

    /// The row of a host that was released is on disk.
    fn released(&mut self, release: &Release, now: Timestamp);

    /// A verdict is on disk.
    async fn committed(
        shell: &mut Shell<Self>,
        record: &Record,
        verdict: &Verdict,
    ) -> anyhow::Result<()>;

    /// The peers list of a responding host of the world was read.
    async fn read_peers(shell: &mut Shell<Self>, by: Host, id: u32) -> anyhow::Result<()>;

    /// Reads the list as it is published now. Returns the number of its names.
    async fn publish(shell: &mut Shell<Self>) -> anyhow::Result<u64>;
}

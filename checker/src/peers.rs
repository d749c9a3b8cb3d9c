//! Peers lists: where each software publishes its peers, and readers that stream them.
//!
//! Takes what NodeInfo says about the host. Prints `peers` lines as names arrive, and one
//! `peers_end`. Elements that are no host name are counted; blocked and suspended instances are
//! left out. At a bound of the check the list ends, and the names read so far count.

pub(crate) mod feed;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod name;
pub(crate) mod page;
pub(crate) mod sink;
mod software;

use protocol::PeersOutcome;

pub use self::name::peer_name;
pub use self::software::Family;
use crate::documents::nodeinfo::About;
use crate::emit::{Emitter, Fault};
use crate::fetch::Fetcher;
use feed::{Session, Stop};
use sink::Sink;
use software::{lemmy, mastodon, misskey, nodeinfo, piefed, pixelfed};

/// Requests peers, prints them as they arrive and then how the list ended, and returns the emitter.
/// When an event can't be printed. Whatever the host does becomes an outcome.
pub async fn ask(fetcher: &mut Fetcher, emitter: Emitter, about: &About) -> Result<Emitter, Fault> {
    let own = Some(fetcher.host().clone());
    let sink = Sink::new(emitter, own, fetcher.limits().peers);
    let mut session = Session::new(fetcher, sink);
    let ended = match Family::of(about) {
        Family::Mastodon => mastodon::collect(&mut session).await,
        Family::Misskey => misskey::collect(&mut session).await,
        Family::Lemmy => lemmy::collect(&mut session, about.instance.version.as_deref()).await,
        Family::PieFed => piefed::collect(&mut session).await,
        Family::Pixelfed => pixelfed::collect(&mut session).await,
        Family::Rows => software::collect(&mut session, about.software()).await,
        Family::Unknown => match nodeinfo::collect(&mut session, &about.document) {
            Err(Stop::Silent) => mastodon::collect(&mut session).await,
            ended => ended,
        },
        Family::Silent => nodeinfo::collect(&mut session, &about.document),
    };
    let outcome = match ended {
        Ok(()) => PeersOutcome::Complete,
        Err(Stop::Refused | Stop::Missing) => PeersOutcome::Refused,
        Err(Stop::Truncated) => PeersOutcome::Truncated,
        Err(Stop::Failed) => PeersOutcome::Failed,
        Err(Stop::Silent) => PeersOutcome::None,
    };
    session
        .into_sink()
        .ok_or(Fault::ReaderLost)?
        .finish(outcome)
}

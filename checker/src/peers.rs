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
use crate::documents::nodeinfo::About;
use crate::emit::{Emitter, Fault};
use crate::fetch::Fetcher;
use feed::{Session, Stop};
use sink::Sink;
use software::{
    funkwhale, lemmy, mastodon, mbin, misskey, nodeinfo, owncast, peertube, piefed, pixelfed,
};

/// Software that publishes its peers in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A flat list at Mastodon's path.
    Mastodon,
    /// Mastodon's list; where that is missing, pages by POST.
    Misskey,
    Lemmy,
    /// Lemmy's list under another path.
    PieFed,
    Mbin,
    PeerTube,
    Funkwhale,
    Owncast,
    /// Mastodon's list, empty if hidden.
    Pixelfed,
    /// Unknown software that speaks `ActivityPub`: what its NodeInfo names, as a relay's does,
    /// otherwise one try at Mastodon's path.
    Unknown,
    /// Software without an endpoint: what its NodeInfo names, if anything.
    Silent,
}

impl Family {
    /// The family of a software; `Unknown` or `Silent` by its protocols if no other matches.
    pub fn of(about: &About) -> Self {
        match about.software() {
            "mastodon" | "hometown" | "glitchcafe" | "pleroma" | "akkoma" | "rebased"
            | "gotosocial" | "bookwyrm" | "smithereen" | "wildebeest" | "takahe" | "mitra"
            | "snac" | "snac2" | "friendica" | "iceshrimp.net" | "kmyblue" => Self::Mastodon,
            "misskey" | "calckey" | "firefish" | "sharkey" | "foundkey" | "cherrypick"
            | "iceshrimp" | "catodon" | "meisskey" | "nexkey" => Self::Misskey,
            "lemmy" => Self::Lemmy,
            "piefed" => Self::PieFed,
            "mbin" | "kbin" => Self::Mbin,
            "peertube" => Self::PeerTube,
            "funkwhale" => Self::Funkwhale,
            "owncast" => Self::Owncast,
            "pixelfed" => Self::Pixelfed,
            "hubzilla" | "red" | "redmatrix" | "gnusocial" | "gnu social" | "gnu-social"
            | "diaspora" | "writefreely" | "wordpress" | "mobilizon" | "nodebb" | "discourse"
            | "matrix" | "synapse" | "dendrite" | "conduit" => Self::Silent,
            _ if about.activitypub => Self::Unknown,
            _ => Self::Silent,
        }
    }
}

/// Requests peers, prints them as they arrive and then how the list ended, and returns the emitter.
///
/// # Errors
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
        Family::Mbin => mbin::collect(&mut session).await,
        Family::PeerTube => peertube::collect(&mut session).await,
        Family::Funkwhale => funkwhale::collect(&mut session).await,
        Family::Owncast => owncast::collect(&mut session).await,
        Family::Pixelfed => pixelfed::collect(&mut session).await,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(software: &str, activitypub: bool, expect: Family) {
        let about = About {
            instance: kit::software(software, "1.0"),
            activitypub,
            document: Vec::new(),
        };
        assert_eq!(Family::of(&about), expect, "{software}");
    }

    #[test]
    fn software_is_asked_in_its_own_way() {
        check("mastodon", true, Family::Mastodon);
        check("sharkey", true, Family::Misskey);
        check("kbin", true, Family::Mbin);
        check("nodebb", true, Family::Silent);
        check("something new", true, Family::Unknown);
        check("something new", false, Family::Silent);
    }
}

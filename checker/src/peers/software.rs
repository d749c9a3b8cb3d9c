//! How each software publishes its peers. Each module has a function `collect`.

pub(super) mod funkwhale;
pub(super) mod lemmy;
pub(super) mod mastodon;
pub(super) mod mbin;
pub(super) mod misskey;
pub(super) mod nodeinfo;
pub(super) mod owncast;
pub(super) mod peertube;
pub(super) mod piefed;
pub(super) mod pixelfed;

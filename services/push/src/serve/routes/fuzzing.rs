//! Functions for fuzz targets: parsers of bodies that strangers send.

use crate::ids::ChannelId;
use crate::notify::Subscription;

use super::registration::Wanted;

/// The subscription in a body, with its endpoint at any service; `None` if it is refused.
pub fn subscription(body: &[u8]) -> Option<Subscription> {
    let asked = serde_json::from_slice(body).ok()?;
    super::subscribe::read(asked).ok()
}

/// The channel and the key that a registration over HTTP asks for; `None` if it is refused.
pub fn registration(body: &[u8]) -> Option<(Option<ChannelId>, Option<String>)> {
    let wanted = super::registration::read::<Wanted>(body).ok()?;
    Some((wanted.channel, wanted.key))
}

//! Functions for fuzz targets: parsers of bodies that strangers and other nodes send.

use crate::ids::ChannelId;
use crate::news::Subscription;
use crate::notification::Notification;
use crate::serve::nodes::NodeMessage;

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

/// Another node's message, with the body in which this node forwards it; `None` if it is invalid.
pub fn node_message(body: &[u8]) -> Option<(Notification, Vec<u8>)> {
    let read: NodeMessage = serde_json::from_slice(body).ok()?;
    let message = Notification::from(read);
    let body = serde_json::to_vec(&NodeMessage::from(&message)).ok()?;
    Some((message, body))
}

//! Ids of user agents and of their channels.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A user agent: a browser profile, or a distributor on a phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uaid(Uuid);

/// One subscription of a user agent, which the user agent names itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChannelId(Uuid);

impl Uaid {
    /// A user agent from 16 random bytes: a UUID of version 4.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// Any form of a UUID, dashed or not; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::parse_str(text).ok().map(Self)
    }

    /// From the bytes in an endpoint's token.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

/// 32 hexadecimal digits without dashes, as clients get it.
impl fmt::Display for Uaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_simple().fmt(f)
    }
}

impl ChannelId {
    /// A channel from 16 random bytes: a UUID of version 4.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// Any form of a UUID; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::parse_str(text).ok().map(Self)
    }

    /// The form that `register` requires: lower case, with dashes. `None` for any other.
    pub fn parse_canonical(text: &str) -> Option<Self> {
        Self::parse(text).filter(|channel| channel.to_string() == text)
    }

    /// From the bytes in an endpoint's token.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_is_shown_without_dashes_and_read_either_way() {
        let uaid = Uaid::from_random([7; 16]);
        let text = uaid.to_string();
        assert_eq!(text.len(), 32);
        assert_eq!(Uaid::parse(&text), Some(uaid));
        let dashed = Uuid::parse_str(&text).unwrap().to_string();
        assert_eq!(Uaid::parse(&dashed), Some(uaid));
        for other in ["", "x", "0123", &text.replacen('0', "", 1)] {
            assert_eq!(Uaid::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_channel_registers_in_its_own_form_alone() {
        let text = "d9b74644-4f97-46aa-b8fa-9393985cd6cd";
        let channel = ChannelId::parse_canonical(text).unwrap();
        assert_eq!(channel.to_string(), text);
        assert_eq!(ChannelId::from_bytes(*channel.as_bytes()), channel);
        for other in [text.to_uppercase(), text.replace('-', "")] {
            assert_eq!(ChannelId::parse(&other), Some(channel));
            assert_eq!(ChannelId::parse_canonical(&other), None, "{other}");
        }
    }
}

//! Endpoints and message ids: encrypted tokens that only this service can make and read.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::ids::{ChannelId, Uaid};
use crate::notification::Topic;

use super::fernet::Keys;
use super::pairs::base64_any;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Anyone who knows it may send.
    V1,
    /// Only the holder of one key may send.
    V2,
}

impl Version {
    pub fn parse(segment: &str) -> Option<Self> {
        match segment {
            "v1" => Some(Self::V1),
            "v2" => Some(Self::V2),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    pub uaid: Uaid,
    pub channel: ChannelId,
    /// SHA-256 of the only public key whose signatures are accepted.
    pub key_hash: Option<[u8; 32]>,
}

/// A public key that is invalid, since it is not base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadKey;

impl Address {
    /// The address of a channel; with `key`, only for messages signed by that key.
    ///
    /// # Errors
    /// The key is not URL-safe base64. Its length is not checked, as in autopush-rs.
    pub fn new(uaid: Uaid, channel: ChannelId, key: Option<&str>) -> Result<Self, BadKey> {
        let key_hash = match key {
            Some(key) if key.contains(['+', '/']) => return Err(BadKey),
            Some(key) => Some(hash(&base64_any(key).ok_or(BadKey)?)),
            None => None,
        };
        Ok(Self {
            uaid,
            channel,
            key_hash,
        })
    }

    pub fn version(&self) -> Version {
        match self.key_hash {
            Some(_) => Version::V2,
            None => Version::V1,
        }
    }

    /// The endpoint below an origin such as `https://push.example`.
    pub fn url(&self, origin: &str, keys: &Keys, now_s: u64, iv: &[u8; 16]) -> String {
        let token = self.token(keys, now_s, iv);
        format!("{origin}/wpush/{}/{token}", self.version().as_str())
    }

    /// One of its tokens: they differ in time and `iv`.
    pub fn token(&self, keys: &Keys, now_s: u64, iv: &[u8; 16]) -> String {
        let mut plain = self.uaid.as_bytes().to_vec();
        plain.extend(self.channel.as_bytes());
        plain.extend(self.key_hash.iter().flatten());
        let mut token = keys.encrypt(&plain, now_s, iv);
        token.truncate(token.trim_end_matches('=').len());
        token
    }

    /// Its only name, for the storage. No token has a colon.
    pub fn name(&self) -> String {
        let key_hash = self.key_hash.map(|hash| HEXLOWER.encode(&hash));
        let key_hash = key_hash.unwrap_or_default();
        format!("{}:{}:{key_hash}", self.uaid, self.channel)
    }

    pub fn parse_name(name: &str) -> Option<Self> {
        let mut parts = name.splitn(3, ':');
        let uaid = Uaid::parse(parts.next()?)?;
        let channel = ChannelId::parse(parts.next()?)?;
        let key_hash = match parts.next()? {
            "" => None,
            hash => Some(HEXLOWER.decode(hash.as_bytes()).ok()?.try_into().ok()?),
        };
        Some(Self {
            uaid,
            channel,
            key_hash,
        })
    }

    /// Decrypts a token; `None` if it is not ours, or of the other version.
    pub fn read(version: Version, token: &str, keys: &Keys) -> Option<Self> {
        let plain = keys.decrypt(token)?;
        let (uaid, rest) = plain.split_first_chunk::<16>()?;
        let (channel, rest) = rest.split_first_chunk::<16>()?;
        let key_hash = match version {
            Version::V1 if rest.is_empty() => None,
            Version::V2 => Some(rest.try_into().ok()?),
            Version::V1 => return None,
        };
        Some(Self {
            uaid: Uaid::from_bytes(*uaid),
            channel: ChannelId::from_bytes(*channel),
            key_hash,
        })
    }

    /// Whether messages signed by this key, as bytes, are accepted here.
    pub fn takes(&self, key: &[u8]) -> bool {
        self.key_hash.is_none_or(|hashed| hashed == hash(key))
    }
}

fn hash(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// The content of a message's id. The id is the message's version for the user agent, and the
/// address at which its sender can withdraw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageId {
    Topic(Uaid, ChannelId, Topic),
    /// The message at a place, in milliseconds since 1970.
    Time(Uaid, ChannelId, i64),
}

impl MessageId {
    pub fn uaid(&self) -> Uaid {
        match self {
            Self::Topic(uaid, ..) | Self::Time(uaid, ..) => *uaid,
        }
    }

    pub fn text(&self, keys: &Keys, now_s: u64, iv: &[u8; 16]) -> String {
        let plain = match self {
            Self::Topic(uaid, channel, topic) => format!("01:{uaid}:{channel}:{topic}"),
            Self::Time(uaid, channel, place_ms) => format!("02:{uaid}:{channel}:{place_ms}"),
        };
        keys.encrypt(plain.as_bytes(), now_s, iv)
    }

    /// Decrypts an id; `None` if it is not ours.
    pub fn read(text: &str, keys: &Keys) -> Option<Self> {
        let plain = String::from_utf8(keys.decrypt(text)?).ok()?;
        let mut parts = plain.splitn(4, ':');
        let (kind, uaid) = (parts.next()?, Uaid::parse(parts.next()?)?);
        let channel = ChannelId::parse(parts.next()?)?;
        let last = parts.next()?;
        match kind {
            "01" => Some(Self::Topic(
                uaid,
                channel,
                Topic::try_from(last.to_owned()).ok()?,
            )),
            "02" => Some(Self::Time(uaid, channel, last.parse().ok()?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::parse(&Keys::text_of(&[5; 32])).unwrap()
    }

    fn ids() -> (Uaid, ChannelId) {
        (Uaid::from_random([1; 16]), ChannelId::from_bytes([2; 16]))
    }

    fn token(url: &str) -> &str {
        url.rsplit('/').next().unwrap()
    }

    #[test]
    fn an_endpoint_is_as_long_as_autopushs_and_says_what_it_was_made_of() {
        let (uaid, channel) = ids();
        for (key, version, length) in [(None, Version::V1, 140), (Some("BAAA"), Version::V2, 183)] {
            let address = Address::new(uaid, channel, key).unwrap();
            let url = address.url("https://push.example", &keys(), 7, &[3; 16]);
            let prefix = format!("https://push.example/wpush/{}/", version.as_str());
            assert!(url.starts_with(&prefix), "{url}");
            assert_eq!(token(&url).len(), length);
            assert_eq!(Address::read(version, token(&url), &keys()), Some(address));
            assert_eq!(Address::parse_name(&address.name()), Some(address));
            assert_eq!(Address::read(version, &address.name(), &keys()), None);
            assert_eq!(Address::parse_name(token(&url)), None);
        }
    }

    #[test]
    fn a_token_is_of_one_kind_alone() {
        let (uaid, channel) = ids();
        let open = Address::new(uaid, channel, None).unwrap();
        let keyed = Address::new(uaid, channel, Some("BAAA")).unwrap();
        for (address, other) in [(open, Version::V2), (keyed, Version::V1)] {
            let url = address.url("https://push.example", &keys(), 7, &[3; 16]);
            assert_eq!(Address::read(other, token(&url), &keys()), None);
        }
        assert_eq!(Address::read(Version::V1, "", &keys()), None);
    }

    #[test]
    fn only_the_key_that_it_was_made_for_may_send() {
        let (uaid, channel) = ids();
        let keyed = Address::new(uaid, channel, Some("BAAA")).unwrap();
        assert!(keyed.takes(&[4, 0, 0]));
        assert!(!keyed.takes(&[4, 0, 1]));
        assert_eq!(keyed, Address::new(uaid, channel, Some("BAAA==")).unwrap());
        for bad in ["B/AA", "B+AA", "ü", "B"] {
            assert_eq!(Address::new(uaid, channel, Some(bad)), Err(BadKey), "{bad}");
        }
    }

    #[test]
    fn a_messages_id_says_what_it_was_made_of() {
        let (uaid, channel) = ids();
        let topic = Topic::try_from("news".to_owned()).unwrap();
        for id in [
            MessageId::Topic(uaid, channel, topic),
            MessageId::Time(uaid, channel, 1_800_000_000_000),
        ] {
            let text = id.text(&keys(), 7, &[3; 16]);
            assert_eq!(MessageId::read(&text, &keys()), Some(id));
        }
        let other = keys().encrypt(b"03:a:b:c", 7, &[3; 16]);
        assert_eq!(MessageId::read(&other, &keys()), None);
    }
}

//! A check's order: what to request beyond the host's name. The gateway puts it next to the egress
//! socket; see decision record 0002.

pub mod delivery;

use serde::{Deserialize, Serialize};

use self::delivery::DeliveryOrder;
use crate::list::ListOrder;

/// The content of `order.json` in a check's egress directory.
///
/// A launch request carries only a check id and a host, so that no request can change a container.
/// The rest reaches the check as a file next to its socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckOrder {
    /// The census's contact, as a URL or a mail address. The user agent contains it:
    /// `Fedicensus/<version> (+<contact>)`.
    pub contact: String,
    /// Whether to request peers after `alive`.
    pub peers: AskPeers,
    /// The list to read instead of a check. `None` is left out of the JSON. Boxed, because hardly
    /// any order has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Box<ListOrder>>,
    /// The walk to take instead of a check, never together with a list. `None` is left out of the
    /// JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<WalkOrder>,
    /// Push messages to post instead of a check, never together with a list or a walk. `None` is
    /// left out of the JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryOrder>,
}

impl CheckOrder {
    pub fn check(contact: impl Into<String>, peers: AskPeers) -> Self {
        Self {
            contact: contact.into(),
            peers,
            list: None,
            walk: None,
            delivery: None,
        }
    }

    /// Whether the order has at most one of list, walk and delivery.
    pub fn is_one(&self) -> bool {
        let asked = [
            self.list.is_some(),
            self.walk.is_some(),
            self.delivery.is_some(),
        ];
        asked.into_iter().filter(|is_asked| *is_asked).count() <= 1
    }
}

/// A walk through the host's public posts, threads and favourites, for the names of other hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WalkOrder {
    /// Seed of the random choices: the same seed and the same answers make the same walk.
    pub seed: u64,
}

/// Bytes of a contact in the user agent.
const CONTACT_BYTES_MAX: usize = 200;

/// The user agent that every host sees: `Fedicensus/<version> (+<contact>)`. Characters of the
/// contact that a header can't hold are left out.
pub fn user_agent(version: &str, contact: &str) -> String {
    let contact: String = contact
        .chars()
        .filter(|letter| (letter.is_ascii_graphic() || *letter == ' ') && !"()\\".contains(*letter))
        .take(CONTACT_BYTES_MAX)
        .collect();
    format!("Fedicensus/{version} (+{contact})")
}

/// Whether a check requests peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskPeers {
    /// Request them, if robots.txt allows it.
    Ask,
    /// Only the finding is wanted this time; the outcome is `none`.
    Skip,
}

#[cfg(test)]
mod tests {
    use super::delivery::{Message, MessageBody};
    use super::*;
    use crate::list::{ListFormat, ListPath};

    fn delivery() -> DeliveryOrder {
        let message = Message {
            path: ListPath::parse("/p").unwrap(),
            ttl_s: 60,
            topic: "t".to_owned().try_into().unwrap(),
            authorization: "vapid t=a, k=b".to_owned().try_into().unwrap(),
            body: MessageBody::new(b"hi".to_vec()).unwrap(),
        };
        DeliveryOrder::new(vec![message]).unwrap()
    }

    #[test]
    fn a_contact_cannot_break_out_of_its_header() {
        let agent = user_agent("1.2.3", "https://a.example/\r\nX: (y)\\ é");
        assert_eq!(agent, "Fedicensus/1.2.3 (+https://a.example/X: y )");
    }

    #[test]
    fn an_order_has_only_the_members_of_its_mode() {
        let mut order = CheckOrder::check("a", AskPeers::Skip);
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(text, r#"{"contact":"a","peers":"skip"}"#);
        order.walk = Some(WalkOrder { seed: 7 });
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(text, r#"{"contact":"a","peers":"skip","walk":{"seed":7}}"#);
        assert_eq!(serde_json::from_str::<CheckOrder>(&text).unwrap(), order);
        assert!(order.is_one());
        order.walk = None;
        order.delivery = Some(delivery());
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(
            text,
            r#"{"contact":"a","peers":"skip","delivery":[{"path":"/p","ttl_s":60,"topic":"t","authorization":"vapid t=a, k=b","body":"aGk="}]}"#
        );
        assert_eq!(serde_json::from_str::<CheckOrder>(&text).unwrap(), order);
        order.walk = Some(WalkOrder { seed: 7 });
        assert!(!order.is_one());
        (order.walk, order.delivery) = (None, None);
        order.list = Some(Box::new(ListOrder {
            path: ListPath::parse("/x").unwrap(),
            format: ListFormat::Csv,
            names_max: 7,
        }));
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(
            text,
            r#"{"contact":"a","peers":"skip","list":{"path":"/x","format":"csv","names_max":7}}"#
        );
        assert_eq!(serde_json::from_str::<CheckOrder>(&text).unwrap(), order);
    }

    #[test]
    fn an_order_for_what_is_unknown_is_refused() {
        for list in [
            r#"{"path":"//evil.example","format":"csv","names_max":7}"#,
            r#"{"path":"/x","format":"xml","names_max":7}"#,
            r#"{"path":"/x","format":"csv","names_max":-1}"#,
            r#"{"path":"/x","format":"csv"}"#,
            r#"{"path":"/x","format":"csv","names_max":7,"host":"b.example"}"#,
        ] {
            let text = format!(r#"{{"contact":"a","peers":"skip","list":{list}}}"#);
            assert!(serde_json::from_str::<CheckOrder>(&text).is_err(), "{list}");
        }
    }
}

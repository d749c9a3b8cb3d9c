//! The order file next to the egress socket, which a checker reads before its `hello`.

use crate::input::survives_the_way;
use protocol::{CheckOrder, ListPath, limits};
use url::Url;

pub fn check(text: &[u8]) {
    if let Ok(order) = serde_json::from_slice::<CheckOrder>(text) {
        survives_the_way(&order);
        let value: serde_json::Value = serde_json::from_slice(text).expect("it is JSON");
        assert!(
            value
                .as_object()
                .is_none_or(|order| (2..=5).contains(&order.len()))
        );
        if let Some(list) = &order.list {
            stays_on_its_host(&list.path);
        }
        if let Some(delivery) = &order.delivery {
            let messages = delivery.messages();
            assert!((1..=limits::MESSAGES_MAX).contains(&messages.len()));
            for message in messages {
                stays_on_its_host(&message.path);
                for value in [message.authorization.as_str(), message.topic.as_str()] {
                    let fits = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
                    assert!(!value.is_empty() && value.bytes().all(fits), "{value:?}");
                }
                assert!(message.body.as_bytes().len() <= limits::MESSAGE_BODY_BYTES_MAX);
            }
            let json = serde_json::to_vec(delivery).expect("it was JSON");
            assert!(json.len() <= limits::MESSAGES_BYTES_MAX + 1);
        }
    }
}

fn stays_on_its_host(path: &ListPath) {
    let origin = Url::parse("https://own.example/").expect("an address");
    let url = origin.join(path.as_str()).expect("an address");
    assert_eq!(url.origin(), origin.origin());
    assert!(url.username().is_empty() && url.fragment().is_none());
}

//! The order beside the egress socket, which a checker reads before its `hello`.

use crate::input::survives_the_way;
use protocol::CheckOrder;
use url::Url;

pub fn check(text: &[u8]) {
    if let Ok(order) = serde_json::from_slice::<CheckOrder>(text) {
        survives_the_way(&order);
        let value: serde_json::Value = serde_json::from_slice(text).expect("it is JSON");
        assert!(
            value
                .as_object()
                .is_none_or(|order| (2..=4).contains(&order.len()))
        );
        if let Some(list) = &order.list {
            // It stays on the host that it is joined to.
            let origin = Url::parse("https://own.example/").expect("an address");
            let url = origin.join(list.path.as_str()).expect("an address");
            assert_eq!(url.origin(), origin.origin());
            assert!(url.username().is_empty() && url.fragment().is_none());
        }
    }
}

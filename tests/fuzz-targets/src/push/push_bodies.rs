//! Bodies of subscribers and of other nodes: an accepted one is complete, and its forwarded form is
//! accepted as well.

use push::serve::fuzzing::{node_message, subscription};
use serde_json::{Value, json};

pub fn check(body: &[u8]) {
    if let Some(accepted) = subscription(body) {
        assert_eq!((accepted.public_key.len(), accepted.secret.len()), (65, 16));
        // The rest of the body has no meaning.
        let whole: Value = serde_json::from_slice(body).expect("it is JSON");
        let essence = json!({
            "endpoint": accepted.endpoint,
            "keys": {"p256dh": whole["keys"]["p256dh"], "auth": whole["keys"]["auth"]},
            "filter": accepted.filter,
        });
        let again = subscription(essence.to_string().as_bytes());
        assert_eq!(again, Some(accepted));
    }
    if let Some((message, passed_on)) = node_message(body) {
        let (again, body) = node_message(&passed_on).expect("its own form is accepted");
        assert_eq!((again, body), (message, passed_on));
    }
}

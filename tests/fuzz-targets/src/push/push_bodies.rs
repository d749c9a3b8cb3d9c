//! Bodies of subscribers and programs, and lines between the push process and the
//! daemon: an accepted one is complete, and its own form is accepted as well.

use data_encoding::BASE64URL_NOPAD;
use local_socket::Ask as _;
use push::remote::Endpoint;
use push::remote::wire::{Answer, Request};
use push::serve::fuzzing::{registration, subscription};
use serde_json::json;

use crate::input::survives_the_way;

pub fn check(body: &[u8]) {
    if let Some(accepted) = subscription(body) {
        assert_eq!((accepted.public_key.len(), accepted.secret.len()), (65, 16));
        // The rest of the body has no meaning, and need not be JSON that others accept.
        let encoded = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        let (p256dh, auth) = (encoded(&accepted.public_key), encoded(&accepted.secret));
        let essence = json!({
            "endpoint": accepted.endpoint,
            "keys": {"p256dh": p256dh, "auth": auth},
            "filter": accepted.filter,
        });
        let again = subscription(essence.to_string().as_bytes());
        assert_eq!(again, Some(accepted));
    }
    if let Some((channel, key)) = registration(body) {
        let essence = json!({"channelID": channel.map(|channel| channel.to_string()), "key": key});
        let again = registration(essence.to_string().as_bytes());
        assert_eq!(again, Some((channel, key)));
    }
    if let Ok(text) = std::str::from_utf8(body)
        && let Some(Endpoint { host, path }) = Endpoint::parse(text)
    {
        assert_eq!(format!("https://{host}{}", path.as_str()), text);
    }
    if let Ok(request) = Request::parse::<Request>(body) {
        survives_the_way(&request);
    }
    if let Ok(answer) = Request::parse::<Answer>(body) {
        survives_the_way(&answer);
    }
}

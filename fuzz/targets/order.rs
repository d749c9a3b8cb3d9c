//! The order beside the egress socket, which a checker reads before its `hello`.
#![no_main]

use fuzz::survives_the_way;
use libfuzzer_sys::fuzz_target;
use protocol::CheckOrder;

fuzz_target!(|text: &[u8]| {
    if let Ok(order) = serde_json::from_slice::<CheckOrder>(text) {
        survives_the_way(&order);
        let value: serde_json::Value = serde_json::from_slice(text).expect("it is JSON");
        assert!(value.as_object().is_none_or(|order| order.len() == 2));
    }
});

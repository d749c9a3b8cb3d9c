//! Privacy flags outside NodeInfo: a clear yes is never read as a no.

use checker::optout::Flag;
use protocol::Private;
use serde_json::Value;

pub fn check(document: &[u8]) {
    let statusnet = Flag::Statusnet.read(document);
    let siteinfo = Flag::Siteinfo.read(document);
    let Ok(value) = serde_json::from_slice::<Value>(document) else {
        return;
    };
    if statusnet != Private::Unknown {
        assert_eq!(statusnet == Private::Yes, is_yes(&value["site"]["private"]));
    }
    if siteinfo != Private::Unknown {
        assert_eq!(
            siteinfo == Private::Yes,
            is_yes(&value["hide_in_statistics"])
        );
    }
}

fn is_yes(value: &Value) -> bool {
    match value {
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_i64().is_some_and(|number| number != 0),
        Value::String(text) => !["", "0", "no", "false"].contains(&text.as_str()),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

//! A probe container's report about itself, which the launcher reads: bounded, and nothing but a
//! report.

use protocol::ProbeReport;
use protocol::probe::{REPORT_BYTES_MAX, REPORT_LIST_MAX};

pub fn check(text: &[u8]) {
    let Ok(report) = ProbeReport::parse(text) else {
        return;
    };
    assert!(text.len() <= REPORT_BYTES_MAX);
    let form = serde_json::to_value(&report).expect("it has a JSON form");
    // Any lists in a report.
    let lists = form.as_object().into_iter().flatten();
    for list in lists.filter_map(|(_, member)| member.as_array()) {
        assert!(list.len() <= REPORT_LIST_MAX);
    }
    let value: serde_json::Value = serde_json::from_slice(text).expect("it is JSON");
    for (key, member) in value.as_object().into_iter().flatten() {
        assert!(form.get(key).is_some(), "{key} is in no report");
        // A missing limit must not be read as an existing one.
        assert_eq!(member.is_null(), form[key].is_null(), "{key}");
    }
}

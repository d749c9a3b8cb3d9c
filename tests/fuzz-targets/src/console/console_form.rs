//! Forms and cookies of the console: bounded, and no cookie's value contains another cookie.

pub fn check(data: &[u8]) {
    let fields = console::fuzzing::fields(data);
    assert!(fields.len() <= console::fuzzing::FIELDS_MAX);
    for name in ["__Host-session", "__Host-browser", "__Host-login"] {
        if let Some(value) = console::fuzzing::cookie(data, name) {
            assert!(!value.contains(';'), "{value}");
        }
    }
}

//! Requirements of a test that not every machine meets: without one, the test is skipped with a
//! message, or fails if it must not be skipped.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A container engine; required by `FEDICENSUS_E2E=required`.
    Engine,
    /// Root and some programs, for namespaces, firewalls and disks; required by
    /// `FEDICENSUS_E2E=required` and `FEDICENSUS_PRIVILEGES=required`.
    Privileges,
    /// Other people's programs that read what we publish; required by `FEDICENSUS_E2E=required`.
    Programs,
}

/// Prints that a test is skipped.
///
/// # Panics
/// The missing thing is required.
#[expect(
    clippy::panic,
    clippy::print_stderr,
    reason = "only tests call it: this is how they tell what is missing, or must not be"
)]
pub fn skip(need: Need, why: &str) {
    let required =
        |variable: &str| std::env::var_os(variable).is_some_and(|value| value == "required");
    let must_not_be = required("FEDICENSUS_E2E")
        || (need == Need::Privileges && required("FEDICENSUS_PRIVILEGES"));
    if must_not_be {
        panic!("this must not be skipped here: {why}");
    }
    eprintln!("skipped: {why}");
}

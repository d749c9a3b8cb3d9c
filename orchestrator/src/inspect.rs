//! Text for an operator who asks about the census or one host.

use census::state::StateName;

pub mod compare;
pub mod explain;
pub mod status;

/// A state's word for operators, who may read why a host is withheld. Other words, such as
/// `unknown`, stay.
pub(crate) fn state_word(state: &str) -> &str {
    match StateName::parse(state) {
        Some(StateName::OptedOut) => "withheld (opted out)",
        Some(StateName::Parked) => "withheld (parked)",
        Some(name) => name.for_people(),
        None => state,
    }
}

//! Admission to the census: rules, names and suffix lists.

pub mod admission_rules;
pub mod host;
pub mod suffix_list;

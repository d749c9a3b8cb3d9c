//! Tokens, and the DNS records with the keys that signed them.

pub mod token_header;
pub mod token_records;

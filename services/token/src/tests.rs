//! Shared test helpers: Sigsum's published values, and flipping bits.

use crate::key::{LogKey, PublicKey, SecretKey};
use crate::record::Candidates;

pub(crate) const PUBLIC_KEY: &str =
    "4cb5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aedf0a5ba29";
pub(crate) const KEY_HASH: &str =
    "4a67330b803d5c88757afb9328615344a89c49839a07f1f76887ad62d06a1f57";
pub(crate) const LOG_KEY: &str = "cda2517e17dcba133eb0e71bf77473f94a77d7e61b1de4e1e64adfd0938d6182";
pub(crate) const VALUE: &str = "test.sigsum.org 7eb7ebc84046d87b60a885e276bc24854e766dff5be1f21bac96b96eacd02a3d2028fab8d6cbecd7459dbfbb320a9d772c0afe42e9a38e86233e04266219030a";

pub(crate) fn secret_key() -> SecretKey {
    let mut seed = [0; 32];
    seed[31] = 1;
    SecretKey::from_seed(&seed)
}

pub(crate) fn keys() -> Candidates {
    Candidates::one(PublicKey::from_hex(PUBLIC_KEY.as_bytes()).unwrap())
}

pub(crate) fn log_key() -> LogKey {
    LogKey::from_hex(LOG_KEY.as_bytes()).unwrap()
}

/// One copy of the bytes for each bit, with that bit flipped.
pub(crate) fn with_one_bit_changed(bytes: &[u8]) -> Vec<Vec<u8>> {
    let bits = (0..bytes.len()).flat_map(|place| (0..8).map(move |bit| (place, bit)));
    bits.map(|(place, bit)| {
        let mut changed = bytes.to_vec();
        changed[place] ^= 1 << bit;
        changed
    })
    .collect()
}

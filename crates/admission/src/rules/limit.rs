//! The number of admissions for which a window has room.

use std::fmt;

/// Admissions in a window, 0 to 2 147 483 647.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit(u32);

impl Limit {
    /// No admission: `key` and `domain` lines refuse, and a `public` line is off.
    pub const ZERO: Self = Self(0);

    /// The highest limit: the maximum of a signed 32-bit number, as in the rules' first
    /// implementation.
    pub const MAX: Self = Self(i32::MAX.unsigned_abs());

    /// The limit of this number. `None` if it is over [`Limit::MAX`].
    pub const fn new(number: u32) -> Option<Self> {
        if number <= Self::MAX.0 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Parses decimal digits: no sign, fraction, underscore or other base; leading zeros are
    /// allowed.
    pub fn parse(text: &str) -> Option<Self> {
        // `parse` alone would accept a sign.
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // Accepts any number of leading zeros.
        Self::new(text.parse().ok()?)
    }

    /// The limit as a number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<u32>) {
        assert_eq!(Limit::parse(text).map(Limit::get), expect, "{text:?}");
    }

    #[test]
    fn a_limit_is_decimal_digits() {
        check("0", Some(0));
        check("20", Some(20));
        check("00", Some(0));
        check("007", Some(7));
        check(&format!("{}5", "0".repeat(5000)), Some(5));
        check("2147483647", Some(2_147_483_647));
        check("0002147483647", Some(2_147_483_647));
    }

    #[test]
    fn what_other_readers_take_for_a_number_is_none() {
        for text in [
            "",
            "-1",
            "+1",
            "-0",
            "0x10",
            "0b1",
            "1e3",
            "1.0",
            "1,000",
            "1_000",
            "10k",
            " 1",
            "１２",
            "٣",
            "²",
            "2147483648",
            "4294967296",
            "18446744073709551617",
            "99999999999999999999999999",
        ] {
            check(text, None);
        }
    }
}

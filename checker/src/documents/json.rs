//! Bounded JSON: checks before the parser, and readers that tolerate unexpected types.
//!
//! Turns a host's bytes into typed values. A value of an unexpected type is skipped, the last of
//! two equal keys wins, and only requested members are kept. Rejects nesting over 64, a string or
//! number over its bound, invalid UTF-8 and anything after the value.

use std::fmt;
use std::marker::PhantomData;

use protocol::limits;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Longest string or number in bytes as written. The longest ones seen are instance descriptions of
/// some 50 KiB. The parser holds one at a time.
pub const TOKEN_BYTES_MAX: usize = 256 * 1024;

/// The mark that some servers put before UTF-8; it is skipped.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why bytes are rejected as JSON.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    #[error("nested too deeply")]
    TooDeep,
    #[error("a string or number is too long")]
    TokenTooLong,
    #[error("not UTF-8")]
    Utf8(#[from] std::str::Utf8Error),
    #[error("not JSON")]
    Syntax(#[from] serde_json::Error),
}

/// Watches bytes on their way to a parser and reports when a bound is passed. It checks only
/// bounds; the parser checks the syntax.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guard {
    depth: usize,
    token_bytes: usize,
    place: Position,
}

#[derive(Debug, Clone, Copy, Default)]
enum Position {
    #[default]
    Outside,
    InString,
    AfterBackslash,
}

impl Guard {
    /// Looks at the next bytes. Returns how many of them the parser may read, and the breach that
    /// follows them. After a breach the parser may read nothing more.
    pub fn feed(&mut self, bytes: &[u8]) -> (usize, Result<(), JsonError>) {
        for (before, &byte) in bytes.iter().enumerate() {
            self.step(byte);
            if self.depth > limits::JSON_DEPTH_MAX {
                return (before, Err(JsonError::TooDeep));
            }
            if self.token_bytes > TOKEN_BYTES_MAX {
                return (before, Err(JsonError::TokenTooLong));
            }
        }
        (bytes.len(), Ok(()))
    }

    fn step(&mut self, byte: u8) {
        self.token_bytes = self.token_bytes.saturating_add(1);
        self.place = match (self.place, byte) {
            (Position::AfterBackslash, _) => Position::InString,
            (Position::InString, b'\\') => Position::AfterBackslash,
            (Position::InString, b'"') => {
                self.token_bytes = 0;
                Position::Outside
            }
            (Position::InString, _) => Position::InString,
            (Position::Outside, b'"') => {
                self.token_bytes = 0;
                Position::InString
            }
            (Position::Outside, _) => {
                self.outside(byte);
                Position::Outside
            }
        };
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b'[' | b'{' => self.depth = self.depth.saturating_add(1),
            b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
            // A letter, a digit or junk: part of a token.
            _ => return,
        }
        self.token_bytes = 0;
    }
}

/// Parses a whole document that is in memory already.
///
/// # Errors
/// When a bound is passed, or it is not UTF-8, not JSON, or more than one value.
pub fn parse_document<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, JsonError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    // Checked before parsing, because the parser doesn't validate the values that it skips.
    let text = std::str::from_utf8(bytes)?;
    Guard::default().feed(bytes).1?;
    Ok(serde_json::from_str(text)?)
}

/// A value of which only the simple types are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Scalar {
    Text(String),
    Truth(bool),
    /// A whole number in the range of 64 bits.
    Integer(i64),
    #[default]
    Null,
    /// Another number, an array or an object.
    Other,
}

impl Scalar {
    /// The string, if it is one.
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Truth(_) | Self::Integer(_) | Self::Null | Self::Other => None,
        }
    }

    /// The boolean, if it is one.
    pub fn into_truth(self) -> Option<bool> {
        match self {
            Self::Truth(truth) => Some(truth),
            Self::Text(_) | Self::Integer(_) | Self::Null | Self::Other => None,
        }
    }

    /// Whether the value means yes: `true`, a number other than 0, or a string other than "", "0",
    /// "no" and "false".
    pub fn is_yes(&self) -> bool {
        match self {
            Self::Text(text) => !matches!(text.as_str(), "" | "0" | "no" | "false"),
            Self::Truth(truth) => *truth,
            Self::Integer(number) => *number != 0,
            Self::Null | Self::Other => false,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }
    fn visit_string<E>(self, text: String) -> Result<Scalar, E> {
        Ok(Scalar::Text(text))
    }
    fn visit_bool<E>(self, truth: bool) -> Result<Scalar, E> {
        Ok(Scalar::Truth(truth))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Integer(number))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
        Ok(i64::try_from(number).map_or(Scalar::Other, Scalar::Integer))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }
    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Scalar, A::Error> {
        pass_over_array(seq).map(|()| Scalar::Other)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Scalar, A::Error> {
        pass_over_object(map).map(|()| Scalar::Other)
    }
}

/// Reads an array to its end and keeps nothing.
pub fn pass_over_array<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// Reads an object to its end and keeps nothing.
pub fn pass_over_object<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// A type that is filled from an object's members.
pub trait Members: Default {
    /// Reads the value of `key` from `map`, or leaves it.
    ///
    /// Returns whether the value was read; the caller skips it otherwise. A repeated key is passed
    /// each time.
    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A)
    -> Result<Taken, A::Error>;
}

/// Implements [`Members`] for a type whose fields are members: `members!(Type { "key" => field })`.
macro_rules! members {
    ($type:ty { $($key:literal => $field:ident),+ $(,)? }) => {
        impl $crate::documents::json::Members for $type {
            fn member<'de, A: serde::de::MapAccess<'de>>(
                &mut self,
                key: &str,
                map: &mut A,
            ) -> Result<$crate::documents::json::Taken, A::Error> {
                match key {
                    $($key => self.$field = map.next_value()?,)+
                    _ => return Ok($crate::documents::json::Taken::No),
                }
                Ok($crate::documents::json::Taken::Yes)
            }
        }
    };
}
pub(crate) use members;

/// The rest of a visitor that accepts any value: what scalars give, with or without texts.
macro_rules! other_scalars {
    ($value:expr) => {
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($value)
        }
        $crate::documents::json::other_scalars!(no text, $value);
    };
    (no text, $value:expr) => {
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("any value")
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($value)
        }
    };
}
pub(crate) use other_scalars;

/// Whether [`Members::member`] read the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Yes,
    No,
}

/// An object, or `None` for a value of another type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object<T>(pub Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Members> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

/// Fills `members` from an object.
pub fn read_members<'de, T: Members, A: MapAccess<'de>>(
    members: &mut T,
    mut map: A,
) -> Result<(), A::Error> {
    while let Some(key) = map.next_key::<String>()? {
        if members.member(&key, &mut map)? == Taken::No {
            map.next_value::<IgnoredAny>()?;
        }
    }
    Ok(())
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Members> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    other_scalars!(Object(None));
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        let mut members = T::default();
        read_members(&mut members, map)?;
        Ok(Object(Some(members)))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Object<T>, A::Error> {
        pass_over_array(seq).map(|()| Object(None))
    }
}

/// The objects of an array, at most `MAX`; `None` if the value is no array. Other elements are
/// skipped, and so are those after the first `MAX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T, const MAX: usize>(pub Option<Vec<T>>);

impl<T, const MAX: usize> Default for List<T, MAX> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Members, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Members, const MAX: usize> Visitor<'de> for ListVisitor<T, MAX> {
    type Value = List<T, MAX>;

    other_scalars!(List(None));
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T, MAX>, A::Error> {
        let mut list = Vec::new();
        while list.len() < MAX {
            match seq.next_element::<Object<T>>()? {
                Some(Object(object)) => list.extend(object),
                None => return Ok(List(Some(list))),
            }
        }
        pass_over_array(seq).map(|()| List(Some(list)))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<List<T, MAX>, A::Error> {
        pass_over_object(map).map(|()| List(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(document: &[u8], expect: Option<Scalar>) {
        let found = parse_document::<Scalar>(document).ok();
        assert_eq!(found, expect, "{}", String::from_utf8_lossy(document));
    }

    #[test]
    fn values_are_taken_as_they_come() {
        check(b"\"a\"", Some(Scalar::Text("a".to_owned())));
        check(b"\xef\xbb\xbf true ", Some(Scalar::Truth(true)));
        check(b"-7", Some(Scalar::Integer(-7)));
        check(b"18446744073709551615", Some(Scalar::Other));
        check(b"1.5", Some(Scalar::Other));
        check(b"{\"a\":[{}]}", Some(Scalar::Other));
        check(b"null", Some(Scalar::Null));
    }

    #[test]
    fn what_is_not_one_value_is_refused() {
        for document in [
            &b""[..],
            b"NaN",
            b"{} {}",
            b"[1,]",
            b"\"\xff\"",
            b"{\"a\":\"\xff\"}",
            b"<html>",
        ] {
            check(document, None);
        }
    }

    #[test]
    fn depth_64_is_the_last_that_is_taken() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        check(nested(64).as_bytes(), Some(Scalar::Other));
        for document in [nested(65), "{\"a\":".repeat(1_000_000)] {
            let refused = parse_document::<Scalar>(document.as_bytes());
            assert!(matches!(refused, Err(JsonError::TooDeep)));
        }
        let brackets = "[".repeat(99);
        let document = format!("\"{brackets}\"");
        check(document.as_bytes(), Some(Scalar::Text(brackets)));
        check(b"[\"\\\"[[\",\"]\"]", Some(Scalar::Other));
    }

    #[test]
    fn long_tokens_are_refused() {
        let text = format!("[\"{}\"]", "a".repeat(TOKEN_BYTES_MAX));
        check(text.as_bytes(), Some(Scalar::Other));
        for text in [
            format!("[\"{}\"]", "a".repeat(TOKEN_BYTES_MAX + 1)),
            format!("[{}]", "1".repeat(TOKEN_BYTES_MAX + 1)),
            format!("[\"{}\"]", "\\\"".repeat(TOKEN_BYTES_MAX)),
        ] {
            let refused = parse_document::<Scalar>(text.as_bytes());
            assert!(matches!(refused, Err(JsonError::TokenTooLong)));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse_document::<Scalar>(&bytes).ok();
        }

        #[test]
        fn a_guard_fed_in_pieces_says_the_same(text in "[\\[\\]{}\"\\\\a,]{0,300}", cut in 0_usize..300) {
            let bytes = text.as_bytes();
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let mut pieces = Guard::default();
            let (mut seen, mut breach) = pieces.feed(first);
            if breach.is_ok() {
                let (more, later) = pieces.feed(second);
                (seen, breach) = (seen.saturating_add(more), later);
            }
            let (seen_at_once, breach_at_once) = Guard::default().feed(bytes);
            prop_assert_eq!((seen, breach.is_ok()), (seen_at_once, breach_at_once.is_ok()));
        }
    }
}

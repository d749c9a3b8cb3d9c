//! Streams the names of one JSON answer into the sink, for any shape of list.
//!
//! Takes a guarded reader and the [`Shape`] of a family's answers. Passes names on as they are
//! parsed, and returns what paging needs. Rejects malformed JSON. Elements of another type are
//! dropped one by one.

use std::fmt;
use std::io::Read;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::sink::Sink;
use crate::documents::json::{Scalar, other_scalars, pass_over_array};

/// Longest cursor that is kept, because it goes back into an address.
const CURSOR_BYTES_MAX: usize = 512;

/// The form of a family's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Keys that lead to lists. A list at the top counts as well.
    pub(crate) lists: &'static [&'static str],
    /// Keys of an element that hold its name, the best first. The best one that is present counts,
    /// in any order.
    pub(crate) names: &'static [&'static str],
    /// Keys of an element that hold an object with its name.
    pub(crate) inside: &'static [&'static str],
    /// Keys that mark an element as blocked or suspended.
    pub(crate) shunned: &'static [&'static str],
    /// Keys at the top that hold the next page's cursor.
    pub(crate) cursors: &'static [&'static str],
    /// What an object without such a list means.
    pub(crate) without_list: WithoutList,
}

impl Shape {
    /// Lists below these keys, whose elements have their name at one of `names`.
    pub(crate) const fn of(lists: &'static [&'static str], names: &'static [&'static str]) -> Self {
        Self {
            lists,
            names,
            inside: &[],
            shunned: &[],
            cursors: &[],
            without_list: WithoutList::NoAnswer,
        }
    }
}

/// What an object without a list means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithoutList {
    NoAnswer,
    NoPeers,
}

/// The result of reading one answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Page {
    /// Whether there was a list, or something that means an empty one.
    pub(crate) is_list: bool,
    pub(crate) items: u64,
    pub(crate) next: Option<String>,
}

/// Reads an answer to its end.
pub(crate) fn read_page<R: Read>(
    reader: R,
    shape: &'static Shape,
    sink: &mut Sink,
) -> Result<Page, serde_json::Error> {
    let mut page = Page::default();
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let level = Level {
        shape,
        sink,
        page: &mut page,
        place: Position::Top,
    };
    level.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(page)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Top,
    Below,
}

/// The top of an answer, or the value of a key that leads to a list.
struct Level<'a> {
    shape: &'static Shape,
    sink: &'a mut Sink,
    page: &'a mut Page,
    place: Position,
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.page.is_list = true;
        while let Some(element) = seq.next_element_seed(Element(self.shape))? {
            self.page.items = self.page.items.saturating_add(1);
            match element {
                Found { shunned: true, .. } => {}
                Found {
                    name: Some(name), ..
                } => self
                    .sink
                    .offer(&name)
                    .map_err(|_full| A::Error::custom("a bound is reached"))?,
                Found { name: None, .. } => self.sink.drop_one(),
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut members: u32 = 0;
        while let Some(key) = map.next_key::<String>()? {
            members = members.saturating_add(1);
            let key = key.as_str();
            if self.shape.lists.contains(&key) {
                map.next_value_seed(Level {
                    shape: self.shape,
                    sink: &mut *self.sink,
                    page: &mut *self.page,
                    place: Position::Below,
                })?;
            } else if self.shape.cursors.contains(&key) {
                let cursor = map.next_value::<Scalar>()?.into_text();
                self.page.next =
                    cursor.filter(|text| !text.is_empty() && text.len() <= CURSOR_BYTES_MAX);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        // Lemmy leaves out empty members, which can leave an empty object. An error's object is not
        // empty.
        let may_lack = members == 0 || self.shape.without_list == WithoutList::NoPeers;
        if may_lack && !self.shape.lists.is_empty() {
            self.page.is_list = true;
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        // `null` instead of a list means that federation is off.
        if self.place == Position::Below {
            self.page.is_list = true;
        }
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}

/// What an element of a list says.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) name: Option<String>,
    shunned: bool,
}

/// An element: a text, or an object that holds one.
pub(crate) struct Element(pub(crate) &'static Shape);

impl<'de> DeserializeSeed<'de> for Element {
    type Value = Found;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element {
    type Value = Found;

    other_scalars!(no text, Found::default());
    fn visit_str<E>(self, name: &str) -> Result<Found, E> {
        Ok(Found {
            name: Some(name.to_owned()),
            shunned: false,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut found = Found::default();
        let mut best = usize::MAX;
        while let Some(key) = map.next_key::<String>()? {
            let key = key.as_str();
            if let Some(rank) = self.0.names.iter().position(|name| *name == key) {
                let name = map.next_value::<Scalar>()?.into_text();
                if name.is_some() && rank <= best {
                    found.name = name;
                    best = rank;
                }
            } else if self.0.inside.contains(&key) {
                let inner = map.next_value_seed(Self(self.0))?;
                found.name = inner.name.or(found.name);
                found.shunned |= inner.shunned;
            } else if self.0.shunned.contains(&key) {
                let mark = map.next_value::<Scalar>()?;
                // Lemmy 1.0 marks with an object, others with `true` or a time.
                found.shunned |= mark.is_yes() || mark == Scalar::Other;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Found, A::Error> {
        pass_over_array(seq).map(|()| Found::default())
    }
}

#[cfg(test)]
mod tests;

//! The answer to "is my instance listed, and why not?" for one host, and the key of its entry.
//!
//! A key is a salted hash of the name. An entry of a shard is
//! `["dying","failing","tls",true,1700000000,1700104400,1700600000,"2023-11","lemmy","0.19"]`: the
//! state, the reason, the last check's result, whether the host is listed, and the times of the
//! last and the next check in seconds since 1970, with `null` for unknown values. The last four are
//! a listed host's only: when it leaves the list if it fails, the month since which it is known,
//! its software and version.

use std::fmt;

use dump::Moment;
use protocol::Host;
use sha2::{Digest, Sha256};

use super::all::Age;
use super::why::{Found, Place, Why};
use super::{badge, words};
use crate::list;

/// Hex digits of a key before those of its entry: the most digits that a shard's name can have.
pub(crate) const SHARD_DIGITS_MAX: usize = 3;

/// Hex digits that name an entry within its shard: 64 more bits, so that two of a million names
/// share a key with a chance of one in 10^11.
pub(crate) const ENTRY_DIGITS: usize = 16;

/// Bytes of a hash that are kept: enough for the digits of shard and entry, rounded up.
const KEY_BYTES: usize = 10;

/// The public facts about one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub place: Place,
    /// Why it is listed, or is not.
    pub why: Why,
    pub found: Option<Found>,
    /// When the last verdict arrived.
    pub last_checked: Option<Moment>,
    /// When it is checked next; `None` if never.
    pub next_check: Option<Moment>,
    /// When a listed host that fails leaves the list, unless a check succeeds before.
    pub leaves: Option<Moment>,
    /// How long it has been down or known; shown in the file of all answers.
    pub age: Option<Age>,
}

impl Answer {
    /// The one answer for every host that opted out, hides, is denied or is parked. It has no
    /// state, no finding and no time, since each of them would reveal the reason.
    pub const WITHHELD: Self = Self {
        place: Place::Withheld,
        why: Why::Withheld,
        found: None,
        last_checked: None,
        next_check: None,
        leaves: None,
        age: None,
    };
}

/// Random bits in all keys of one publication. Nobody knows them in advance, so nobody can choose
/// names whose keys share a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Salt(u128);

impl Salt {
    /// Makes a salt of random bits.
    pub fn from_random(bits: u128) -> Self {
        Self(bits)
    }
}

/// As 32 hex digits.
impl fmt::Display for Salt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

/// The beginning of the SHA-256 of the salt's hex digits and a host's canonical name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key([u8; KEY_BYTES]);

impl Key {
    /// The key of a host in the publication with this salt.
    pub fn of(salt: Salt, host: &Host) -> Self {
        Self::of_name(salt, host.as_str())
    }

    /// The same for a name in canonical form.
    pub(crate) fn of_name(salt: Salt, host: &str) -> Self {
        let hash = Sha256::digest(format!("{salt}{host}").as_bytes());
        let mut key = [0; KEY_BYTES];
        for (to, from) in key.iter_mut().zip(hash) {
            *to = from;
        }
        Self(key)
    }

    /// A key of any bytes, for tests of keys that no hash gives.
    #[cfg(test)]
    pub(crate) fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The key of a packed answer or line.
    pub(crate) fn of_packed(packed: &Packed) -> Self {
        let mut key = [0; KEY_BYTES];
        for (to, from) in key.iter_mut().zip(packed) {
            *to = *from;
        }
        Self(key)
    }

    /// The bytes of the hash that are kept.
    pub(crate) fn hash(self) -> impl Iterator<Item = u8> {
        self.0.into_iter()
    }

    /// All hex digits: the shard's, then the entry's.
    pub fn digits(self) -> String {
        let digits = SHARD_DIGITS_MAX.saturating_add(ENTRY_DIGITS);
        hex::encode(self.0).chars().take(digits).collect()
    }

    /// The number in the first [`SHARD_DIGITS_MAX`] digits, 0 to 4095.
    pub(crate) fn prefix(self) -> u16 {
        let [high, low, ..] = self.0;
        u16::from(high) << 4 | u16::from(low >> 4)
    }

    /// The digits behind the shard's.
    pub(crate) fn entry(self) -> String {
        self.digits().chars().skip(SHARD_DIGITS_MAX).collect()
    }
}

/// Bytes of a packed answer: key, three codes, three moments, the age's unit and number.
pub(crate) const PACKED_BYTES: usize = KEY_BYTES + 3 + 3 * 8 + 2;

/// An answer packed until its shard is written. Packed answers sort by key.
pub(crate) type Packed = [u8; PACKED_BYTES];

/// The code of `None`.
const NO_CODE: u8 = u8::MAX;

/// The codes of an age's units.
const MONTHS: u8 = 0;
const WEEKS: u8 = 1;

/// The moment that means "never": no working clock has it.
const NO_MOMENT: i64 = i64::MIN;

/// Stands where an answer has the code of its state, and sorts a host's line after its answer.
const LINE: u8 = u8::MAX - 1;

/// Packs where a listed host's line is, until its answer is written.
pub(crate) fn pack_line(key: Key, span: list::Span) -> Packed {
    let mut packed = [0; PACKED_BYTES];
    let bytes = key
        .0
        .into_iter()
        .chain([LINE, 0, 0])
        .chain(span.at.to_le_bytes())
        .chain(span.bytes.to_le_bytes());
    for (to, from) in packed.iter_mut().zip(bytes) {
        *to = from;
    }
    packed
}

/// Where a line is; `None` if this is an answer.
pub(crate) fn unpack_line(packed: &Packed) -> Option<list::Span> {
    let (_key, rest) = packed.split_first_chunk::<KEY_BYTES>()?;
    let ([code, ..], rest) = rest.split_first_chunk::<3>()?;
    let (at, rest) = rest.split_first_chunk::<8>()?;
    let (bytes, _) = rest.split_first_chunk::<8>()?;
    (*code == LINE).then(|| list::Span {
        at: u64::from_le_bytes(*at),
        bytes: u64::from_le_bytes(*bytes),
    })
}

impl Answer {
    /// Packs the answer until its shard is written.
    pub(crate) fn pack(&self, key: Key) -> Packed {
        let mut packed = [0; PACKED_BYTES];
        let place = code(&Place::ALL, &self.place);
        let why = code(Why::ALL, &self.why);
        let found = self
            .found
            .map_or(NO_CODE, |found| code(words::FOUND, &found));
        let moment =
            |moment: Option<Moment>| moment.map_or(NO_MOMENT, Moment::seconds).to_le_bytes();
        let bytes = key
            .0
            .into_iter()
            .chain([place, why, found])
            .chain(moment(self.last_checked))
            .chain(moment(self.next_check))
            .chain(moment(self.leaves))
            .chain(match self.age {
                Some(Age::MonthsDown(months)) => [MONTHS, months],
                Some(Age::WeeksKnown(weeks)) => [WEEKS, weeks],
                None => [NO_CODE, 0],
            });
        for (to, from) in packed.iter_mut().zip(bytes) {
            *to = from;
        }
        packed
    }

    /// Unpacks a key and its answer; `None` if the bytes are invalid.
    pub(crate) fn unpack(packed: &Packed) -> Option<(Key, Self)> {
        let (key, rest) = packed.split_first_chunk::<KEY_BYTES>()?;
        let (codes, rest) = rest.split_first_chunk::<3>()?;
        let (last, rest) = rest.split_first_chunk::<8>()?;
        let (next, rest) = rest.split_first_chunk::<8>()?;
        let (leaves, rest) = rest.split_first_chunk::<8>()?;
        let ([unit, age], _) = rest.split_first_chunk::<2>()?;
        let [place, why, found] = codes.map(usize::from);
        let moment = |bytes: &[u8; 8]| match i64::from_le_bytes(*bytes) {
            NO_MOMENT => None,
            seconds => Some(Moment::from_milliseconds(seconds.saturating_mul(1000))),
        };
        let answer = Self {
            place: *Place::ALL.get(place)?,
            why: *Why::ALL.get(why)?,
            found: words::FOUND.get(found).copied(),
            last_checked: moment(last),
            next_check: moment(next),
            leaves: moment(leaves),
            age: match *unit {
                MONTHS => Some(Age::MonthsDown(*age)),
                WEEKS => Some(Age::WeeksKnown(*age)),
                _ => None,
            },
        };
        Some((Key(*key), answer))
    }

    /// Its entry in a shard, as JSON. `line` is the host's in the list that the pages are made
    /// from; an answer that does not say "listed" says nothing of it.
    pub(crate) fn entry(&self, key: Key, line: Option<list::Row<'_>>) -> String {
        let or_null = |value: Option<String>| value.unwrap_or_else(|| "null".to_owned());
        let seconds = |moment: Option<Moment>| or_null(moment.map(|at| at.seconds().to_string()));
        format!(
            r#""{}":["{}","{}",{},{},{},{}{}]"#,
            key.entry(),
            self.place.as_str(),
            self.why.as_str(),
            or_null(
                self.found
                    .map(|found| format!("\"{}\"", words::found_word(found)))
            ),
            self.why.is_listed(),
            seconds(self.last_checked),
            seconds(self.next_check),
            line.filter(|_| self.why.is_listed())
                .map_or_else(String::new, |line| {
                    let text = |text: &str| serde_json::Value::from(text).to_string();
                    let month = badge::month(line.first_seen);
                    let (software, version) = (text(line.software), text(line.version));
                    let leaves = seconds(self.leaves);
                    format!(",{leaves},{},{software},{version}", text(&month))
                })
        )
    }
}

/// The index of a value among all of them, of which there are less than 255.
fn code<T: PartialEq>(all: &[T], value: &T) -> u8 {
    all.iter()
        .position(|one| one == value)
        .and_then(|at| u8::try_from(at).ok())
        .unwrap_or(NO_CODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: Salt = Salt(0xfeed);

    fn key(host: &str) -> Key {
        Key::of(SALT, &Host::parse(host).unwrap())
    }

    const WAITING: Answer = Answer {
        place: Place::Waiting,
        why: Why::Waiting,
        ..Answer::WITHHELD
    };

    /// Computed with `printf %s 0000000000000000000000000000feeda.example | sha256sum`, as the page
    /// instructs readers without scripts.
    #[test]
    fn a_key_is_what_sha256sum_prints_of_the_salt_and_the_canonical_name() {
        let key = key("A.Example.");
        let digits = format!("{:03x}{}", key.prefix(), key.entry());
        assert_eq!(digits, KEY_OF_A_EXAMPLE);
    }
    const KEY_OF_A_EXAMPLE: &str = "07a950f9e75c7cdac6a";

    /// Readers' programs are tested with the same file.
    #[test]
    fn keys_are_those_of_the_published_vectors() {
        let vectors = include_str!("../../../../examples/vectors.json");
        let vectors: serde_json::Value = serde_json::from_str(vectors).unwrap();
        for vector in vectors.as_array().unwrap() {
            let text = |member: &str| vector[member].as_str().unwrap();
            let salt = Salt(u128::from_str_radix(text("salt"), 16).unwrap());
            let key = Key::of(salt, &Host::parse(text("name")).unwrap());
            assert_eq!(key.entry(), text("key"));
            assert!(key.digits().starts_with(text("hash16")), "{vector}");
            for (digits, shard) in (1..).zip(vector["shard"].as_array().unwrap()) {
                assert_eq!(shard.as_str(), key.digits().get(..digits));
            }
        }
    }

    #[test] // S69
    fn names_sharing_a_prefix_part_under_the_next_salt() {
        let names = (0..).map(|number| Host::parse(&format!("h{number}.example")).unwrap());
        let chosen: Vec<Host> = names
            .filter(|host| Key::of(SALT, host).prefix() >> 8 == 0xa)
            .take(1600)
            .collect();
        let mut shards = [0; 16];
        for host in &chosen {
            let shard = Key::of(Salt(1), host).prefix() >> 8;
            shards[usize::from(shard)] += 1;
        }
        assert!(
            shards.iter().all(|count| (50..200).contains(count)),
            "{shards:?}"
        );
    }

    #[test]
    fn every_answer_comes_back_from_its_packed_form() {
        let at = Some(Moment::from_milliseconds(1_700_000_000_000));
        let key = key("a.example");
        for place in Place::ALL {
            for why in Why::ALL {
                for found in words::FOUND.iter().copied().map(Some).chain([None]) {
                    for age in [None, Some(Age::MonthsDown(3)), Some(Age::WeeksKnown(255))] {
                        let answer = Answer {
                            place,
                            why: *why,
                            found,
                            last_checked: at,
                            age,
                            ..Answer::WITHHELD
                        };
                        assert_eq!(Answer::unpack(&answer.pack(key)), Some((key, answer)));
                    }
                }
            }
        }
        assert_eq!(Answer::unpack(&[0xee; PACKED_BYTES]), None);
        let (at, bytes) = (u64::MAX, 7);
        let line = pack_line(key, list::Span { at, bytes });
        assert_eq!(unpack_line(&line), Some(list::Span { at, bytes }));
        assert_eq!(unpack_line(&WAITING.pack(key)), None);
        assert!(WAITING.pack(key) < line, "an answer comes first");
    }

    const LINE: list::Row<'_> = list::Row {
        host: "secret.example",
        software: "\"soft\"",
        version: "4.5",
        state: "alive",
        open_registrations: "",
        first_seen: "2026-12-31",
        last_alive: "",
        unicode: "",
    };

    #[test]
    fn an_entry_names_nothing_but_what_it_should() {
        let key = key("secret.example");
        for unlisted in [WAITING, Answer::WITHHELD] {
            let with_line = unlisted.entry(key, Some(LINE));
            assert_eq!(with_line, unlisted.entry(key, None), "the list is older");
        }
        let bare = WAITING.entry(key, None);
        assert!(
            bare.ends_with(r#":["waiting","waiting",null,false,null,null]"#),
            "{bare}"
        );
        assert!(!bare.contains("secret"), "{bare}");
        let entry = Answer {
            why: Why::Failing,
            place: Place::ALL[2],
            found: words::FOUND.last().copied(),
            last_checked: Some(Moment::from_milliseconds(1_700_000_000_999)),
            next_check: None,
            leaves: Some(Moment::from_milliseconds(1_700_600_000_000)),
            age: None,
        };
        let json = format!("{{{}}}", entry.entry(key, Some(LINE)));
        let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            parsed[key.entry()],
            serde_json::json!([
                "dying",
                "failing",
                "faulting",
                true,
                1_700_000_000,
                null,
                1_700_600_000,
                "2026-12",
                "\"soft\"",
                "4.5"
            ])
        );
    }
}

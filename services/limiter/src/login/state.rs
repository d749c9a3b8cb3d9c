//! Where a login limiter stores its records.

use std::collections::HashMap;
use std::convert::Infallible;

use super::record::Record;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// An address, from [`crate::address_key`]: attempts and bans.
    Address(String),
    User(String),
    /// A browser in which a user has logged in before: failures and locks. They are separate, so
    /// that other people's failures don't lock it.
    Device {
        user: String,
        /// The name in the browser's signed cookie.
        device: String,
    },
}

/// Stores records. Calls must be short, because others wait for them.
pub trait State {
    type Error;

    fn get(&mut self, key: &Key) -> Result<Record, Self::Error>;

    fn put(&mut self, key: Key, record: Record) -> Result<(), Self::Error>;

    /// Lets `keep` change each record, and drops those for which it returns `false`.
    fn retain(&mut self, keep: impl FnMut(&Key, &mut Record) -> bool) -> Result<(), Self::Error>;
}

/// Records in memory. A restart loses them.
#[derive(Debug)]
pub struct Memory {
    records: HashMap<Key, Record>,
    records_max: usize,
}

impl Memory {
    /// Holds at most `records_max` records, at least 1. When a further one arrives, half of them
    /// are dropped: records without a ban or lock first, then those whose ban or lock ends soonest.
    pub fn new(records_max: usize) -> Self {
        Self {
            records: HashMap::new(),
            records_max: records_max.max(1),
        }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    fn make_room(&mut self) {
        let end = |record: &Record| (record.held_until, record.times.back().copied());
        let mut ends: Vec<_> = self.records.values().map(end).collect();
        let half = ends.len() / 2;
        let (_, middle, _) = ends.select_nth_unstable(half);
        let middle = *middle;
        self.records.retain(|_, record| end(record) > middle);
    }
}

impl State for Memory {
    type Error = Infallible;

    fn get(&mut self, key: &Key) -> Result<Record, Infallible> {
        Ok(self.records.get(key).cloned().unwrap_or_default())
    }

    fn put(&mut self, key: Key, record: Record) -> Result<(), Infallible> {
        if self.records.len() >= self.records_max && !self.records.contains_key(&key) {
            self.make_room();
        }
        self.records.insert(key, record);
        Ok(())
    }

    fn retain(
        &mut self,
        mut keep: impl FnMut(&Key, &mut Record) -> bool,
    ) -> Result<(), Infallible> {
        self.records.retain(|key, record| keep(key, record));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::record::Timestamp;
    use super::*;

    fn address(number: u64) -> Key {
        Key::Address(number.to_string())
    }

    #[test]
    fn a_flood_of_addresses_is_bounded_and_lifts_no_ban() {
        let mut memory = Memory::new(100);
        let mut banned = Record::default();
        banned.hold(Timestamp::default(), Duration::from_secs(1800));
        memory.put(address(u64::MAX), banned.clone()).unwrap();
        for number in 0..10_000 {
            let mut record = Record::default();
            record.count(Timestamp(Duration::from_secs(number)), 6);
            memory.put(address(number), record).unwrap();
            assert!(memory.len() <= 100);
            assert_eq!(
                memory.get(&address(number)).unwrap().times.len(),
                1,
                "the newest stays"
            );
        }
        assert_eq!(memory.get(&address(u64::MAX)).unwrap(), banned);
        for number in 0..1000 {
            memory.put(address(number), banned.clone()).unwrap();
        }
        assert!(memory.len() <= 100, "bans alone");
    }
}

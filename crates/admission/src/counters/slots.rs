//! Counts by id, in little more than eight bytes each.
//!
//! The first bits of an id choose a shard. A shard is a sorted list of words, each with the rest of
//! the id and the count. Shards grow by an eighth, so that they hold little in reserve and no
//! insertion moves more than that, even with ten million counts. A hash table would double in size
//! at once.

pub(super) const ID_BITS: u32 = SHARD_BITS + REST_BITS;

/// Bits of an id that choose a shard. With ten million counts a shard has 20 KB; all empty shards
/// take 0.1 MB.
const SHARD_BITS: u32 = 12;

/// Bits of an id that are stored in a word.
const REST_BITS: u32 = u64::BITS - COUNT_BITS;

/// Bits of a count, which is at most a [`crate::Limit`].
const COUNT_BITS: u32 = 31;

const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

const REST_MASK: u64 = (1 << REST_BITS) - 1;

const SHARDS: usize = 1 << SHARD_BITS;

/// Counts above zero, by id. An id has at most [`ID_BITS`] bits.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Empty before the first count.
    shards: Vec<Vec<u64>>,
    len: usize,
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The count of `id`, or 0 if it has none.
    pub(super) fn count(&self, id: u64) -> u32 {
        let found = self.shards.get(shard_of(id)).and_then(|shard| {
            let place = place(shard, id).ok()?;
            shard.get(place).copied()
        });
        found.map_or(0, count_of)
    }

    /// Sets the count of `id`, at most [`crate::Limit::MAX`]. 0 removes it.
    pub(super) fn set(&mut self, id: u64, count: u32) {
        if self.shards.is_empty() {
            self.shards.resize_with(SHARDS, Vec::new);
        }
        let Some(shard) = self.shards.get_mut(shard_of(id)) else {
            return;
        };
        let word = ((id & REST_MASK) << COUNT_BITS) | (u64::from(count) & COUNT_MASK);
        match (place(shard, id), count) {
            (Ok(place), 0) => {
                shard.remove(place);
                self.len = self.len.saturating_sub(1);
            }
            (Ok(place), _) => {
                if let Some(there) = shard.get_mut(place) {
                    *there = word;
                }
            }
            (Err(_), 0) => {}
            (Err(place), _) => {
                if shard.len() == shard.capacity() {
                    shard.reserve_exact((shard.len() / 8).saturating_add(4));
                }
                shard.insert(place, word);
                self.len = self.len.saturating_add(1);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        (0_u64..).zip(&self.shards).flat_map(|(number, shard)| {
            shard
                .iter()
                .map(move |&word| ((number << REST_BITS) | (word >> COUNT_BITS), count_of(word)))
        })
    }
}

fn shard_of(id: u64) -> usize {
    // An id that is too long has no shard.
    usize::try_from(id >> REST_BITS).unwrap_or(usize::MAX)
}

fn place(shard: &[u64], id: u64) -> Result<usize, usize> {
    shard.binary_search_by_key(&(id & REST_MASK), |word| word >> COUNT_BITS)
}

fn count_of(word: u64) -> u32 {
    u32::try_from(word & COUNT_MASK).unwrap_or(u32::MAX)
}

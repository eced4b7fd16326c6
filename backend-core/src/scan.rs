//! Reading a map or a list by batches of its entries.

use std::ops::Bound;

use bytes::Bytes;

/// A range of encoded sub-keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubKeyRange {
    /// Where it begins.
    pub start: Bound<Bytes>,
    /// Where it ends.
    pub end: Bound<Bytes>,
}

impl SubKeyRange {
    /// Every sub-key.
    pub const ALL: Self = Self {
        start: Bound::Unbounded,
        end: Bound::Unbounded,
    };

    /// Whether `sub_key` lies in the range.
    pub fn contains(&self, sub_key: &[u8]) -> bool {
        let after_start = match &self.start {
            Bound::Unbounded => true,
            Bound::Included(start) => sub_key >= &start[..],
            Bound::Excluded(start) => sub_key > &start[..],
        };
        after_start && !self.is_beyond(sub_key)
    }

    /// Whether `sub_key` lies behind the end of the range.
    #[inline]
    pub fn is_beyond(&self, sub_key: &[u8]) -> bool {
        match &self.end {
            Bound::Unbounded => false,
            Bound::Included(end) => sub_key > &end[..],
            Bound::Excluded(end) => sub_key >= &end[..],
        }
    }
}

/// A batch of sub-keys and values in order, packed; reuse it to save allocations.
#[derive(Debug)]
pub struct EntryBatch {
    bytes: Vec<u8>,
    /// One past the end of each sub-key and of each value in `bytes`.
    ends: Vec<(usize, usize)>,
    entries_max: usize,
    bytes_target: usize,
    complete: bool,
}

impl EntryBatch {
    /// A batch of at most `entries_max` entries that is full once it holds `bytes_target` bytes.
    ///
    /// # Panics
    /// If `entries_max` is 0.
    pub fn new(entries_max: usize, bytes_target: usize) -> Self {
        assert!(entries_max > 0, "a batch holds an entry");
        Self {
            bytes: Vec::new(),
            ends: Vec::new(),
            entries_max,
            bytes_target,
            complete: false,
        }
    }

    /// An empty batch with the bounds of another one.
    pub fn like(other: &Self) -> Self {
        Self::new(other.entries_max, other.bytes_target)
    }

    /// Forgets all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.complete = false;
    }

    /// Adds an entry and says whether there is room for another.
    #[inline]
    pub fn push(&mut self, sub_key: &[u8], value: &[u8]) -> bool {
        self.bytes.extend_from_slice(sub_key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
        !self.is_full()
    }

    /// Whether the batch takes no more.
    pub fn is_full(&self) -> bool {
        self.ends.len() >= self.entries_max || self.bytes.len() >= self.bytes_target
    }

    /// Says that nothing of the range lies behind this batch.
    pub fn set_complete(&mut self) {
        self.complete = true;
    }

    /// Whether nothing of the range lies behind this batch.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The sub-key and value at `index`.
    ///
    /// # Panics
    /// If `index` is not below [`EntryBatch::len`].
    #[inline]
    pub fn get(&self, index: usize) -> (&[u8], &[u8]) {
        let start = if index == 0 {
            0
        } else {
            self.ends[index - 1].1
        };
        let (key_end, end) = self.ends[index];
        (&self.bytes[start..key_end], &self.bytes[key_end..end])
    }

    /// The entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> + DoubleEndedIterator {
        (0..self.len()).map(|i| self.get(i))
    }
}

impl Default for EntryBatch {
    /// 1,024 entries or 64 KiB.
    fn default() -> Self {
        Self::new(1_024, 64 << 10)
    }
}

/// A cursor over the keys of a state, each with its namespace, as they were when it was opened.
///
/// It holds a frozen view: the owner goes on writing, and what it writes does not show.
pub trait KeyCursor: Send {
    /// Fills `batch` with the next keys. An empty batch is the end.
    fn next_batch<'a>(&'a mut self, batch: &'a mut KeyBatch) -> crate::Fetch<'a, ()>;
}

/// A batch of keys with their namespaces, packed; reuse it to save allocations.
#[derive(Debug)]
pub struct KeyBatch {
    pairs: EntryBatch,
}

impl KeyBatch {
    /// A batch of at most `keys_max` keys.
    pub fn new(keys_max: usize) -> Self {
        Self {
            pairs: EntryBatch::new(keys_max, usize::MAX),
        }
    }

    /// Forgets all keys and keeps the memory.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }

    /// Adds a key with its namespace and says whether there is room for another.
    pub fn push(&mut self, key: &[u8], namespace: &[u8]) -> bool {
        self.pairs.push(key, namespace)
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The encoded key and namespace at `index`.
    ///
    /// # Panics
    /// If `index` is not below [`KeyBatch::len`].
    pub fn get(&self, index: usize) -> (&[u8], &[u8]) {
        self.pairs.get(index)
    }

    /// Encoded keys and namespaces.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.pairs.iter()
    }
}

impl Default for KeyBatch {
    /// 1,024 keys.
    fn default() -> Self {
        Self::new(1_024)
    }
}

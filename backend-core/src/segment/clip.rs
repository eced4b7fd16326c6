//! Which entries of a segment count for a task.

use crate::entry::EntryKey;
use crate::error::{Error, ErrorKind, Result};
use crate::hash::KeyHasher;
use crate::range::{HashRange, shard_of};

/// A range of hashes, applied to entries.
#[derive(Clone, Copy, Debug)]
pub struct Clip {
    range: HashRange,
    hasher: KeyHasher,
}

impl Clip {
    /// Admits entries whose key, hashed by `hasher`, lies in `range`.
    pub fn new(range: HashRange, hasher: KeyHasher) -> Self {
        Self { range, hasher }
    }

    /// The shards that can hold entries that count.
    pub fn shards(&self) -> (u8, u8) {
        let shards = self.range.shards();
        (*shards.start(), *shards.end())
    }

    /// Whether the entry counts.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] if the key's hash does not lie in the shard that the entry is
    /// filed under: another hash function wrote it.
    #[inline]
    pub fn admits(&self, key: &EntryKey<'_>) -> Result<bool> {
        let hash = self.hasher.hash(key.owner());
        if shard_of(hash) != key.shard {
            return Err(Error::new(
                ErrorKind::Mismatch,
                "a key is filed under another shard than its hash says; was it written under another hash function?",
            )
            .with("key", key.owner().escape_ascii())
            .with("hash", self.hasher.id())
            .expected_got(shard_of(hash), key.shard));
        }
        Ok(self.range.contains(hash))
    }
}

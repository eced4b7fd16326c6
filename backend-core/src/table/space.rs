//! Where in a table's directory a hash belongs.

use crate::hash::KeyHasher;
use crate::range::HashRange;
use crate::table::page::{Identity, PageView};

/// A task's range of hashes, stretched so that its keys spread over all bits of the directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    range: HashRange,
    hasher: KeyHasher,
    shift: u32,
}

impl Space {
    pub(super) fn new(range: HashRange, hasher: KeyHasher) -> Self {
        let shift = (range.last() - range.first()).leading_zeros().min(63);
        Self {
            range,
            hasher,
            shift,
        }
    }

    pub(super) fn range(&self) -> HashRange {
        self.range
    }

    pub(super) fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// The place of a hash of the range: its distance from the range's beginning, stretched.
    #[inline]
    pub(super) fn place(&self, hash: u64) -> u64 {
        debug_assert!(self.range.contains(hash), "a key belongs to the task");
        hash.wrapping_sub(self.range.first()) << self.shift
    }

    /// The hashes whose places begin with the first `depth` bits of `place`.
    pub(super) fn hashes(&self, place: u64, depth: u32) -> (u64, u64) {
        let rest = u64::MAX.checked_shr(depth).unwrap_or(0);
        let hash = |place: u64| self.range.first().saturating_add(place >> self.shift);
        (
            hash(place & !rest),
            hash(place | rest).min(self.range.last()),
        )
    }

    /// The places of all occupied slots of a page, in their order.
    pub(super) fn places(&self, page: PageView<'_>) -> Vec<u64> {
        let place = |slot| {
            let Identity { key, .. } = page.identity(slot);
            self.place(self.hasher.hash(key))
        };
        page.occupied().map(place).collect()
    }
}

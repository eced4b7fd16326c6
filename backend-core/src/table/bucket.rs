//! A bucket: five slots and a byte of hash for each, in two cache lines.

use crate::table::slot::Slot;

/// The slots of a bucket.
pub(super) const BUCKET_SLOTS: usize = 5;
/// The high bit of each slot's tag.
const HIGH_BITS: u64 = 0x80_8080_8080;
/// The low bit of each slot's tag.
const LOW_BITS: u64 = 0x01_0101_0101;
/// Where in the tags the count of passed entries is.
const PASSED_SHIFT: u32 = 8 * BUCKET_SLOTS as u32;
/// A count that has reached this is not known exactly any more, and stays.
const PASSED_MAX: u64 = u8::MAX as u64;

/// Five slots, aligned so that a look-up needs one pair of cache lines, which processors fetch
/// together.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
pub(super) struct Bucket {
    /// From the low byte: a tag for each slot, 0 if it is free; the number of entries that would
    /// like to be here and lie in a later bucket.
    tags: u64,
    pub(super) slots: [Slot; BUCKET_SLOTS],
}

const _: () = assert!(size_of::<Bucket>() == 128);

impl Bucket {
    /// A bucket of free slots.
    pub(super) const EMPTY: Self = Self {
        tags: 0,
        slots: [Slot::EMPTY; BUCKET_SLOTS],
    };

    /// The slots whose tag is `tag`, and perhaps another one or two.
    #[inline]
    pub(super) fn lanes(&self, tag: u8) -> Lanes {
        let differing = self.tags ^ (u64::from(tag) * LOW_BITS);
        Lanes(differing.wrapping_sub(LOW_BITS) & !differing & HIGH_BITS)
    }

    /// The first free slot.
    #[inline]
    pub(super) fn free_lane(&self) -> Option<usize> {
        // A used slot's tag has its high bit set.
        Lanes(!self.tags & HIGH_BITS).next()
    }

    /// How many entries would like to be here and lie in a later bucket.
    #[inline]
    pub(super) fn passed(&self) -> u64 {
        self.tags >> PASSED_SHIFT & PASSED_MAX
    }

    /// Notes that an entry was passed on to a later bucket.
    pub(super) fn pass(&mut self) {
        if self.passed() < PASSED_MAX {
            self.tags += 1 << PASSED_SHIFT;
        }
    }

    /// Notes that an entry which was passed on is gone.
    pub(super) fn unpass(&mut self) {
        if self.passed() < PASSED_MAX {
            self.tags -= 1 << PASSED_SHIFT;
        }
    }

    /// The tag of a slot.
    pub(super) fn tag(&self, lane: usize) -> u8 {
        (self.tags >> (8 * lane)) as u8
    }

    /// Uses a free slot.
    pub(super) fn fill(&mut self, lane: usize, tag: u8, slot: Slot) {
        debug_assert!(self.tag(lane) == 0 && tag & 0x80 != 0);
        self.tags |= u64::from(tag) << (8 * lane);
        self.slots[lane] = slot;
    }

    /// Frees a slot.
    pub(super) fn free(&mut self, lane: usize) {
        self.tags &= !(0xff << (8 * lane));
        self.slots[lane] = Slot::EMPTY;
    }

    /// A bit of each cache line, to fetch them.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.tags ^ u64::from(self.slots[BUCKET_SLOTS - 1].stamp)
    }
}

/// The indexes of some slots of a bucket.
#[derive(Debug)]
pub(super) struct Lanes(u64);

impl Iterator for Lanes {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() / 8;
        self.0 &= self.0 - 1;
        Some(lane as usize)
    }
}

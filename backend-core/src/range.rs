//! Who owns a key: ranges of the 64-bit hash space, for any parallelism.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// The number of shards of the format: the top eight bits of a hash, fixed for all time.
pub const SHARD_COUNT: usize = 256;

/// The shard of a hash.
pub const fn shard_of(hash: u64) -> u8 {
    (hash >> 56) as u8
}

/// The task that owns `hash` among `parallelism` tasks.
///
/// It agrees with [`HashRange::of_task`] for every hash and every parallelism.
///
/// # Panics
/// If `parallelism` is zero.
pub const fn owner_of(hash: u64, parallelism: u32) -> u32 {
    assert!(parallelism > 0, "a job has at least one task");
    ((hash as u128 * parallelism as u128) >> 64) as u32
}

/// An inclusive, never empty range of hashes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HashRange {
    first: u64,
    last: u64,
}

impl HashRange {
    /// Every hash.
    pub const ALL: Self = Self {
        first: 0,
        last: u64::MAX,
    };

    /// The hashes `first..=last`.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if `first > last`.
    pub fn new(first: u64, last: u64) -> Result<Self> {
        if first > last {
            return Err(
                Error::new(ErrorKind::Invalid, "a hash range ends before it begins")
                    .with("first", format_args!("{first:#018x}"))
                    .with("last", format_args!("{last:#018x}")),
            );
        }
        Ok(Self { first, last })
    }

    /// The range of task `task` of `parallelism`: the ranges of all tasks are contiguous,
    /// disjoint, cover the space, and differ in size by at most one hash.
    ///
    /// # Panics
    /// If `task >= parallelism`.
    pub fn of_task(task: u32, parallelism: u32) -> Self {
        assert!(
            task < parallelism,
            "task {task} of {parallelism} does not exist"
        );
        let start = |i: u32| (u128::from(i) << 64).div_ceil(u128::from(parallelism));
        Self {
            first: start(task) as u64,
            last: (start(task + 1) - 1) as u64,
        }
    }

    /// The lowest hash in the range.
    pub const fn first(self) -> u64 {
        self.first
    }

    /// The highest hash in the range.
    pub const fn last(self) -> u64 {
        self.last
    }

    /// Whether `hash` lies in the range.
    pub const fn contains(self, hash: u64) -> bool {
        self.first <= hash && hash <= self.last
    }

    /// Whether every hash of `other` lies in the range.
    pub const fn covers(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// The hashes that both ranges hold.
    pub fn intersect(self, other: Self) -> Option<Self> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (first <= last).then_some(Self { first, last })
    }

    /// The shards that the range touches.
    pub fn shards(self) -> std::ops::RangeInclusive<u8> {
        shard_of(self.first)..=shard_of(self.last)
    }
}

impl fmt::Debug for HashRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for HashRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}..={:016x}", self.first, self.last)
    }
}

//! Generations: the intervals between two freezes of a store.

use std::fmt;

/// The interval between two freezes of one store; stamps on entries are generations.
///
/// A restored store starts above the highest generation of all that it restores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u32);

impl Generation {
    /// Older than every write: what a new store has covered.
    pub const ZERO: Self = Self(0);

    /// The generation after this one.
    ///
    /// # Panics
    /// After 2^32 - 1 generations: one a second lasts for 136 years.
    #[must_use]
    pub fn next(self) -> Self {
        Self(
            self.0
                .checked_add(1)
                .expect("a store is frozen fewer than 2^32 times"),
        )
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a write has to know: its generation, and what may already lie in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteContext {
    /// The stamp of the write.
    pub generation: Generation,
    /// The highest generation whose changes all lie in durable segments.
    pub covered: Generation,
    /// The highest generation that a durable segment or a pending snapshot may hold; at least
    /// `covered`. An entry born later exists nowhere else, so deleting it leaves no tombstone.
    pub anchor: Generation,
    /// Whether increments are taken at all; if not, no tombstone is ever kept.
    pub incremental: bool,
}

impl WriteContext {
    /// Whether a deletion at `stamp` of something first written in `born` must be remembered.
    #[inline]
    pub fn keeps_tombstone(&self, stamp: Generation, born: Generation) -> bool {
        self.incremental && stamp > self.covered && born <= self.anchor
    }
}

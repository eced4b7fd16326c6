//! What a table counts, and how far it has swept.

use crate::generation::Generation;
use crate::key::StateKey;

/// Sums over all pages of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Slots with a value.
    pub(super) live: u64,
    /// Slots with a tombstone.
    pub(super) tombstones: u64,
    /// Map entries and list elements.
    pub(super) entries: u64,
    /// The memory of pages and nodes.
    pub(super) bytes: u64,
    /// The memory of pages and nodes that were copied because a frozen view holds the original.
    pub(super) copied_bytes: u64,
}

impl Counts {
    /// Notes that something which took `old` bytes takes `new` ones.
    #[inline]
    pub(super) fn resized(&mut self, old: u64, new: u64) {
        self.bytes = self.bytes + new - old;
    }

    /// Notes that a slot which was live or not is live or not.
    pub(super) fn revived(&mut self, was_live: bool, is_live: bool) {
        self.live = self.live + u64::from(is_live) - u64::from(was_live);
        self.tombstones = self.tombstones + u64::from(was_live) - u64::from(is_live);
    }

    /// Notes a copy of something of `old` bytes that a frozen view holds; the copy takes `new`.
    pub(super) fn copied(&mut self, old: u64, new: u64) {
        self.copied_bytes += old;
        self.resized(old, new);
    }
}

/// What decides whether a tombstone is kept.
type Bounds = (Generation, Generation, bool);

/// How far a sweep has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweep {
    /// The place of the next page.
    pub(super) place: u64,
    /// Under which bounds the sweep at work began.
    pub(super) began: Option<Bounds>,
    /// Under which bounds the last sweep had begun: while they hold, another gains nothing much.
    pub(super) done: Option<Bounds>,
}

/// How far a sweep for expired entries has come.
#[derive(Clone, Debug, Default)]
pub(super) struct ExpirySweep {
    /// The place of the next page.
    pub(super) place: u64,
    /// Maps and lists of the page before it that are still to be looked at.
    pub(super) keys: Vec<StateKey>,
    /// Where the last of these goes on, if it is half done.
    pub(super) sub_key: Vec<u8>,
    /// Whether that page is the last one.
    pub(super) is_last: bool,
}

//! What one merge reads, writes and replaces.

use crate::generation::Generation;
use crate::range::HashRange;
use crate::segment::{SegmentRef, Tier};

/// A range of encoded entry keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySpan {
    /// The first key in it; `None` if there is no lower bound.
    pub start: Option<Box<[u8]>>,
    /// The first key behind it; `None` if there is no upper bound.
    pub end: Option<Box<[u8]>>,
}

/// The sum of sizes, which are as a manifest states them and may exceed all that exists.
pub(super) fn total(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// One merge: a step that leaves a valid chain.
///
/// A merge into a base of several files rewrites one file at a time, with the parts of the runs
/// that fall into its span; the runs leave the chain with the last file. The chain is valid in
/// between, because applying a run to a base that already holds it changes nothing: its deletes
/// hide what the base holds of its keys, and its puts restore just that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergePlan {
    /// What is read, oldest first.
    pub inputs: Vec<SegmentRef>,
    /// Only entries in here are read.
    pub span: KeySpan,
    /// Only entries whose key's hash lies in here are read.
    pub clip: HashRange,
    /// What leaves the chain; the output takes the place of the first of them.
    pub replaces: Vec<SegmentRef>,
    /// The tier of the output.
    pub tier: Tier,
    /// The run number of the output; `None`: a new one.
    pub run: Option<u32>,
    /// The generations that the output covers.
    pub generations: (Generation, Generation),
}

impl MergePlan {
    /// Whether nothing lies below the output, so that deletes and expired entries are dropped.
    pub fn reaches_bottom(&self) -> bool {
        self.tier == Tier::BASE
    }

    /// The bytes of what is read, at most.
    pub fn input_bytes(&self) -> u64 {
        total(self.inputs.iter().map(|segment| segment.meta.bytes))
    }
}

//! What a manifest knows of a segment.

use std::sync::Arc;

use bytes::Bytes;

use crate::generation::Generation;
use crate::ids::Digest;
use crate::names::{ObjectName, PartsName, SegmentName};
use crate::range::HashRange;

/// Where a segment's bytes lie.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentLocation {
    /// An object of its own.
    Object(SegmentName),
    /// In the manifest itself: small state.
    Inline(Bytes),
    /// In an object that holds the small segments of many tasks.
    Packed {
        /// The object.
        name: PartsName,
        /// Where the segment begins in it.
        offset: u64,
    },
}

impl SegmentLocation {
    /// The object that holds the bytes; `None` if they are inline.
    pub fn object(&self) -> Option<ObjectName> {
        match self {
            Self::Object(name) => Some(ObjectName::Segment(*name)),
            Self::Inline(_) => None,
            Self::Packed { name, .. } => Some(ObjectName::Parts(*name)),
        }
    }
}

/// A part of a segment whose index and filter lie side by side: one ranged read fetches both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The encoded entry key of the region's first entry, or a shorter separator above the
    /// region before it.
    pub first_key: Box<[u8]>,
    /// Where its index begins in the segment; the filter follows it.
    pub offset: u64,
    /// The bytes of the index.
    pub index_bytes: u32,
    /// The bytes of the filter; 0 if there is none.
    pub filter_bytes: u32,
    /// CRC-32 of index and filter.
    pub crc: u32,
}

impl Region {
    /// One past the end of its filter; `None` if that is beyond all numbers.
    pub(super) fn end(&self) -> Option<u64> {
        let bytes = u64::from(self.index_bytes) + u64::from(self.filter_bytes);
        self.offset.checked_add(bytes)
    }
}

/// A segment, as a manifest describes it: enough to read any range of it without reading more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentMeta {
    /// Where it lies.
    pub location: SegmentLocation,
    /// Its size.
    pub bytes: u64,
    /// BLAKE3 of all its bytes.
    pub digest: Digest,
    /// The puts in it.
    pub puts: u64,
    /// The deletes in it.
    pub deletes: u64,
    /// The prefix deletes in it.
    pub delete_prefixes: u64,
    /// An estimate of the bytes of older segments that its deletes make dead; a policy charges
    /// them to it.
    pub shadowed_bytes: u64,
    /// The lowest and highest generation that its entries come from.
    pub generations: (Generation, Generation),
    /// The lowest and highest shard in it; within a shard a clip recomputes hashes.
    pub shards: (u8, u8),
    /// The earliest expiry in it, in milliseconds since 1970; `None` if nothing expires.
    pub expires_ms_min: Option<u64>,
    /// Its regions in the order of their keys.
    pub regions: Vec<Region>,
}

impl SegmentMeta {
    /// The number of entries.
    pub fn entries(&self) -> u64 {
        self.puts + self.deletes + self.delete_prefixes
    }

    /// Facts whose failure would make later arithmetic overflow, a range run backwards, or a key
    /// be sought in the wrong region; the error says which.
    pub(crate) fn check(&self) -> std::result::Result<(), &'static str> {
        let entries = self
            .puts
            .checked_add(self.deletes)
            .and_then(|sum| sum.checked_add(self.delete_prefixes));
        if entries.is_none() {
            return Err("a segment has more entries than can be counted");
        }
        if self.generations.0 > self.generations.1 || self.shards.0 > self.shards.1 {
            return Err("a segment's generations or shards run backwards");
        }
        let inside = |region: &Region| region.end().is_some_and(|end| end <= self.bytes);
        if !self.regions.iter().all(inside) {
            return Err("a region lies outside its segment");
        }
        // A prefix delete may be a region of its own, before one that begins with a put of the
        // same key.
        if !self.regions.is_sorted_by(|a, b| a.first_key <= b.first_key) {
            return Err("a segment's regions do not ascend");
        }
        Ok(())
    }
}

/// How often the content of a segment has been merged: 0 for an increment as it was written,
/// [`Tier::BASE`] for the bottom, below which nothing lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tier(pub u8);

impl Tier {
    /// The bottom.
    pub const BASE: Self = Self(u8::MAX);
}

/// A segment as one task refers to it: clipped to a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentRef {
    /// The segment.
    pub meta: Arc<SegmentMeta>,
    /// Only entries whose key's hash lies in here count.
    pub clip: HashRange,
    /// Its place in the chain.
    pub tier: Tier,
    /// Segments of one run hold disjoint keys, lie side by side in a chain, and share this
    /// number; within a task it is unique per run.
    pub run: u32,
}

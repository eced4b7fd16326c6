//! Segments: immutable sorted files of entries.

mod meta;

pub use meta::{Region, SegmentLocation, SegmentMeta, SegmentRef, Tier};

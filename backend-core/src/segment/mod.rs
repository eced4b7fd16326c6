//! Segments: immutable sorted files of entries.
//!
//! [`SegmentWriter`] and [`SegmentSplitter`] write them, [`SegmentStream`] reads them in order,
//! [`SegmentReader`] reads single keys, [`merge`] makes one run of several. Every byte is
//! described in `docs/format.md`.
//!
//! What always holds for bytes from outside: every length is bounded before it is believed, a
//! block takes at most 1,024 times the memory of what was read for it, and damage is an error
//! that names the object and the place.

mod block;
mod block_entries;
mod check;
mod clip;
mod filter;
mod footer;
mod key_encoding;
mod lookup;
mod merge;
mod meta;
mod options;
mod reader;
mod region;
mod shuffle;
mod source;
mod stream;
#[cfg(test)]
mod tests;
mod varint;
mod writer;

pub use block_entries::BlockEntries;
pub(crate) use block_entries::RawEntry;
pub(crate) use check::{FlawKind, SegmentCheck};
pub use clip::Clip;
pub(crate) use footer::{HEADER_BYTES, check_header};
pub(crate) use key_encoding::encode_entry_key;
pub use key_encoding::prefix_of;
pub(crate) use lookup::{PrefixBlocks, SegmentLookup, Sight};
pub use merge::{BlockSource, MergeRules, merge};
pub use meta::{Region, SegmentLocation, SegmentMeta, SegmentRef, Tier};
pub use options::SegmentOptions;
pub use reader::{Found, SegmentReader};
pub use source::SegmentSource;
pub use stream::SegmentStream;
pub use writer::{FinishedSegment, FinishedSink, SegmentSplitter, SegmentWriter};

//! The index of a region: where its blocks lie.
//!
//! ```text
//! blocks u32, then for each: first key (length u32, bytes) | offset u64 | stored bytes u32 |
//! entries u32 | CRC-32 of the stored bytes u32
//! ```
//!
//! The filter follows the index.

use crate::error::{Error, ErrorKind, Result};
use crate::segment::block_entries::{BlockEntries, BlockPlace};
use crate::segment::key_encoding::ENTRY_KEY_BYTES_MAX;
use crate::segment::meta::Region;
use crate::segment::source::SegmentSource;
use crate::wire::{Reader, Writer};

/// The bytes of a block's place without its key.
const HANDLE_BYTES: usize = 4 + 8 + 4 + 4 + 4;

/// Where a block lies, and what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockHandle {
    pub(super) first_key: Box<[u8]>,
    pub(super) offset: u64,
    pub(super) stored_bytes: u32,
    pub(super) entries: u32,
    pub(super) crc: u32,
}

impl BlockHandle {
    /// Opens the block whose stored bytes are `stored`. What is behind it in `source` begins
    /// with `behind`, if anything is.
    pub(super) fn open(
        self,
        source: Option<&SegmentSource>,
        stored: &[u8],
        behind: Option<&[u8]>,
    ) -> Result<BlockEntries> {
        let place = BlockPlace {
            source: source.cloned(),
            offset: self.offset,
            first_key: self.first_key,
            behind: behind.map(Box::from),
        };
        let got = crc32fast::hash(stored);
        if got != self.crc {
            return Err(place.error(checksum("a block's checksum differs", self.crc, got)));
        }
        BlockEntries::open(stored, self.entries, place)
    }
}

pub(super) fn encode_index(blocks: &[BlockHandle]) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    out.count(blocks.len())?;
    for block in blocks {
        out.blob(&block.first_key)?;
        out.u64(block.offset);
        out.u32(block.stored_bytes);
        out.u32(block.entries);
        out.u32(block.crc);
    }
    Ok(out.finish())
}

/// Reads index and filter of `region`, whose blocks begin at `start` of the segment.
pub(super) fn decode_region<'a>(
    region: &Region,
    start: u64,
    bytes: &'a [u8],
) -> Result<(Vec<BlockHandle>, &'a [u8])> {
    let got = crc32fast::hash(bytes);
    if got != region.crc {
        return Err(checksum(
            "a region's index or filter has another checksum",
            region.crc,
            got,
        )
        .with("offset", region.offset));
    }
    let (index, filter) = bytes
        .split_at_checked(region.index_bytes as usize)
        .ok_or_else(|| Error::new(ErrorKind::Corrupt, "a region is shorter than its index"))?;
    let mut fields = Reader::new("region index", index, region.offset);
    let blocks = fields.list(HANDLE_BYTES, |fields| {
        Ok(BlockHandle {
            first_key: fields.blob(ENTRY_KEY_BYTES_MAX)?.into(),
            offset: fields.u64()?,
            stored_bytes: fields.u32()?,
            entries: fields.u32()?,
            crc: fields.u32()?,
        })
    })?;
    fields.end()?;
    let mut at = start;
    for block in &blocks {
        if block.offset != at {
            return Err(fields
                .corrupt("the blocks of a region do not follow each other")
                .expected_got(at, block.offset));
        }
        at = at.saturating_add(u64::from(block.stored_bytes));
    }
    if at != region.offset {
        return Err(fields
            .corrupt("the blocks of a region do not end at its index")
            .expected_got(region.offset, at));
    }
    let keys = std::iter::once(&region.first_key).chain(blocks.iter().map(|b| &b.first_key));
    if !keys.is_sorted() {
        return Err(fields.corrupt("the blocks of a region are not in the order of their keys"));
    }
    Ok((blocks, filter))
}

fn checksum(message: &'static str, expected: u32, got: u32) -> Error {
    Error::new(ErrorKind::Corrupt, message).expected_got(
        format_args!("{expected:#010x}"),
        format_args!("{got:#010x}"),
    )
}

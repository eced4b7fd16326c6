//! Reading what a segment says of one key and namespace, without reading more of it.

use std::sync::Arc;

use bytes::Bytes;

use crate::entry::{EntryKey, Op};
use crate::error::Result;
use crate::segment::block_entries::BlockEntries;
use crate::segment::filter::{filter_hash, may_contain};
use crate::segment::footer::HEADER_BYTES;
use crate::segment::key_encoding::encode_entry_key;
use crate::segment::meta::{Region, SegmentMeta};
use crate::segment::reader::Found;
use crate::segment::region::{BlockHandle, decode_region};
use crate::segment::source::SegmentSource;

/// What a segment says of one sub-key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Nothing: older segments count.
    Nothing,
    /// Its key and namespace were cleared: older segments do not count.
    Cleared,
    /// A put or delete.
    Found(Found),
}

/// Looks keys up in one segment.
#[derive(Clone, Debug)]
pub(crate) struct SegmentLookup {
    meta: Arc<SegmentMeta>,
    source: SegmentSource,
}

/// A region's index, with what was asked of its filter.
struct Opened {
    region: usize,
    blocks: Vec<BlockHandle>,
    may_hold: bool,
}

impl SegmentLookup {
    /// Reads the segment behind `source`, which `meta` describes.
    pub(crate) fn new(meta: Arc<SegmentMeta>, source: SegmentSource) -> Self {
        Self { meta, source }
    }

    /// What the segment says of `key`: two reads, one if the filter knows better, none if no
    /// region can hold it. Only for a sub-key that is not found in a segment with prefix deletes
    /// there may be more: one or two where its map begins in another block.
    ///
    /// # Errors
    /// Those of the store; [`crate::ErrorKind::Corrupt`] names the object and the place.
    pub(crate) async fn get(&self, key: &EntryKey<'_>) -> Result<Sight> {
        let mut wanted = Vec::new();
        let prefix_bytes = encode_entry_key(key, &mut wanted);
        let Some(region) = self.region_of(&wanted) else {
            return Ok(Sight::Nothing);
        };
        let hash = filter_hash(&wanted[..prefix_bytes]);
        let opened = self.open_region(region, hash).await?;
        let block = block_of(&opened, &wanted);
        if let Some(block) = block {
            let handle = &opened.blocks[block];
            match self.scan(handle, &wanted, prefix_bytes).await? {
                (_, Some(found)) => return Ok(Sight::Found(found)),
                (true, None) => return Ok(Sight::Cleared),
                (false, None) => {}
            }
        }
        let prefix = &wanted[..prefix_bytes];
        if self.meta.delete_prefixes == 0 || prefix.len() == wanted.len() {
            return Ok(Sight::Nothing);
        }
        self.look_for_clear(prefix, opened, block).await
    }

    /// Whether the segment has a prefix delete of `prefix`. It sorts before all sub-keys, perhaps
    /// in a block or region before `opened`, of which block `seen` was looked at.
    async fn look_for_clear(
        &self,
        prefix: &[u8],
        mut opened: Opened,
        mut seen: Option<usize>,
    ) -> Result<Sight> {
        let regions = &self.meta.regions;
        let first = regions.partition_point(|r| *r.first_key < *prefix);
        let may_clear = regions.iter().enumerate().skip(first.saturating_sub(1));
        for (region, _) in may_clear.take_while(|(_, r)| *r.first_key <= *prefix) {
            if opened.region != region {
                opened = self.open_region(region, filter_hash(prefix)).await?;
                seen = None;
            }
            for block in blocks_from(&opened, prefix) {
                let handle = &opened.blocks[block];
                if *handle.first_key > *prefix {
                    break;
                }
                if seen != Some(block) && self.scan(handle, prefix, prefix.len()).await?.0 {
                    return Ok(Sight::Cleared);
                }
            }
        }
        Ok(Sight::Nothing)
    }

    /// Whether a block clears the key and namespace of `wanted`, and its put or delete.
    async fn scan(
        &self,
        handle: &BlockHandle,
        wanted: &[u8],
        prefix_bytes: usize,
    ) -> Result<(bool, Option<Found>)> {
        let bad = |e| self.source.place_error(e);
        let mut entries = self.open_block(handle).await?;
        let mut is_cleared = false;
        while entries.advance().map_err(bad)? {
            let found = entries.current();
            if found.key > wanted {
                break;
            }
            if found.op == Op::DeletePrefix {
                is_cleared |= found.key == &wanted[..prefix_bytes];
            } else if found.key == wanted {
                let found = Found {
                    op: found.op,
                    schema: found.schema,
                    expires_ms: found.expires_ms,
                    value: Bytes::copy_from_slice(found.value),
                };
                return Ok((is_cleared, Some(found)));
            }
        }
        Ok((is_cleared, None))
    }

    /// The last region that begins at or before `key`.
    fn region_of(&self, key: &[u8]) -> Option<usize> {
        let behind = self.meta.regions.partition_point(|r| *r.first_key <= *key);
        behind.checked_sub(1)
    }

    async fn open_region(&self, index: usize, hash: u64) -> Result<Opened> {
        let region = &self.meta.regions[index];
        let before = index
            .checked_sub(1)
            .map(|before| &self.meta.regions[before]);
        let start = before.and_then(Region::end).unwrap_or(HEADER_BYTES as u64);
        let end = region.end().unwrap_or(u64::MAX);
        let bytes = self.source.read(region.offset..end).await?;
        let (blocks, filter) =
            decode_region(region, start, &bytes).map_err(|e| self.source.place_error(e))?;
        Ok(Opened {
            region: index,
            blocks,
            may_hold: may_contain(filter, hash),
        })
    }

    async fn open_block(&self, handle: &BlockHandle) -> Result<BlockEntries> {
        let end = handle.offset.saturating_add(u64::from(handle.stored_bytes));
        let stored = self.source.read(handle.offset..end).await?;
        handle.clone().open(Some(&self.source), &stored, None)
    }

    /// The blocks that may hold entries which begin with `prefix`, in order.
    pub(crate) fn blocks_of(self, prefix: Vec<u8>) -> PrefixBlocks {
        let regions = &self.meta.regions;
        let first = regions.partition_point(|r| *r.first_key < *prefix);
        PrefixBlocks {
            region: first.saturating_sub(1),
            lookup: self,
            prefix,
            opened: None,
        }
    }
}

/// The last block that begins at or before `key`, unless the filter excludes it.
fn block_of(opened: &Opened, key: &[u8]) -> Option<usize> {
    if !opened.may_hold {
        return None;
    }
    let behind = opened.blocks.partition_point(|b| *b.first_key <= *key);
    behind.checked_sub(1)
}

/// The blocks of a region from the first one on that may hold `prefix`; none if the filter
/// excludes it. A prefix delete may end one block and its key go on in the next, so the first one
/// is that which begins before `prefix`.
fn blocks_from(opened: &Opened, prefix: &[u8]) -> std::ops::Range<usize> {
    let count = opened.blocks.len();
    if !opened.may_hold {
        return count..count;
    }
    let first = opened.blocks.partition_point(|b| *b.first_key < *prefix);
    first.saturating_sub(1)..count
}

/// The blocks of a segment that may hold one key and namespace, one read each, behind one for
/// each region.
pub(crate) struct PrefixBlocks {
    lookup: SegmentLookup,
    prefix: Vec<u8>,
    /// The region to open next.
    region: usize,
    /// The blocks that are still to come, last one first.
    opened: Option<Vec<BlockHandle>>,
}

impl PrefixBlocks {
    /// The next block; `None` at the end. Its other entries are not left out.
    ///
    /// # Errors
    /// Those of the store; [`crate::ErrorKind::Corrupt`] names the object and the place.
    pub(crate) async fn next_block(&mut self) -> Result<Option<BlockEntries>> {
        loop {
            if let Some(handle) = self.opened.as_mut().and_then(Vec::pop) {
                return self.lookup.open_block(&handle).await.map(Some);
            }
            let regions = &self.lookup.meta.regions;
            let Some(region) = regions.get(self.region) else {
                return Ok(None);
            };
            if is_behind(&region.first_key, &self.prefix) {
                return Ok(None);
            }
            let hash = filter_hash(&self.prefix);
            let opened = self.lookup.open_region(self.region, hash).await?;
            self.region = opened.region + 1;
            let wanted = blocks_from(&opened, &self.prefix);
            let mut blocks = opened.blocks;
            blocks.drain(..wanted.start);
            blocks.retain(|block| !is_behind(&block.first_key, &self.prefix));
            blocks.reverse();
            self.opened = Some(blocks);
        }
    }

    /// Adds to an error which segment it is about.
    pub(crate) fn place_error(&self, e: crate::error::Error) -> crate::error::Error {
        self.lookup.source.place_error(e)
    }
}

/// Whether `key` lies behind all that begin with `prefix`.
fn is_behind(key: &[u8], prefix: &[u8]) -> bool {
    key > prefix && !key.starts_with(prefix)
}

//! Reading single keys of a segment: one read for index and filter, one for the block.

use std::sync::Arc;

use bytes::Bytes;

use crate::entry::{EntryKey, Op, SchemaTag};
use crate::error::Result;
use crate::segment::filter::{filter_hash, may_contain};
use crate::segment::footer::HEADER_BYTES;
use crate::segment::key_encoding::encode_entry_key;
use crate::segment::meta::SegmentMeta;
use crate::segment::region::decode_region;
use crate::segment::source::SegmentSource;

/// Reads single keys.
#[derive(Clone, Debug)]
pub struct SegmentReader {
    meta: Arc<SegmentMeta>,
    source: SegmentSource,
}

/// What a segment says of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it does; never [`Op::DeletePrefix`].
    pub op: Op,
    /// The schema that the value was written under.
    pub schema: SchemaTag,
    /// When the value expires, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
    /// The value; empty for a delete.
    pub value: Bytes,
}

impl SegmentReader {
    /// Reads the segment behind `source`, which `meta` describes.
    pub fn new(meta: Arc<SegmentMeta>, source: SegmentSource) -> Self {
        Self { meta, source }
    }

    /// The put or delete of `key`, if the segment has one. At most two reads; none if no region
    /// can hold it.
    ///
    /// # Errors
    /// Those of the store; [`crate::ErrorKind::Corrupt`] names the object and the place.
    pub async fn get(&self, key: &EntryKey<'_>) -> Result<Option<Found>> {
        let mut wanted = Vec::new();
        let prefix_bytes = encode_entry_key(key, &mut wanted);
        let regions = &self.meta.regions;
        let behind = regions.partition_point(|region| *region.first_key <= *wanted);
        let Some(index) = behind.checked_sub(1) else {
            return Ok(None);
        };
        let region = &regions[index];
        let before = index
            .checked_sub(1)
            .and_then(|before| regions[before].end());
        let start = before.unwrap_or(HEADER_BYTES as u64);
        let end = region.end().unwrap_or(u64::MAX);
        let bytes = self.source.read(region.offset..end).await?;
        let bad = |e| self.source.place_error(e);
        let (mut blocks, filter) = decode_region(region, start, &bytes).map_err(bad)?;
        if !may_contain(filter, filter_hash(&wanted[..prefix_bytes])) {
            return Ok(None);
        }
        let behind = blocks.partition_point(|block| *block.first_key <= *wanted);
        let next_region = regions.get(index + 1).map(|next| &*next.first_key);
        let next_key = blocks.get(behind).map(|next| next.first_key.clone());
        blocks.truncate(behind);
        let Some(handle) = blocks.pop() else {
            return Ok(None);
        };
        let block_end = handle.offset + u64::from(handle.stored_bytes);
        let stored = self.source.read(handle.offset..block_end).await?;
        let mut entries = handle.open(
            Some(&self.source),
            &stored,
            next_key.as_deref().or(next_region),
        )?;
        while entries.advance()? {
            let found = entries.current();
            if found.key > &wanted[..] {
                break;
            }
            if found.key == wanted && found.op != Op::DeletePrefix {
                return Ok(Some(Found {
                    op: found.op,
                    schema: found.schema,
                    expires_ms: found.expires_ms,
                    value: Bytes::copy_from_slice(found.value),
                }));
            }
        }
        Ok(None)
    }
}

//! Reading a segment in order: all of it, or a span of keys and shards, region by region.

use std::sync::Arc;

use bytes::Bytes;

use crate::chain::KeySpan;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Digest;
use crate::segment::block_entries::BlockEntries;
use crate::segment::footer::HEADER_BYTES;
use crate::segment::meta::{Region, SegmentMeta};
use crate::segment::region::{BlockHandle, decode_region};
use crate::segment::source::SegmentSource;

/// The blocks of a segment in the order of their keys. Blocks outside of the span and of the
/// shards are left out as far as the index tells; the entries of the others are not filtered.
///
/// One read fetches a region with its blocks, and the next one is fetched meanwhile. It has to
/// be polled on a tokio runtime.
#[derive(Debug)]
pub struct SegmentStream {
    meta: Arc<SegmentMeta>,
    source: SegmentSource,
    span: KeySpan,
    shards: (u8, u8),
    /// The next region to hand out.
    region: usize,
    ahead: Option<Ahead>,
    /// The blocks of the current region that are still to come, last one first.
    blocks: Vec<BlockHandle>,
    /// The bytes of the current region, and where they begin in the segment.
    bytes: (Bytes, u64),
    /// The digest so far, as long as everything is read.
    digest: Option<blake3::Hasher>,
}

#[derive(Debug)]
struct Ahead {
    region: usize,
    task: tokio::task::JoinHandle<Result<Bytes>>,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SegmentStream {
    /// Reads the segment behind `source`, which `meta` describes.
    pub fn new(
        meta: Arc<SegmentMeta>,
        source: SegmentSource,
        span: KeySpan,
        shards: (u8, u8),
    ) -> Self {
        let (low, high) = meta.shards;
        let reads_all = span == KeySpan::default() && shards.0 <= low && high <= shards.1;
        Self {
            meta,
            source,
            span,
            shards,
            region: 0,
            ahead: None,
            blocks: Vec::new(),
            bytes: (Bytes::new(), 0),
            digest: reads_all.then(blake3::Hasher::new),
        }
    }

    /// The next block; `None` at the end.
    ///
    /// # Errors
    /// Those of the store; [`ErrorKind::Corrupt`] names the object and the place. When all of
    /// the segment is read, its digest is compared at the end.
    pub async fn next_block(&mut self) -> Result<Option<BlockEntries>> {
        loop {
            if let Some(handle) = self.blocks.pop() {
                let (bytes, start) = &self.bytes;
                let at = (handle.offset - start) as usize;
                let stored = &bytes[at..at + handle.stored_bytes as usize];
                let in_region = self.blocks.last().map(|next| &*next.first_key);
                let next_region = self.meta.regions.get(self.region);
                let behind = in_region.or(next_region.map(|next| &*next.first_key));
                return handle.open(Some(&self.source), stored, behind).map(Some);
            }
            let Some(region) = self.next_region() else {
                return self.finish().await.map(|()| None);
            };
            let bytes = self.fetch(region).await?;
            self.open_region(region, bytes)?;
        }
    }

    /// The next region that may hold something of what is read.
    fn next_region(&mut self) -> Option<usize> {
        let region = (self.region..self.meta.regions.len()).find(|index| self.wants(*index))?;
        self.region = region + 1;
        Some(region)
    }

    fn wants(&self, region: usize) -> bool {
        let first_key = |index: usize| self.meta.regions.get(index).map(|r| &*r.first_key);
        let first = first_key(region).unwrap_or_default();
        may_hold(first, first_key(region + 1), &self.span, self.shards)
    }

    /// The range of a region with its blocks; the first one has the header before it, and the
    /// last one the footer behind it if all is read.
    fn range_of(&self, region: usize) -> (u64, u64, u64) {
        let regions = &self.meta.regions;
        let before = region
            .checked_sub(1)
            .and_then(|before| regions[before].end());
        let blocks_start = before.unwrap_or(HEADER_BYTES as u64);
        let start = if region == 0 { 0 } else { blocks_start };
        let end = if region + 1 == regions.len() && self.digest.is_some() {
            self.meta.bytes
        } else {
            regions[region].end().unwrap_or(u64::MAX)
        };
        (start, blocks_start, end)
    }

    async fn fetch(&mut self, region: usize) -> Result<Bytes> {
        let ahead = self.ahead.take_if(|ahead| ahead.region == region);
        let bytes = if let Some(mut ahead) = ahead {
            (&mut ahead.task).await.map_err(|e| {
                Error::new(ErrorKind::Cancelled, "a read was cancelled").because(e)
            })??
        } else {
            let (start, _, end) = self.range_of(region);
            self.source.read(start..end).await?
        };
        let next = (self.region..self.meta.regions.len()).find(|index| self.wants(*index));
        if let Some(next) = next {
            let (start, _, end) = self.range_of(next);
            let source = self.source.clone();
            let task = tokio::spawn(async move { source.read(start..end).await });
            self.ahead = Some(Ahead { region: next, task });
        }
        Ok(bytes)
    }

    fn open_region(&mut self, index: usize, bytes: Bytes) -> Result<()> {
        let (start, blocks_start, _) = self.range_of(index);
        if let Some(digest) = &mut self.digest {
            digest.update(&bytes);
        }
        let region = &self.meta.regions[index];
        let bad = |e: Error| self.source.place_error(e);
        let end = region.end().unwrap_or(u64::MAX);
        let piece = (region.offset.checked_sub(start))
            .zip(end.checked_sub(start))
            .and_then(|(from, to)| bytes.get(from as usize..to as usize));
        let piece = piece.ok_or_else(|| {
            bad(
                Error::new(ErrorKind::Corrupt, "a region lies outside of its segment")
                    .with("offset", region.offset),
            )
        })?;
        let (mut blocks, _) = decode_region(region, blocks_start, piece).map_err(bad)?;
        let firsts: Vec<Box<[u8]>> = blocks.iter().map(|block| block.first_key.clone()).collect();
        let behind = self
            .meta
            .regions
            .get(index + 1)
            .map(|next| &*next.first_key);
        let mut at = 0;
        blocks.retain(|block| {
            at += 1;
            let next = firsts.get(at).map(|key| &**key).or(behind);
            may_hold(&block.first_key, next, &self.span, self.shards)
        });
        blocks.reverse();
        self.blocks = blocks;
        self.bytes = (bytes, start);
        Ok(())
    }

    async fn finish(&mut self) -> Result<()> {
        let Some(mut digest) = self.digest.take() else {
            return Ok(());
        };
        if self.meta.regions.is_empty() {
            digest.update(&self.source.read(0..self.meta.bytes).await?);
        }
        let got = Digest(*digest.finalize().as_bytes());
        if got == self.meta.digest {
            return Ok(());
        }
        let footer = self.meta.regions.last().and_then(Region::end).unwrap_or(0);
        Err(self.source.place_error(
            Error::new(
                ErrorKind::Corrupt,
                "a segment's header or footer is damaged: its digest differs from its manifest's",
            )
            // Blocks, indexes and filters have proven themselves by their checksums.
            .with("offset", format_args!("0..{HEADER_BYTES} or {footer}.."))
            .expected_got(self.meta.digest, got),
        ))
    }
}

/// Whether entries from `first` up to `next` may lie in `span` and in `shards`.
fn may_hold(first: &[u8], next: Option<&[u8]>, span: &KeySpan, shards: (u8, u8)) -> bool {
    if span.end.as_deref().is_some_and(|end| first >= end) {
        return false;
    }
    if let (Some(start), Some(next)) = (span.start.as_deref(), next)
        && next < start
    {
        return false;
    }
    // An encoded key begins with four bytes of state and one of shard.
    let (Some(first), Some(next)) = (first.first_chunk::<5>(), next.and_then(|n| n.first_chunk()))
    else {
        return true;
    };
    let next: &[u8; 5] = next;
    first[..4] != next[..4] || (next[4] >= shards.0 && first[4] <= shards.1)
}

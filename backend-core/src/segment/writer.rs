//! Writing segments from a sorted stream of entries.

use bytes::Bytes;

use crate::entry::{Entry, Op};
use crate::error::{Error, ErrorKind, Result};
use crate::generation::Generation;
use crate::ids::{Digest, UniqueId};
use crate::segment::block::BlockBuilder;
use crate::segment::filter::{build_filter, filter_hash};
use crate::segment::footer::{HEADER_BYTES, encode_footer, encode_header};
use crate::segment::key_encoding::encode_entry_key;
use crate::segment::meta::{Region, SegmentLocation, SegmentMeta};
use crate::segment::options::SegmentOptions;
use crate::segment::region::{BlockHandle, encode_index};

/// The stored bytes that a delete is charged with before there is an average to go by.
const ENTRY_BYTES_GUESS: u64 = 16;

/// Writes one segment.
pub struct SegmentWriter {
    options: SegmentOptions,
    unique: UniqueId,
    block: BlockBuilder,
    out: Vec<u8>,
    /// The finished blocks of the region that is being written.
    blocks: Vec<BlockHandle>,
    /// The filter hashes of that region.
    hashes: Vec<u64>,
    regions: Vec<Region>,
    key: Vec<u8>,
    last_key: Vec<u8>,
    last_op: Op,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    puts: u64,
    deletes: u64,
    /// Deletes for which nobody said what they hide.
    deletes_unknown: u64,
    delete_prefixes: u64,
    hidden_raw_bytes: u64,
    raw_bytes: u64,
    shards: Option<(u8, u8)>,
    expires_ms_min: Option<u64>,
}

/// A finished segment: its bytes, its unique id, and what a manifest says of it. The location
/// is for the caller to fill in.
#[derive(Debug)]
pub struct FinishedSegment {
    /// All bytes.
    pub bytes: Bytes,
    /// The id in its header, which belongs into its name.
    pub unique: UniqueId,
    /// The rest of what a manifest says.
    pub meta: SegmentMeta,
}

impl SegmentWriter {
    /// An empty segment with `unique` in its header.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for options out of bounds.
    pub fn new(options: SegmentOptions, unique: UniqueId) -> Result<Self> {
        options.validate()?;
        Ok(Self {
            block: BlockBuilder::new(options.compression_level)?,
            options,
            unique,
            out: encode_header(unique),
            blocks: Vec::new(),
            hashes: Vec::new(),
            regions: Vec::new(),
            key: Vec::new(),
            last_key: Vec::new(),
            last_op: Op::Put,
            counts: Counts::default(),
        })
    }

    /// Adds an entry, which must come behind the last one. `hidden_bytes` is an estimate of the
    /// raw bytes of older entries that a delete hides; 0 if it is not known.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the entry is out of order.
    #[inline]
    pub fn push(&mut self, entry: &Entry<'_>, hidden_bytes: u64) -> Result<()> {
        self.key.clear();
        let prefix_bytes = encode_entry_key(&entry.key, &mut self.key);
        let repeats_prefix = self.last_key.get(..prefix_bytes) == Some(&self.key[..prefix_bytes]);
        let follows = match self.last_key.cmp(&self.key) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => {
                self.last_op == Op::DeletePrefix && entry.op != Op::DeletePrefix
            }
            std::cmp::Ordering::Greater => false,
        };
        if !follows && self.counts.shards.is_some() {
            return Err(Error::new(ErrorKind::Invalid, "entries come out of order")
                .with("last", self.last_key.escape_ascii())
                .with("next", self.key.escape_ascii()));
        }
        let is_large = entry.value.len() >= self.options.block_bytes_target as usize;
        if is_large && !self.block.is_empty() {
            self.finish_block()?;
        }
        self.block.push(&self.key, entry);
        self.counts.add(entry, hidden_bytes, self.key.len());
        if self.options.filter_bits_per_key > 0 && (!repeats_prefix || self.hashes.is_empty()) {
            self.hashes.push(filter_hash(&self.key[..prefix_bytes]));
        }
        std::mem::swap(&mut self.key, &mut self.last_key);
        self.last_op = entry.op;
        if self.block.raw_bytes() >= self.options.block_bytes_target as usize {
            self.finish_block()?;
        }
        Ok(())
    }

    /// The bytes so far, without those of the block and the region that are not finished.
    pub fn bytes_so_far(&self) -> u64 {
        self.out.len() as u64
    }

    /// Whether nothing has been added.
    pub fn is_empty(&self) -> bool {
        self.counts.shards.is_none()
    }

    fn finish_block(&mut self) -> Result<()> {
        let offset = self.out.len();
        let stored = self.block.finish(&mut self.out)?;
        let bytes = &self.out[offset..];
        self.blocks.push(BlockHandle {
            first_key: stored.first_key.into(),
            offset: offset as u64,
            stored_bytes: bytes.len() as u32,
            entries: stored.entries,
            crc: crc32fast::hash(bytes),
        });
        // A prefix delete and an entry behind it may have one key, and regions begin with different
        // ones.
        let is_lone_clear =
            self.last_op == Op::DeletePrefix && self.blocks[0].first_key[..] == self.last_key[..];
        if self.blocks.len() >= self.options.region_blocks as usize && !is_lone_clear {
            self.finish_region()?;
        }
        Ok(())
    }

    fn finish_region(&mut self) -> Result<()> {
        let index = encode_index(&self.blocks)?;
        let filter = build_filter(&self.hashes, self.options.filter_bits_per_key);
        let offset = self.out.len();
        self.out.extend_from_slice(&index);
        self.out.extend_from_slice(&filter);
        self.regions.push(Region {
            first_key: self.blocks[0].first_key.clone(),
            offset: offset as u64,
            index_bytes: index.len() as u32,
            filter_bytes: filter.len() as u32,
            crc: crc32fast::hash(&self.out[offset..]),
        });
        self.blocks.clear();
        self.hashes.clear();
        Ok(())
    }

    /// Ends the segment, whose entries come from `generations`.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if it is empty.
    pub fn finish(mut self, generations: (Generation, Generation)) -> Result<FinishedSegment> {
        if !self.block.is_empty() {
            self.finish_block()?;
        }
        if !self.blocks.is_empty() {
            self.finish_region()?;
        }
        let Some(shards) = self.counts.shards else {
            return Err(Error::new(
                ErrorKind::Invalid,
                "a segment has at least one entry",
            ));
        };
        let stored_bytes = (self.out.len() - HEADER_BYTES) as u64;
        let mut meta = SegmentMeta {
            location: SegmentLocation::Inline(Bytes::new()),
            bytes: 0,
            digest: Digest([0; 32]),
            puts: self.counts.puts,
            deletes: self.counts.deletes,
            delete_prefixes: self.counts.delete_prefixes,
            shadowed_bytes: self.counts.shadowed_bytes(stored_bytes),
            generations,
            shards,
            expires_ms_min: self.counts.expires_ms_min,
            regions: std::mem::take(&mut self.regions),
        };
        encode_footer(&meta, &mut self.out)?;
        meta.bytes = self.out.len() as u64;
        meta.digest = Digest::of(&self.out);
        Ok(FinishedSegment {
            bytes: self.out.into(),
            unique: self.unique,
            meta,
        })
    }
}

impl Counts {
    #[inline]
    fn add(&mut self, entry: &Entry<'_>, hidden_bytes: u64, key_bytes: usize) {
        match entry.op {
            Op::Put => self.puts += 1,
            Op::Delete => self.deletes += 1,
            Op::DeletePrefix => self.delete_prefixes += 1,
        }
        if entry.op != Op::Put {
            self.deletes_unknown += u64::from(hidden_bytes == 0);
            self.hidden_raw_bytes += hidden_bytes;
        }
        self.raw_bytes += (key_bytes + entry.value.len()) as u64;
        let shard = entry.key.shard;
        self.shards = Some(match self.shards {
            None => (shard, shard),
            Some((low, high)) => (low.min(shard), high.max(shard)),
        });
        if let Some(expiry) = entry.expires_ms {
            self.expires_ms_min = Some(self.expires_ms_min.map_or(expiry, |min| min.min(expiry)));
        }
    }

    /// What the deletes hide, in stored bytes: an average put for each of which nothing is
    /// known, and the rest scaled by how well this segment compressed.
    fn shadowed_bytes(&self, stored_bytes: u64) -> u64 {
        let entry_bytes = stored_bytes
            .checked_div(self.puts)
            .unwrap_or(ENTRY_BYTES_GUESS);
        let entry_bytes = entry_bytes.min(4 * ENTRY_BYTES_GUESS);
        let raw = u128::from(self.raw_bytes.max(1));
        let scaled = u128::from(self.hidden_raw_bytes) * u128::from(stored_bytes) / raw;
        let known = u64::try_from(scaled)
            .unwrap_or(u64::MAX)
            .min(self.hidden_raw_bytes);
        self.deletes_unknown * entry_bytes + known
    }
}

/// Takes finished segments.
pub type FinishedSink<'a> = dyn FnMut(FinishedSegment) -> Result<()> + 'a;

/// Writes a sorted stream into as many segments as it needs; one is in memory at a time.
pub struct SegmentSplitter<'a> {
    options: SegmentOptions,
    generations: (Generation, Generation),
    unique: Box<dyn FnMut() -> UniqueId + 'a>,
    finished: &'a mut FinishedSink<'a>,
    writer: Option<SegmentWriter>,
}

impl<'a> SegmentSplitter<'a> {
    /// Segments with ids from `unique` go to `finished`, in order.
    pub fn new(
        options: SegmentOptions,
        generations: (Generation, Generation),
        unique: impl FnMut() -> UniqueId + 'a,
        finished: &'a mut FinishedSink<'a>,
    ) -> Self {
        Self {
            options,
            generations,
            unique: Box::new(unique),
            finished,
            writer: None,
        }
    }

    /// Adds an entry; see [`SegmentWriter::push`]. A key and its namespace may span segments.
    ///
    /// # Errors
    /// As [`SegmentWriter::push`], and those of the sink.
    #[inline]
    pub fn push(&mut self, entry: &Entry<'_>, hidden_bytes: u64) -> Result<()> {
        let writer = if let Some(writer) = &mut self.writer {
            writer
        } else {
            let unique = (self.unique)();
            self.writer
                .insert(SegmentWriter::new(self.options.clone(), unique)?)
        };
        writer.push(entry, hidden_bytes)?;
        if writer.bytes_so_far() >= self.options.segment_bytes_target {
            self.finish_segment()?;
        }
        Ok(())
    }

    /// Ends the last segment, if there is one.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn finish(mut self) -> Result<()> {
        self.finish_segment()
    }

    fn finish_segment(&mut self) -> Result<()> {
        match self.writer.take() {
            Some(writer) => (self.finished)(writer.finish(self.generations)?),
            None => Ok(()),
        }
    }
}

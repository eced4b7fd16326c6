//! Checking every byte of a segment, piece by piece, against what a manifest says of it.

use std::ops::Range;
use std::sync::Arc;

use crate::entry::Op;
use crate::error::{Error, ErrorKind};
use crate::hash::KeyHasher;
use crate::ids::Digest;
use crate::range::shard_of;
use crate::segment::block_entries::RawEntry;
use crate::segment::filter::{FILTER_BLOCK_BYTES, filter_hash, may_contain};
use crate::segment::footer::{HEADER_BYTES, check_footer, check_header};
use crate::segment::key_encoding::decode_entry_key;
use crate::segment::meta::SegmentMeta;
use crate::segment::region::{BlockHandle, decode_region};

/// What part of a segment is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlawKind {
    Foreign,
    Header,
    Index,
    Filter,
    Block,
    Order,
    Shard,
    Counts,
    Footer,
    Digest,
}

/// The first thing that is wrong with a segment.
#[derive(Debug)]
pub(crate) struct Flaw {
    pub(crate) kind: FlawKind,
    pub(crate) error: Error,
}

/// Checks one segment. It asks for its bytes from front to back, a region at a time, and keeps
/// none of them.
#[derive(Debug)]
pub(crate) struct SegmentCheck {
    meta: Arc<SegmentMeta>,
    /// `None` if nobody knows the hash function, so that shards cannot be checked.
    hasher: Option<KeyHasher>,
    digest: blake3::Hasher,
    /// The piece that comes next: a region, then the footer.
    piece: usize,
    at: u64,
    is_done: bool,
    entries: EntryCheck,
}

/// What has been seen of the entries.
#[derive(Debug, Default)]
struct EntryCheck {
    last_key: Vec<u8>,
    last_prefix_bytes: usize,
    last_op: Option<Op>,
    puts: u64,
    deletes: u64,
    delete_prefixes: u64,
    shards: Option<(u8, u8)>,
    expires_ms_min: Option<u64>,
}

type Checked<T> = std::result::Result<T, Flaw>;

fn flaw(kind: FlawKind) -> impl Fn(Error) -> Flaw {
    move |error| Flaw { kind, error }
}

fn damaged(message: &'static str) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

impl SegmentCheck {
    /// Checks the segment that `meta` describes, whose keys are hashed by `hasher`.
    pub(crate) fn new(meta: Arc<SegmentMeta>, hasher: Option<KeyHasher>) -> Self {
        Self {
            meta,
            hasher,
            digest: blake3::Hasher::new(),
            piece: 0,
            at: 0,
            is_done: false,
            entries: EntryCheck::default(),
        }
    }

    /// Which bytes of the segment come next; `None` at the end.
    pub(crate) fn wants(&self) -> Checked<Option<Range<u64>>> {
        if self.is_done {
            return Ok(None);
        }
        let Some(region) = self.meta.regions.get(self.piece) else {
            return Ok(Some(self.at..self.meta.bytes));
        };
        let outside = || {
            let e = damaged("a region does not lie behind the one before it");
            flaw(FlawKind::Index)(e.with("offset", region.offset))
        };
        let start = self.at.max(HEADER_BYTES as u64);
        let end = region.end().filter(|end| *end <= self.meta.bytes);
        match end {
            Some(end) if region.offset >= start => Ok(Some(self.at..end)),
            _ => Err(outside()),
        }
    }

    /// Takes the bytes that [`SegmentCheck::wants`] asked for.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Checked<()> {
        self.digest.update(bytes);
        if self.at == 0 {
            check_header(&self.meta, bytes).map_err(|error| Flaw {
                kind: match error.kind() {
                    ErrorKind::Mismatch => FlawKind::Foreign,
                    _ => FlawKind::Header,
                },
                error,
            })?;
        }
        let start = self.at;
        self.at += bytes.len() as u64;
        if self.piece < self.meta.regions.len() {
            self.piece += 1;
            return self.take_region(self.piece - 1, start, bytes);
        }
        self.is_done = true;
        let footer_at = start.max(HEADER_BYTES as u64);
        let footer = bytes.get((footer_at - start) as usize..).unwrap_or(&[]);
        check_footer(&self.meta, footer, footer_at).map_err(flaw(FlawKind::Footer))?;
        self.entries
            .check_counts(&self.meta)
            .map_err(flaw(FlawKind::Counts))?;
        let got = Digest(*self.digest.finalize().as_bytes());
        if got == self.meta.digest {
            return Ok(());
        }
        let e = damaged("a segment's digest differs from its manifest's");
        Err(flaw(FlawKind::Digest)(
            e.expected_got(self.meta.digest, got),
        ))
    }

    fn take_region(&mut self, index: usize, start: u64, bytes: &[u8]) -> Checked<()> {
        let meta = Arc::clone(&self.meta);
        let region = &meta.regions[index];
        let blocks_start = start.max(HEADER_BYTES as u64);
        let piece = bytes
            .get((region.offset - start) as usize..)
            .ok_or_else(|| {
                flaw(FlawKind::Index)(damaged("a region lies outside of its segment"))
            })?;
        let (blocks, filter) =
            decode_region(region, blocks_start, piece).map_err(flaw(FlawKind::Index))?;
        if !filter.len().is_multiple_of(FILTER_BLOCK_BYTES) {
            let e =
                damaged("a filter does not consist of whole blocks").with("bytes", filter.len());
            return Err(flaw(FlawKind::Filter)(e.with("offset", region.offset)));
        }
        if *region.first_key < *self.entries.last_key {
            let e = damaged("a region begins before the end of the one before it");
            return Err(flaw(FlawKind::Order)(e.with("offset", region.offset)));
        }
        self.entries.last_prefix_bytes = usize::MAX;
        for (number, block) in blocks.iter().enumerate() {
            let from = (block.offset - start) as usize;
            let stored = &bytes[from..from + block.stored_bytes as usize];
            let least = if number == 0 { &*region.first_key } else { &[] };
            self.take_block(block, stored, least, filter)
                .map_err(|flaw| at_block(flaw, block))?;
        }
        Ok(())
    }

    /// The entries of a block, which are to be at or above `least`.
    fn take_block(
        &mut self,
        block: &BlockHandle,
        stored: &[u8],
        least: &[u8],
        filter: &[u8],
    ) -> Checked<()> {
        let opened = block.clone().open(None, stored, None);
        let mut entries = opened.map_err(flaw(FlawKind::Block))?;
        if *block.first_key < *self.entries.last_key || *block.first_key < *least {
            let e = damaged("a block begins before the end of what comes before it");
            return Err(flaw(FlawKind::Order)(e));
        }
        let mut is_first = true;
        while entries.advance().map_err(flaw(FlawKind::Block))? {
            let entry = entries.current();
            if is_first && *entry.key < *block.first_key {
                let e = damaged("a block's first key is below the one in its index");
                return Err(flaw(FlawKind::Order)(e));
            }
            is_first = false;
            self.entries.take(&entry, filter, self.hasher.as_ref())?;
        }
        Ok(())
    }
}

impl EntryCheck {
    fn take(
        &mut self,
        entry: &RawEntry<'_>,
        filter: &[u8],
        hasher: Option<&KeyHasher>,
    ) -> Checked<()> {
        let follows = match self.last_op {
            None => true,
            Some(last) if *self.last_key == *entry.key => {
                last == Op::DeletePrefix && entry.op != Op::DeletePrefix
            }
            Some(_) => *self.last_key < *entry.key,
        };
        let with_key = |e: Error| e.with("key", entry.key.escape_ascii());
        if !follows {
            let e = damaged("the entries of a segment are not in order");
            return Err(flaw(FlawKind::Order)(with_key(e)));
        }
        let Some((key, _)) = decode_entry_key(entry.key) else {
            return Err(flaw(FlawKind::Block)(damaged("a key is malformed")));
        };
        let prefix = &entry.key[..entry.prefix_bytes];
        let repeats = self.last_prefix_bytes == entry.prefix_bytes
            && self.last_key.get(..entry.prefix_bytes) == Some(prefix);
        if !repeats {
            if !may_contain(filter, filter_hash(prefix)) {
                let e = damaged("a region's filter excludes a key that the region holds");
                return Err(flaw(FlawKind::Filter)(with_key(e)));
            }
            if let Some(hasher) = hasher {
                let expected = shard_of(hasher.hash(key.owner()));
                if expected != key.shard {
                    let e = damaged("a key is filed under another shard than its hash says");
                    let e = with_key(e).with("hash", hasher.id());
                    return Err(flaw(FlawKind::Shard)(e.expected_got(expected, key.shard)));
                }
            }
        }
        match entry.op {
            Op::Put => self.puts += 1,
            Op::Delete => self.deletes += 1,
            Op::DeletePrefix => self.delete_prefixes += 1,
        }
        let (low, high) = self.shards.unwrap_or((key.shard, key.shard));
        self.shards = Some((low.min(key.shard), high.max(key.shard)));
        self.expires_ms_min = match (self.expires_ms_min, entry.expires_ms) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.last_key.clear();
        self.last_key.extend_from_slice(entry.key);
        self.last_prefix_bytes = entry.prefix_bytes;
        self.last_op = Some(entry.op);
        Ok(())
    }

    fn check_counts(&self, meta: &SegmentMeta) -> Result<(), Error> {
        let counts = [
            ("puts", meta.puts, self.puts),
            ("deletes", meta.deletes, self.deletes),
            ("prefix deletes", meta.delete_prefixes, self.delete_prefixes),
        ];
        let differs = |field: &'static str| {
            damaged("a segment holds something else than its manifest says").with("field", field)
        };
        for (field, expected, got) in counts {
            if expected != got {
                return Err(differs(field).expected_got(expected, got));
            }
        }
        if self.shards.is_some_and(|shards| shards != meta.shards) {
            let got = format!("{:?}", self.shards.unwrap_or_default());
            return Err(differs("shards").expected_got(format_args!("{:?}", meta.shards), got));
        }
        if self.expires_ms_min != meta.expires_ms_min {
            return Err(differs("earliest expiry").expected_got(
                format_args!("{:?}", meta.expires_ms_min),
                format_args!("{:?}", self.expires_ms_min),
            ));
        }
        Ok(())
    }
}

fn at_block(flaw: Flaw, block: &BlockHandle) -> Flaw {
    let error = match flaw.error.fact("block_offset") {
        Some(_) => flaw.error,
        None => flaw.error.with("block_offset", block.offset),
    };
    Flaw { error, ..flaw }
}

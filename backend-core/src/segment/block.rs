//! A block: some thousand entries in columns, compressed together.
//!
//! ```text
//! stored:  compression u8 (0 none, 1 zstd) | dictionary u8 (0) | reserved u16 | raw bytes u32 | payload
//!
//! raw:     flags u8 | schema u8 | reserved u16 | entries u32
//!          shared bytes u32 | rest-length bytes u32 | suffix bytes u32 | value width u32
//!          expiry base u64
//!          shared | rest lengths | suffixes | ops | schemas | expiries | value lengths | values
//! ```
//!
//! The first three columns are the encoded entry keys: how many bytes each shares with the one
//! before it (all that are equal), how many follow, and those bytes.

use crate::entry::{Entry, Op};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::VALUE_BYTES_MAX;
use crate::segment::shuffle::shuffle;
use crate::segment::varint::put_varint;

/// The bytes before the payload of a stored block.
pub(super) const STORED_HEADER_BYTES: usize = 8;
/// The bytes before the columns of a raw block.
pub(super) const RAW_HEADER_BYTES: usize = 32;
/// A raw block is at most this many times its payload, so that a reader's memory is bounded by
/// what it has read.
pub(super) const RAW_PER_STORED_MAX: usize = 1_024;
/// The largest raw block.
pub(super) const RAW_BYTES_MAX: usize = VALUE_BYTES_MAX + (1 << 20);

pub(super) const COMPRESSION_NONE: u8 = 0;
pub(super) const COMPRESSION_ZSTD: u8 = 1;

/// The ops differ: there is a column of them.
pub(super) const HAS_OPS: u8 = 1;
/// The schema tags differ: there is a column of them.
pub(super) const HAS_SCHEMAS: u8 = 2;
/// Some entry expires: there is a column of expiries.
pub(super) const HAS_EXPIRIES: u8 = 4;
/// The values have different lengths: there is a column of them.
pub(super) const HAS_LENGTHS: u8 = 8;
/// The values have one length, and are shuffled.
pub(super) const IS_SHUFFLED: u8 = 16;

/// Blocks after which the value layout is chosen anew.
const LAYOUT_BLOCKS: u32 = 16;
/// Widths for which shuffling is tried.
const SHUFFLE_WIDTH_MAX: usize = 64;

/// The byte that stands for an operation.
pub(super) const fn op_to_wire(op: Op) -> u8 {
    match op {
        Op::Put => 0,
        Op::Delete => 1,
        Op::DeletePrefix => 2,
    }
}

/// The operation that a byte stands for.
pub(super) const fn op_from_wire(byte: u8) -> Option<Op> {
    match byte {
        0 => Some(Op::Put),
        1 => Some(Op::Delete),
        2 => Some(Op::DeletePrefix),
        _ => None,
    }
}

/// Gathers the entries of one block after another.
pub(super) struct BlockBuilder {
    compressor: zstd::bulk::Compressor<'static>,
    shared: Vec<u8>,
    rests: Vec<u8>,
    suffixes: Vec<u8>,
    ops: Vec<u8>,
    schemas: Vec<u8>,
    expiries: Vec<Option<u64>>,
    value_lengths: Vec<u32>,
    values: Vec<u8>,
    last_key: Vec<u8>,
    first_key: Vec<u8>,
    raw: Vec<u8>,
    uses: Uses,
    shuffles: bool,
    blocks_until_choice: u32,
}

/// Which columns the entries so far need: the flags of the raw block.
#[derive(Clone, Copy, Debug, Default)]
struct Uses(u8);

impl Uses {
    #[inline]
    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    fn note(&mut self, flag: u8, is_needed: bool) {
        if is_needed {
            self.0 |= flag;
        }
    }
}

/// A block as it is stored.
pub(super) struct StoredBlock<'a> {
    /// The encoded key of its first entry.
    pub(super) first_key: &'a [u8],
    /// The number of its entries.
    pub(super) entries: u32,
}

impl BlockBuilder {
    pub(super) fn new(level: i32) -> Result<Self> {
        let compressor = zstd::bulk::Compressor::new(level).map_err(|e| {
            Error::new(
                ErrorKind::Invalid,
                "zstd does not take the compression level",
            )
            .with("compression_level", level)
            .because(e)
        })?;
        Ok(Self {
            compressor,
            shared: Vec::new(),
            rests: Vec::new(),
            suffixes: Vec::new(),
            ops: Vec::new(),
            schemas: Vec::new(),
            expiries: Vec::new(),
            value_lengths: Vec::new(),
            values: Vec::new(),
            last_key: Vec::new(),
            first_key: Vec::new(),
            raw: Vec::new(),
            uses: Uses::default(),
            shuffles: false,
            blocks_until_choice: 0,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// An estimate of the raw bytes so far.
    pub(super) fn raw_bytes(&self) -> usize {
        RAW_HEADER_BYTES + 4 * self.ops.len() + self.suffixes.len() + self.values.len()
    }

    /// Adds an entry whose encoded key is `key`.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8], entry: &Entry<'_>) {
        let is_first = self.ops.is_empty();
        if is_first {
            self.first_key.clear();
            self.first_key.extend_from_slice(key);
            self.last_key.clear();
        }
        let shared = shared_bytes(&self.last_key, key);
        put_varint(shared as u64, &mut self.shared);
        put_varint((key.len() - shared) as u64, &mut self.rests);
        self.suffixes.extend_from_slice(&key[shared..]);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        self.ops.push(op_to_wire(entry.op));
        let repeats = is_first || self.schemas.last() == Some(&entry.schema.0);
        self.uses.note(HAS_SCHEMAS, !repeats);
        self.schemas.push(entry.schema.0);
        self.uses.note(HAS_EXPIRIES, entry.expires_ms.is_some());
        if self.uses.has(HAS_EXPIRIES) {
            self.expiries.resize(self.ops.len() - 1, None);
            self.expiries.push(entry.expires_ms);
        }
        if entry.op == Op::Put {
            let length = entry.value.len() as u32;
            let is_other = self
                .value_lengths
                .last()
                .is_some_and(|last| *last != length);
            self.uses.note(HAS_LENGTHS, is_other);
            self.value_lengths.push(length);
            self.values.extend_from_slice(entry.value);
        } else {
            self.uses.note(HAS_OPS, true);
        }
    }

    /// Appends the block to `out` and begins the next one.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Result<StoredBlock<'_>> {
        let entries = self.ops.len() as u32;
        self.encode_raw();
        let start = out.len();
        self.store(out)?;
        debug_assert!(out.len() > start);
        for column in [
            &mut self.shared,
            &mut self.rests,
            &mut self.suffixes,
            &mut self.ops,
            &mut self.schemas,
            &mut self.values,
        ] {
            column.clear();
        }
        self.expiries.clear();
        self.value_lengths.clear();
        self.uses = Uses::default();
        Ok(StoredBlock {
            first_key: &self.first_key,
            entries,
        })
    }

    fn encode_raw(&mut self) {
        let width = self.value_lengths.first().copied().unwrap_or(0) as usize;
        let one_width = !self.uses.has(HAS_LENGTHS);
        let shuffles =
            one_width && (2..=SHUFFLE_WIDTH_MAX).contains(&width) && self.chooses_shuffling(width);
        let expiry_base = self.expiries.iter().flatten().min().copied().unwrap_or(0);
        let flags = self.uses.0 | if shuffles { IS_SHUFFLED } else { 0 };
        let one_schema = !self.uses.has(HAS_SCHEMAS);
        let schema = self
            .schemas
            .first()
            .copied()
            .filter(|_| one_schema)
            .unwrap_or(0);
        let raw = &mut self.raw;
        raw.clear();
        raw.extend_from_slice(&[flags, schema, 0, 0]);
        for field in [
            self.ops.len(),
            self.shared.len(),
            self.rests.len(),
            self.suffixes.len(),
            if one_width { width } else { 0 },
        ] {
            raw.extend_from_slice(&(field as u32).to_le_bytes());
        }
        raw.extend_from_slice(&expiry_base.to_le_bytes());
        debug_assert_eq!(raw.len(), RAW_HEADER_BYTES);
        raw.extend_from_slice(&self.shared);
        raw.extend_from_slice(&self.rests);
        raw.extend_from_slice(&self.suffixes);
        if self.uses.has(HAS_OPS) {
            raw.extend_from_slice(&self.ops);
        }
        if !one_schema {
            raw.extend_from_slice(&self.schemas);
        }
        if self.uses.has(HAS_EXPIRIES) {
            for expiry in &self.expiries {
                let delta = expiry.map_or(0, |ms| (ms - expiry_base).saturating_add(1));
                put_varint(delta, raw);
            }
        }
        if !one_width {
            self.value_lengths
                .iter()
                .for_each(|length| put_varint(u64::from(*length), raw));
        }
        if shuffles {
            shuffle(&self.values, width, raw);
        } else {
            raw.extend_from_slice(&self.values);
        }
    }

    /// Whether shuffled values are smaller, as tried on every so many blocks.
    fn chooses_shuffling(&mut self, width: usize) -> bool {
        if self.blocks_until_choice == 0 {
            self.blocks_until_choice = LAYOUT_BLOCKS;
            let sample = &self.values[..self.values.len().min(1_024 * width)];
            let mut shuffled = Vec::with_capacity(sample.len());
            shuffle(sample, width, &mut shuffled);
            let compressor = &mut self.compressor;
            let mut size =
                |bytes: &[u8]| compressor.compress(bytes).map_or(usize::MAX, |c| c.len());
            self.shuffles = size(&shuffled) < size(sample);
        }
        self.blocks_until_choice -= 1;
        self.shuffles
    }

    fn store(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let raw = &self.raw;
        let compressed = self.compressor.compress(raw).map_err(|e| {
            Error::new(ErrorKind::Invalid, "zstd failed to compress a block").because(e)
        })?;
        let is_smaller = compressed.len() < raw.len();
        let is_bounded = raw.len() <= compressed.len() * RAW_PER_STORED_MAX;
        let (compression, payload) = if is_smaller && is_bounded {
            (COMPRESSION_ZSTD, &compressed)
        } else {
            (COMPRESSION_NONE, raw)
        };
        out.extend_from_slice(&[compression, 0, 0, 0]);
        out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
        out.extend_from_slice(payload);
        Ok(())
    }
}

/// How many bytes two keys have in common at their front.
#[inline]
fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    let chunks = a.chunks_exact(8).zip(b.chunks_exact(8));
    let mut shared = 0;
    for (x, y) in chunks {
        let x = u64::from_le_bytes(x.try_into().expect("a chunk has 8 bytes"));
        let y = u64::from_le_bytes(y.try_into().expect("a chunk has 8 bytes"));
        if x != y {
            return shared + ((x ^ y).trailing_zeros() / 8) as usize;
        }
        shared += 8;
    }
    let rest = a[shared..].iter().zip(&b[shared..]);
    shared + rest.take_while(|(x, y)| x == y).count()
}

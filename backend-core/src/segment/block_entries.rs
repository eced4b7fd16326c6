//! Reading a block, entry by entry.

use std::cmp::Ordering;

use crate::entry::{Entry, Op, SchemaTag};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::VALUE_BYTES_MAX;
use crate::segment::block::{
    COMPRESSION_NONE, COMPRESSION_ZSTD, HAS_EXPIRIES, HAS_LENGTHS, HAS_OPS, HAS_SCHEMAS,
    IS_SHUFFLED, RAW_BYTES_MAX, RAW_HEADER_BYTES, RAW_PER_STORED_MAX, STORED_HEADER_BYTES,
    op_from_wire,
};
use crate::segment::key_encoding::{ENTRY_KEY_BYTES_MAX, decode_entry_key};
use crate::segment::shuffle::unshuffle;
use crate::segment::source::SegmentSource;
use crate::segment::varint::take_varint;

/// The entries of one block, in order. It owns what it reads, and lends one entry at a time.
#[derive(Debug)]
pub struct BlockEntries {
    place: BlockPlace,
    raw: Vec<u8>,
    /// Values that had been shuffled; otherwise they lie in `raw`.
    unshuffled: Option<Vec<u8>>,
    flags: u8,
    schema: u8,
    width: usize,
    expiry_base: u64,
    entries: u32,
    next: u32,
    /// Where the next bytes of each column lie in `raw`.
    shared: Column,
    rests: Column,
    suffixes: Column,
    ops: Column,
    schemas: Column,
    expiries: Column,
    lengths: Column,
    values: Column,
    /// The current entry.
    key: Vec<u8>,
    prefix_bytes: usize,
    op: Op,
    value: (usize, usize),
    expires_ms: Option<u64>,
    tag: SchemaTag,
}

/// Where a block lies, and between which keys.
#[derive(Debug)]
pub(super) struct BlockPlace {
    /// `None` where the caller knows what its errors are about.
    pub(super) source: Option<SegmentSource>,
    pub(super) offset: u64,
    /// The key that the index says is its first.
    pub(super) first_key: Box<[u8]>,
    /// A key that its own do not exceed, if there is one.
    pub(super) behind: Option<Box<[u8]>>,
}

impl BlockPlace {
    /// The error with the block's place.
    #[cold]
    pub(super) fn error(&self, e: Error) -> Error {
        match &self.source {
            Some(source) => source.place_error(e.with("block_offset", self.offset)),
            None => e,
        }
    }
}

/// A part of the raw block that is read from front to back.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    at: usize,
    end: usize,
}

/// The current entry of [`BlockEntries`], with its key encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawEntry<'a> {
    pub(crate) key: &'a [u8],
    /// The bytes of the key before the sub-key.
    pub(crate) prefix_bytes: usize,
    pub(crate) op: Op,
    pub(crate) schema: SchemaTag,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) value: &'a [u8],
}

impl<'a> RawEntry<'a> {
    /// The entry with its key taken apart.
    pub(crate) fn entry(&self) -> Entry<'a> {
        let (key, _) = decode_entry_key(self.key).expect("the key was decoded when it was read");
        Entry {
            key,
            op: self.op,
            schema: self.schema,
            expires_ms: self.expires_ms,
            value: self.value,
        }
    }
}

impl BlockEntries {
    /// Opens a stored block of `entries` entries, whose checksum has been verified.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] or [`ErrorKind::Unsupported`] say what is wrong, and where the
    /// block lies.
    pub(super) fn open(stored: &[u8], entries: u32, place: BlockPlace) -> Result<Self> {
        let mut block = Self {
            place,
            entries,
            raw: Vec::new(),
            unshuffled: None,
            flags: 0,
            schema: 0,
            width: 0,
            expiry_base: 0,
            next: 0,
            shared: Column::default(),
            rests: Column::default(),
            suffixes: Column::default(),
            ops: Column::default(),
            schemas: Column::default(),
            expiries: Column::default(),
            lengths: Column::default(),
            values: Column::default(),
            key: Vec::new(),
            prefix_bytes: 0,
            op: Op::Put,
            value: (0, 0),
            expires_ms: None,
            tag: SchemaTag(0),
        };
        match block.read_header(stored) {
            Ok(()) => Ok(block),
            Err(e) => Err(block.place.error(e)),
        }
    }

    fn read_header(&mut self, stored: &[u8]) -> Result<()> {
        let raw = decompress(stored)?;
        let header = raw
            .get(..RAW_HEADER_BYTES)
            .ok_or_else(|| damaged("a block has no header"))?;
        let field = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (flags, schema) = (header[0], header[1]);
        let known = HAS_OPS | HAS_SCHEMAS | HAS_EXPIRIES | HAS_LENGTHS | IS_SHUFFLED;
        if flags & !known != 0 || header[2..4] != [0, 0] {
            return Err(
                Error::new(ErrorKind::Unsupported, "a block uses unknown features").expected_got(
                    "known flags, reserved bytes 0",
                    format_args!("flags {flags:#x}"),
                ),
            );
        }
        if field(4) != self.entries || self.entries == 0 {
            return Err(
                damaged("a block's number of entries differs from its index")
                    .expected_got(self.entries, field(4)),
            );
        }
        self.flags = flags;
        self.schema = schema;
        self.tag = SchemaTag(schema);
        self.width = field(20) as usize;
        self.expiry_base = u64::from(field(24)) | u64::from(field(28)) << 32;
        self.lay_out(&raw, [field(8), field(12), field(16)])?;
        self.raw = raw;
        self.unshuffle();
        Ok(())
    }

    /// Finds the columns. Each is bounded by the bytes that are there.
    fn lay_out(&mut self, raw: &[u8], sizes: [u32; 3]) -> Result<()> {
        let count = self.entries as usize;
        let mut at = RAW_HEADER_BYTES;
        let mut take = |bytes: usize| {
            let end = at.checked_add(bytes).filter(|end| *end <= raw.len());
            let end = end.ok_or_else(|| damaged("a column is longer than its block"))?;
            let column = Column { at, end };
            at = end;
            Ok::<_, Error>(column)
        };
        self.shared = take(sizes[0] as usize)?;
        self.rests = take(sizes[1] as usize)?;
        self.suffixes = take(sizes[2] as usize)?;
        let has = |flag: u8| self.flags & flag != 0;
        self.ops = take(if has(HAS_OPS) { count } else { 0 })?;
        self.schemas = take(if has(HAS_SCHEMAS) { count } else { 0 })?;
        let puts = if has(HAS_OPS) {
            count
                - raw[self.ops.at..self.ops.end]
                    .iter()
                    .map(|op| usize::from(*op != 0))
                    .sum::<usize>()
        } else {
            count
        };
        let rest = |column: &Column| &raw[column.end..];
        let expiries = if has(HAS_EXPIRIES) {
            varints_bytes(rest(&self.schemas), count)?.0
        } else {
            0
        };
        self.expiries = take(expiries)?;
        let (lengths, values) = if has(HAS_LENGTHS) {
            varints_bytes(rest(&self.expiries), puts)?
        } else {
            (0, (self.width as u64).saturating_mul(puts as u64))
        };
        self.lengths = take(lengths)?;
        self.values = take(usize::try_from(values).unwrap_or(usize::MAX))?;
        if self.values.end != raw.len() {
            return Err(damaged("bytes follow the last column of a block")
                .expected_got(self.values.end, raw.len()));
        }
        if self.width > VALUE_BYTES_MAX
            || (has(HAS_LENGTHS) && (self.width != 0 || has(IS_SHUFFLED)))
        {
            return Err(
                damaged("a block's values cannot have that width").with("width", self.width)
            );
        }
        if !has(HAS_EXPIRIES) && self.expiry_base != 0 || has(HAS_SCHEMAS) && self.schema != 0 {
            return Err(damaged("a field is set that the block does not use"));
        }
        Ok(())
    }

    fn unshuffle(&mut self) {
        if self.flags & IS_SHUFFLED != 0 && self.width > 0 {
            let shuffled = &self.raw[self.values.at..self.values.end];
            self.unshuffled = Some(unshuffle(shuffled, self.width));
            self.values = Column {
                at: 0,
                end: shuffled.len(),
            };
        }
    }

    /// Goes to the next entry; `false` at the end.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the entry is malformed or out of order; it names the segment
    /// and the block.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool> {
        self.step().map_err(|e| self.place.error(e))
    }

    #[inline]
    fn step(&mut self) -> Result<bool> {
        if self.next == self.entries {
            return self.check_end().map(|()| false);
        }
        let is_first = self.next == 0;
        let before = self.op;
        let shared = self
            .shared
            .varint(&self.raw)
            .and_then(|n| usize::try_from(n).ok());
        let rest = self
            .rests
            .varint(&self.raw)
            .and_then(|n| usize::try_from(n).ok());
        let (Some(shared), Some(rest)) = (shared, rest) else {
            return Err(damaged("a key's lengths are malformed"));
        };
        let suffix = self
            .suffixes
            .take(rest)
            .ok_or_else(|| damaged("a key ends behind its column"))?;
        if shared > self.key.len() || shared + rest > ENTRY_KEY_BYTES_MAX {
            return Err(damaged("a key shares more than there is"));
        }
        let suffix = &self.raw[suffix.0..suffix.1];
        let grows = match (self.key.get(shared), suffix.first()) {
            (Some(old), Some(new)) => old < new,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => is_first,
        };
        let repeats = shared == self.key.len() && rest == 0 && !is_first;
        self.key.truncate(shared);
        self.key.extend_from_slice(suffix);
        if is_first && *self.key != *self.place.first_key {
            return Err(damaged(
                "a block begins with another key than its index says",
            ));
        }
        let Some((_, prefix_bytes)) = decode_entry_key(&self.key) else {
            return Err(damaged("a key is malformed"));
        };
        self.prefix_bytes = prefix_bytes;
        self.read_op()?;
        let repeat_allowed = repeats && before == Op::DeletePrefix && self.op != Op::DeletePrefix;
        if !grows && !repeat_allowed {
            return Err(damaged("the keys of a block are not in order"));
        }
        if self.op == Op::DeletePrefix && self.key.len() != prefix_bytes {
            return Err(damaged("a prefix delete has a sub-key"));
        }
        self.next += 1;
        Ok(true)
    }

    #[inline]
    fn read_op(&mut self) -> Result<()> {
        if self.flags & HAS_OPS != 0 {
            let byte = self.ops.take(1).map(|(at, _)| self.raw[at]);
            self.op = byte
                .and_then(op_from_wire)
                .ok_or_else(|| damaged("an unknown operation"))?;
        }
        if self.flags & HAS_SCHEMAS != 0 {
            let byte = self.schemas.take(1).map(|(at, _)| self.raw[at]);
            self.tag = SchemaTag(byte.unwrap_or_default());
        }
        if self.flags & HAS_EXPIRIES != 0 {
            let delta = self.expiries.varint(&self.raw).unwrap_or_default();
            let expiry = delta
                .checked_sub(1)
                .map(|delta| self.expiry_base.checked_add(delta));
            self.expires_ms = match expiry {
                None => None,
                Some(Some(ms)) => Some(ms),
                Some(None) => return Err(damaged("an expiry is beyond the end of time")),
            };
        }
        if self.op != Op::Put {
            self.value = (0, 0);
            return Ok(());
        }
        let length = if self.flags & HAS_LENGTHS == 0 {
            self.width
        } else {
            let length = self.lengths.varint(&self.raw).unwrap_or(u64::MAX);
            usize::try_from(length).unwrap_or(usize::MAX)
        };
        if length > VALUE_BYTES_MAX {
            return Err(damaged("a value is longer than it can be").with("bytes", length));
        }
        self.value = self
            .values
            .take(length)
            .ok_or_else(|| damaged("a value ends behind its column"))?;
        Ok(())
    }

    fn check_end(&self) -> Result<()> {
        let columns = [self.shared, self.rests, self.suffixes, self.values];
        if columns.iter().any(|column| column.at != column.end) {
            return Err(damaged("a column of a block is longer than its entries"));
        }
        let reaches = |behind: &[u8]| match behind.cmp(&self.key) {
            Ordering::Less => true,
            // A prefix delete may stand in one block and the put of its key in the next.
            Ordering::Equal => self.op != Op::DeletePrefix,
            Ordering::Greater => false,
        };
        if self.place.behind.as_deref().is_some_and(reaches) {
            return Err(damaged("the keys of a block reach into the next one"));
        }
        Ok(())
    }

    /// The entry that [`BlockEntries::advance`] went to.
    #[inline]
    pub(crate) fn current(&self) -> RawEntry<'_> {
        let values = self.unshuffled.as_deref().unwrap_or(&self.raw);
        RawEntry {
            key: &self.key,
            prefix_bytes: self.prefix_bytes,
            op: self.op,
            schema: self.tag,
            expires_ms: self.expires_ms,
            value: &values[self.value.0..self.value.1],
        }
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the entry is malformed or out of order; it names the segment
    /// and the block.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>> {
        Ok(if self.advance()? {
            Some(self.current().entry())
        } else {
            None
        })
    }
}

impl Column {
    #[inline]
    fn varint(&mut self, raw: &[u8]) -> Option<u64> {
        let mut rest = &raw[self.at..self.end];
        let value = take_varint(&mut rest);
        self.at = self.end - rest.len();
        value
    }

    #[inline]
    fn take(&mut self, bytes: usize) -> Option<(usize, usize)> {
        let end = self.at.checked_add(bytes).filter(|end| *end <= self.end)?;
        let taken = (self.at, end);
        self.at = end;
        Some(taken)
    }
}

/// The bytes of `count` numbers at the front of `bytes`, and their sum.
fn varints_bytes(bytes: &[u8], count: usize) -> Result<(usize, u64)> {
    let mut rest = bytes;
    let mut sum = 0_u64;
    for _ in 0..count {
        let value = take_varint(&mut rest).ok_or_else(|| damaged("a number is malformed"))?;
        sum = sum.saturating_add(value);
    }
    Ok((bytes.len() - rest.len(), sum))
}

fn decompress(stored: &[u8]) -> Result<Vec<u8>> {
    let Some((header, payload)) = stored.split_at_checked(STORED_HEADER_BYTES) else {
        return Err(damaged("a block is shorter than its header"));
    };
    let raw_bytes = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    if header[1..4] != [0, 0, 0] {
        return Err(
            Error::new(ErrorKind::Unsupported, "a block uses a dictionary")
                .expected_got("reserved bytes 0", format_args!("{:?}", &header[1..4])),
        );
    }
    if raw_bytes > RAW_BYTES_MAX || raw_bytes > payload.len().saturating_mul(RAW_PER_STORED_MAX) {
        return Err(
            damaged("a block claims to be larger than it can be").with("raw_bytes", raw_bytes)
        );
    }
    let raw = match header[0] {
        COMPRESSION_NONE => payload.to_vec(),
        COMPRESSION_ZSTD => zstd::bulk::decompress(payload, raw_bytes)
            .map_err(|e| damaged("a block does not decompress").because(e))?,
        other => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a block is compressed in an unknown way",
            )
            .expected_got("0 (none) or 1 (zstd)", other));
        }
    };
    if raw.len() != raw_bytes {
        return Err(
            damaged("a block has another size than it says").expected_got(raw_bytes, raw.len())
        );
    }
    Ok(raw)
}

fn damaged(message: &'static str) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

//! Header, index, footer and tail: where the sections of a manifest lie, and its identity.
//!
//! ```text
//! | header 32 | meta | operators | part .. part | index 72 x parts | footer 184 | tail 32 |
//!
//! header:  magic 8 | version 4 | flags 4 (0) | reserved 12 (0) | CRC-32 of the 28 before 4
//! index:   operator 4 | task 4 | range 16 | offset 8 | bytes 8 | BLAKE3 of the part 32
//! footer:  meta, operators, index, each: offset 8 | bytes 8 | BLAKE3 32
//!          parts 4 | reserved 4 (0) | root 32
//! tail:    footer bytes 4 | version 4 | object bytes 8 | reserved 4 (0)
//!          CRC-32 of the 20 before 4 | magic 8
//! ```
//!
//! The root is the snapshot's identity: BLAKE3 of the header and of the footer before the root.

use std::ops::Range;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Digest, TaskIndex};
use crate::manifest::limits::MANIFEST_BYTES_MAX;
use crate::manifest::segment::{read_range, write_range};
use crate::range::HashRange;
use crate::wire::{Reader, Writer};

/// The format version that this build writes, and the only one that it reads.
pub const MANIFEST_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"SLMANIF\n";
const MAGIC_END: [u8; 8] = *b"\nSLMANIE";

pub(super) const HEADER_BYTES: u64 = 32;
pub(super) const INDEX_ENTRY_BYTES: u64 = 4 + 4 + 16 + 8 + 8 + 32;
const SPAN_BYTES: u64 = 8 + 8 + 32;
const FOOTER_BYTES: u64 = 3 * SPAN_BYTES + 4 + 4 + 32;
const TAIL_BYTES: u64 = 4 + 4 + 8 + 4 + 4 + 8;

/// The bytes at the end of a manifest that say where all else lies.
pub const MANIFEST_END_BYTES: u64 = FOOTER_BYTES + TAIL_BYTES;

const _: () = {
    assert!(INDEX_ENTRY_BYTES == 72, "the drawing says 72");
    assert!(FOOTER_BYTES == 184, "the drawing says 184");
    assert!(TAIL_BYTES == 32, "the drawing says 32");
};

/// Where a section lies, and its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first byte in the object.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// Its digest.
    pub digest: Digest,
}

impl Span {
    pub(super) fn of(offset: u64, section: &[u8]) -> Self {
        Self {
            offset,
            bytes: section.len() as u64,
            digest: Digest::of(section),
        }
    }

    /// The bytes of the object that the section takes.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes
    }

    /// Whether `section` is what the span was made of.
    pub(super) fn verify(&self, name: &'static str, section: &[u8]) -> Result<()> {
        let got = Digest::of(section);
        if got == self.digest {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Corrupt, "a section's digest differs")
            .with("section", name)
            .with("offset", self.offset)
            .expected_got(self.digest, got))
    }
}

/// The end of a manifest: where its sections lie, and its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer {
    /// The snapshot as a whole.
    pub meta: Span,
    /// The operators.
    pub operators: Span,
    /// The index of the parts.
    pub index: Span,
    /// The number of parts.
    pub parts: u32,
    /// The snapshot's identity.
    pub digest: Digest,
}

/// Where one part lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The index of its operator.
    pub operator: u32,
    /// Its task.
    pub task: TaskIndex,
    /// The hashes that the task owned.
    pub range: HashRange,
    /// Where it lies.
    pub span: Span,
}

pub(super) fn write_header() -> Vec<u8> {
    let mut out = Writer::default();
    out.raw(&MAGIC);
    out.u32(MANIFEST_VERSION);
    out.u32(0);
    out.raw(&[0; 12]);
    with_crc(out).finish()
}

/// Checks the header: magic first, then the checksum, so that a flipped bit is not taken for
/// another version.
pub(super) fn read_header(bytes: &[u8]) -> Result<()> {
    let mut input = Reader::new("header", bytes, 0);
    let magic = input.raw(MAGIC.len())?;
    if magic != MAGIC {
        return Err(input
            .corrupt("not a manifest")
            .expected_got(MAGIC.escape_ascii(), magic.escape_ascii()));
    }
    check_crc(&input, bytes, HEADER_BYTES as usize - 4)?;
    check_version("header", input.u32()?)?;
    let flags = input.u32()?;
    let reserved = input.raw(12)?;
    if flags != 0 || reserved.iter().any(|byte| *byte != 0) {
        return Err(input.corrupt("reserved bytes are not zero"));
    }
    Ok(())
}

fn with_crc(mut out: Writer) -> Writer {
    let bytes = out.finish();
    let crc = crc32fast::hash(&bytes);
    out = Writer::default();
    out.raw(&bytes);
    out.u32(crc);
    out
}

fn check_crc(input: &Reader<'_>, bytes: &[u8], at: usize) -> Result<()> {
    let stored = bytes
        .get(at..at + 4)
        .ok_or_else(|| input.corrupt("a checksum is missing"))?;
    let stored = u32::from_le_bytes(stored.try_into().expect("four bytes were taken"));
    let got = crc32fast::hash(&bytes[..at]);
    if stored == got {
        return Ok(());
    }
    Err(input
        .corrupt("a checksum differs")
        .expected_got(format_args!("{stored:#010x}"), format_args!("{got:#010x}")))
}

pub(super) fn check_version(section: &'static str, version: u32) -> Result<()> {
    if version == MANIFEST_VERSION {
        return Ok(());
    }
    Err(
        Error::new(ErrorKind::Unsupported, "an unknown format version")
            .with("section", section)
            .expected_got(MANIFEST_VERSION, version),
    )
}

pub(super) fn write_index(entries: &[IndexEntry]) -> Vec<u8> {
    let mut out = Writer::default();
    for entry in entries {
        out.u32(entry.operator);
        out.u32(entry.task.0);
        write_range(&mut out, entry.range);
        write_span(&mut out, &entry.span);
    }
    out.finish()
}

fn write_span(out: &mut Writer, span: &Span) {
    out.u64(span.offset);
    out.u64(span.bytes);
    out.raw(&span.digest.0);
}

fn read_span(input: &mut Reader<'_>) -> Result<Span> {
    Ok(Span {
        offset: input.u64()?,
        bytes: input.u64()?,
        digest: Digest(input.digest()?),
    })
}

impl Footer {
    /// The footer of sections that lie as the format has them.
    pub(super) fn new(meta: Span, operators: Span, index: Span, parts: u32) -> Self {
        let mut footer = Self {
            meta,
            operators,
            index,
            parts,
            digest: Digest([0; 32]),
        };
        footer.digest = footer.root();
        footer
    }

    fn root(&self) -> Digest {
        let mut bytes = write_header();
        bytes.extend(self.body());
        Digest::of(&bytes)
    }

    fn body(&self) -> Vec<u8> {
        let mut out = Writer::default();
        for span in [&self.meta, &self.operators, &self.index] {
            write_span(&mut out, span);
        }
        out.u32(self.parts);
        out.u32(0);
        out.finish()
    }

    /// Footer and tail, [`MANIFEST_END_BYTES`] long.
    pub(super) fn write(&self) -> Vec<u8> {
        let object_bytes = self.index.offset + self.index.bytes + MANIFEST_END_BYTES;
        let mut tail = Writer::default();
        tail.u32(FOOTER_BYTES as u32);
        tail.u32(MANIFEST_VERSION);
        tail.u64(object_bytes);
        tail.u32(0);
        let mut tail = with_crc(tail);
        tail.raw(&MAGIC_END);
        let mut bytes = self.body();
        bytes.extend(self.digest.0);
        bytes.extend(tail.finish());
        bytes
    }

    /// Reads the last [`MANIFEST_END_BYTES`] of an object of `object_bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] or [`ErrorKind::Unsupported`], with section and offset.
    pub fn decode(end: &[u8], object_bytes: u64) -> Result<Self> {
        let start = check_sizes(end, object_bytes)?;
        let (footer, tail) = end.split_at(FOOTER_BYTES as usize);
        read_tail(tail, start + FOOTER_BYTES, object_bytes)?;
        let mut input = Reader::new("footer", footer, start);
        let meta = read_span(&mut input)?;
        let operators = read_span(&mut input)?;
        let index = read_span(&mut input)?;
        let parts = input.u32()?;
        if input.u32()? != 0 {
            return Err(input.corrupt("reserved bytes are not zero"));
        }
        let digest = Digest(input.digest()?);
        let footer = Self {
            meta,
            operators,
            index,
            parts,
            digest,
        };
        let root = footer.root();
        if root != digest {
            return Err(input
                .corrupt("the manifest's digest differs")
                .expected_got(digest, root));
        }
        footer.check_places(&input, start)?;
        Ok(footer)
    }

    /// Sections follow one another, and the index ends where the footer begins.
    fn check_places(&self, input: &Reader<'_>, footer_start: u64) -> Result<()> {
        let end = |span: &Span| span.offset.checked_add(span.bytes);
        let in_order = self.meta.offset == HEADER_BYTES
            && end(&self.meta) == Some(self.operators.offset)
            && end(&self.operators).is_some_and(|at| at <= self.index.offset)
            && end(&self.index) == Some(footer_start)
            && self.index.bytes == u64::from(self.parts) * INDEX_ENTRY_BYTES;
        if in_order {
            Ok(())
        } else {
            Err(input.corrupt("the sections do not lie one after another"))
        }
    }

    /// Reads the index and checks that the parts fill what lies between operators and index.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`], with section and offset.
    pub fn decode_index(&self, bytes: &[u8]) -> Result<Vec<IndexEntry>> {
        self.index.verify("index", bytes)?;
        let mut input = Reader::new("index", bytes, self.index.offset);
        let mut entries: Vec<IndexEntry> = Vec::with_capacity(self.parts as usize);
        let mut at = self.operators.offset + self.operators.bytes;
        for _ in 0..self.parts {
            let entry = IndexEntry {
                operator: input.u32()?,
                task: TaskIndex(input.u32()?),
                range: read_range(&mut input)?,
                span: read_span(&mut input)?,
            };
            let end = at.checked_add(entry.span.bytes);
            let Some(end) = end.filter(|end| *end <= self.index.offset && entry.span.offset == at)
            else {
                return Err(input.corrupt("the parts do not lie one after another"));
            };
            let place = |e: &IndexEntry| (e.operator, e.task);
            if entries
                .last()
                .is_some_and(|last| place(last) >= place(&entry))
            {
                return Err(input.corrupt("the parts are not in order"));
            }
            at = end;
            entries.push(entry);
        }
        input.end()?;
        if at != self.index.offset {
            return Err(input.corrupt("bytes follow the last part"));
        }
        Ok(entries)
    }
}

fn check_sizes(end: &[u8], object_bytes: u64) -> Result<u64> {
    let least = HEADER_BYTES + MANIFEST_END_BYTES;
    if object_bytes < least || end.len() as u64 != MANIFEST_END_BYTES {
        return Err(Error::new(ErrorKind::Corrupt, "a manifest is cut short")
            .with("section", "tail")
            .with("offset", object_bytes)
            .expected_got(
                format_args!("at least {least} bytes"),
                format_args!("{object_bytes} bytes"),
            ));
    }
    if object_bytes > MANIFEST_BYTES_MAX {
        return Err(Error::new(ErrorKind::Limit, "a manifest is too large")
            .with("bytes_max", MANIFEST_BYTES_MAX)
            .with("got", object_bytes));
    }
    Ok(object_bytes - MANIFEST_END_BYTES)
}

fn read_tail(bytes: &[u8], start: u64, object_bytes: u64) -> Result<()> {
    let mut input = Reader::new("tail", bytes, start);
    let magic = &bytes[bytes.len() - MAGIC_END.len()..];
    if magic != MAGIC_END {
        return Err(input
            .corrupt("the end of a manifest is missing")
            .expected_got(MAGIC_END.escape_ascii(), magic.escape_ascii()));
    }
    check_crc(&input, bytes, 20)?;
    let footer_bytes = input.u32()?;
    check_version("tail", input.u32()?)?;
    let stored = input.u64()?;
    if stored != object_bytes {
        return Err(input
            .corrupt("a manifest has another size than it says")
            .expected_got(stored, object_bytes));
    }
    if u64::from(footer_bytes) != FOOTER_BYTES || input.u32()? != 0 {
        return Err(input.corrupt("reserved bytes are not zero"));
    }
    Ok(())
}

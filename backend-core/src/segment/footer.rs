//! The ends of a segment: a header, and a footer that says all that a manifest would.
//!
//! ```text
//! header, 48 bytes:  magic "STLNSEG\0" | version u32 | flags u32 | unique id u128 | reserved 16
//! footer:            puts u64 | deletes u64 | prefix deletes u64 | shadowed bytes u64 |
//!                    generations u32, u32 | shards u8, u8 | earliest expiry (flag u8, u64) |
//!                    regions (count u32, then first key (length u32, bytes) | offset u64 |
//!                    index bytes u32 | filter bytes u32 | CRC-32 u32)
//! tail, 24 bytes:    footer offset u64 | footer bytes u32 | CRC-32 of the footer u32 | magic
//! ```

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::generation::Generation;
use crate::ids::{Digest, UniqueId};
use crate::segment::key_encoding::ENTRY_KEY_BYTES_MAX;
use crate::segment::meta::{Region, SegmentLocation, SegmentMeta};
use crate::wire::{Reader, Writer};

const MAGIC: [u8; 8] = *b"STLNSEG\0";
const VERSION: u32 = 1;
/// The bytes before the first block.
pub(crate) const HEADER_BYTES: usize = 48;
const TAIL_BYTES: usize = 24;
const REGION_BYTES: usize = 4 + 8 + 4 + 4 + 4;

/// The header of a segment.
pub(super) fn encode_header(unique: UniqueId) -> Vec<u8> {
    let mut out = Writer::default();
    out.raw(&MAGIC);
    out.u32(VERSION);
    out.u32(0);
    out.u128(unique.0);
    out.raw(&[0; 16]);
    let header = out.finish();
    debug_assert_eq!(header.len(), HEADER_BYTES);
    header
}

/// The unique id in a segment's header.
fn decode_header(bytes: &[u8]) -> Result<UniqueId> {
    let mut fields = Reader::new("header", bytes.get(..HEADER_BYTES).unwrap_or(bytes), 0);
    if fields.raw(8)? != MAGIC {
        return Err(fields.corrupt("the object is not a segment"));
    }
    let (version, flags) = (fields.u32()?, fields.u32()?);
    if version != VERSION || flags != 0 {
        return Err(
            Error::new(ErrorKind::Unsupported, "a segment of an unknown version").expected_got(
                "version 1, flags 0",
                format_args!("version {version}, flags {flags}"),
            ),
        );
    }
    let unique = UniqueId(fields.u128()?);
    if fields.raw(16)? != [0; 16] {
        return Err(fields.corrupt("reserved bytes are not zero"));
    }
    Ok(unique)
}

/// Appends footer and tail to the bytes of a segment.
pub(super) fn encode_footer(meta: &SegmentMeta, out: &mut Vec<u8>) -> Result<()> {
    let mut fields = Writer::default();
    for count in [
        meta.puts,
        meta.deletes,
        meta.delete_prefixes,
        meta.shadowed_bytes,
    ] {
        fields.u64(count);
    }
    fields.u32(meta.generations.0.0);
    fields.u32(meta.generations.1.0);
    fields.raw(&[meta.shards.0, meta.shards.1]);
    fields.u8(u8::from(meta.expires_ms_min.is_some()));
    fields.u64(meta.expires_ms_min.unwrap_or(0));
    fields.count(meta.regions.len())?;
    for region in &meta.regions {
        fields.blob(&region.first_key)?;
        fields.u64(region.offset);
        fields.u32(region.index_bytes);
        fields.u32(region.filter_bytes);
        fields.u32(region.crc);
    }
    let footer = fields.finish();
    let mut tail = Writer::default();
    tail.u64(out.len() as u64);
    tail.count(footer.len())?;
    tail.u32(crc32fast::hash(&footer));
    tail.raw(&MAGIC);
    out.extend_from_slice(&footer);
    out.extend_from_slice(&tail.finish());
    Ok(())
}

impl SegmentMeta {
    /// Describes the segment whose bytes are `bytes`, from its own header and footer.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] says where the object is damaged; [`ErrorKind::Unsupported`] for a
    /// version that this build does not know; [`ErrorKind::Mismatch`] if the object is another
    /// one than `location` names.
    pub fn decode(location: &SegmentLocation, bytes: &Bytes) -> Result<Self> {
        let name = location.object();
        let place = |e: Error| match &name {
            Some(name) => e.with("object", name),
            None => e.with("object", "inline segment"),
        };
        decode(location, bytes).map_err(place)
    }
}

/// Whether `bytes`, the front of a segment, are the header of the one that `location` names.
fn check_unique(location: &SegmentLocation, bytes: &[u8]) -> Result<()> {
    let unique = decode_header(bytes)?;
    if let SegmentLocation::Object(name) = location
        && name.unique != unique
    {
        return Err(
            Error::new(ErrorKind::Mismatch, "the object is another segment")
                .expected_got(name.unique, unique),
        );
    }
    Ok(())
}

/// Whether `bytes`, the front of a segment, are the header of the one that `meta` describes.
///
/// # Errors
/// [`ErrorKind::Mismatch`] if it is another segment's.
pub(crate) fn check_header(meta: &SegmentMeta, bytes: &[u8]) -> Result<()> {
    check_unique(&meta.location, bytes)
}

/// Whether `bytes`, which lie at `offset` and end the segment, are the footer and tail that
/// `meta` makes.
pub(super) fn check_footer(meta: &SegmentMeta, bytes: &[u8], offset: u64) -> Result<()> {
    let found = decode_ends(bytes, offset, |footer, at| {
        if at == offset {
            decode_footer(&meta.location, (meta.bytes, meta.digest), footer, at)
        } else {
            Err(Error::new(
                ErrorKind::Corrupt,
                "the footer does not follow the last region",
            )
            .expected_got(offset, at))
        }
    })?;
    let differs = |field: &'static str, expected: String, got: String| {
        Err(Error::new(
            ErrorKind::Corrupt,
            "a segment's footer says something else than its manifest",
        )
        .with("field", field)
        .expected_got(expected, got))
    };
    let counts = |m: &SegmentMeta| (m.puts, m.deletes, m.delete_prefixes, m.shadowed_bytes);
    let fields = [
        (
            "counts",
            format!("{:?}", counts(meta)),
            format!("{:?}", counts(&found)),
        ),
        (
            "generations",
            format!("{:?}", meta.generations),
            format!("{:?}", found.generations),
        ),
        (
            "shards",
            format!("{:?}", meta.shards),
            format!("{:?}", found.shards),
        ),
        (
            "earliest expiry",
            format!("{:?}", meta.expires_ms_min),
            format!("{:?}", found.expires_ms_min),
        ),
    ];
    for (field, expected, got) in fields {
        if expected != got {
            return differs(field, expected, got);
        }
    }
    if meta.regions != found.regions {
        let (expected, got) = (meta.regions.len(), found.regions.len());
        return differs("regions", expected.to_string(), got.to_string());
    }
    Ok(())
}

fn decode(location: &SegmentLocation, bytes: &Bytes) -> Result<SegmentMeta> {
    check_unique(location, bytes)?;
    let whole = (bytes.len() as u64, Digest::of(bytes));
    decode_ends(bytes, 0, |footer, offset| {
        decode_footer(location, whole, footer, offset)
    })
}

/// Finds the footer at the end of `bytes`, which lie at `start` of their segment.
fn decode_ends<T>(
    bytes: &[u8],
    start: u64,
    decode_footer: impl FnOnce(&[u8], u64) -> Result<T>,
) -> Result<T> {
    let first = if start == 0 { HEADER_BYTES } else { 0 };
    let tail_at = bytes
        .len()
        .checked_sub(TAIL_BYTES)
        .filter(|at| *at >= first);
    let tail_at = tail_at.ok_or_else(|| {
        Error::new(
            ErrorKind::Corrupt,
            "a segment is shorter than header and tail",
        )
        .with("bytes", start + bytes.len() as u64)
    })?;
    let mut tail = Reader::new("tail", &bytes[tail_at..], start + tail_at as u64);
    let (offset, footer_bytes, crc) = (tail.u64()?, tail.u32()?, tail.u32()?);
    if tail.raw(8)? != MAGIC {
        return Err(tail.corrupt("the segment does not end with its magic"));
    }
    let footer_at = offset
        .checked_sub(start)
        .filter(|_| offset >= HEADER_BYTES as u64)
        .filter(|at| at.checked_add(u64::from(footer_bytes)) == Some(tail_at as u64))
        .ok_or_else(|| tail.corrupt("the footer does not lie before the tail"))?;
    let footer = &bytes[footer_at as usize..tail_at];
    let got = crc32fast::hash(footer);
    if got != crc {
        return Err(tail
            .corrupt("the footer's checksum differs")
            .expected_got(format_args!("{crc:#010x}"), format_args!("{got:#010x}")));
    }
    decode_footer(footer, offset)
}

/// Reads a footer of a segment whose size and digest are `whole`.
fn decode_footer(
    location: &SegmentLocation,
    whole: (u64, Digest),
    footer: &[u8],
    offset: u64,
) -> Result<SegmentMeta> {
    let mut fields = Reader::new("footer", footer, offset);
    let (puts, deletes) = (fields.u64()?, fields.u64()?);
    let (delete_prefixes, shadowed_bytes) = (fields.u64()?, fields.u64()?);
    let generations = (Generation(fields.u32()?), Generation(fields.u32()?));
    let shards = (fields.u8()?, fields.u8()?);
    let (expires, expiry) = (fields.flag()?, fields.u64()?);
    let regions = fields.list(REGION_BYTES, |fields| {
        Ok(Region {
            first_key: fields.blob(ENTRY_KEY_BYTES_MAX)?.into(),
            offset: fields.u64()?,
            index_bytes: fields.u32()?,
            filter_bytes: fields.u32()?,
            crc: fields.u32()?,
        })
    })?;
    fields.end()?;
    if !expires && expiry != 0 {
        return Err(fields.corrupt("an expiry is set that the segment does not have"));
    }
    let mut start = HEADER_BYTES as u64;
    for region in &regions {
        let end = region
            .end()
            .filter(|end| region.offset >= start && *end <= offset);
        start =
            end.ok_or_else(|| fields.corrupt("a region does not lie between its neighbours"))?;
    }
    if start != offset {
        return Err(fields
            .corrupt("the regions do not end at the footer")
            .expected_got(offset, start));
    }
    let meta = SegmentMeta {
        location: location.clone(),
        bytes: whole.0,
        digest: whole.1,
        puts,
        deletes,
        delete_prefixes,
        shadowed_bytes,
        generations,
        shards,
        expires_ms_min: expires.then_some(expiry),
        regions,
    };
    meta.check().map_err(|message| fields.corrupt(message))?;
    Ok(meta)
}

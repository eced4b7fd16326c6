//! Segments as a manifest describes them: where they lie and what is in them.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::generation::Generation;
use crate::ids::{Digest, Epoch, SnapshotId, TaskIndex, UniqueId};
use crate::manifest::limits::{INLINE_TASK_BYTES_MAX, REGION_KEY_BYTES_MAX};
use crate::manifest::model::Blob;
use crate::names::{PartsName, SegmentName};
use crate::range::HashRange;
use crate::segment::{Region, SegmentLocation, SegmentMeta, SegmentRef, Tier};
use crate::wire::{Reader, Writer};

/// The fewest bytes of a location (inline and empty), blob, segment and region.
const LOCATION_BYTES_MIN: usize = 5;
pub(super) const BLOB_BYTES_MIN: usize = LOCATION_BYTES_MIN + 40;
pub(super) const SEGMENT_BYTES_MIN: usize = 21 + BLOB_BYTES_MIN + 32 + 8 + 2 + 1 + 4;
const REGION_BYTES_MIN: usize = 24;

const OBJECT: u8 = 0;
const INLINE: u8 = 1;
const PACKED: u8 = 2;

pub(super) fn write_range(out: &mut Writer, range: HashRange) {
    out.u64(range.first());
    out.u64(range.last());
}

pub(super) fn read_range(input: &mut Reader<'_>) -> Result<HashRange> {
    let (first, last) = (input.u64()?, input.u64()?);
    HashRange::new(first, last).map_err(|_| input.corrupt("a hash range ends before it begins"))
}

fn write_location(out: &mut Writer, location: &SegmentLocation) -> Result<()> {
    match location {
        SegmentLocation::Object(name) => {
            out.u8(OBJECT);
            out.u64(name.epoch.0);
            out.u64(name.snapshot.0);
            out.u32(name.task.0);
            out.u32(name.index);
            out.u128(name.unique.0);
        }
        SegmentLocation::Inline(bytes) => {
            out.u8(INLINE);
            out.blob(bytes)?;
        }
        SegmentLocation::Packed { name, offset } => {
            out.u8(PACKED);
            out.u64(name.epoch.0);
            out.u64(name.snapshot.0);
            out.u128(name.unique.0);
            out.u64(*offset);
        }
    }
    Ok(())
}

fn read_location(input: &mut Reader<'_>) -> Result<SegmentLocation> {
    Ok(match input.u8()? {
        OBJECT => SegmentLocation::Object(SegmentName {
            epoch: Epoch(input.u64()?),
            snapshot: SnapshotId(input.u64()?),
            task: TaskIndex(input.u32()?),
            index: input.u32()?,
            unique: UniqueId(input.u128()?),
        }),
        INLINE => {
            let bytes = input.blob(INLINE_TASK_BYTES_MAX as usize)?;
            SegmentLocation::Inline(Bytes::copy_from_slice(bytes))
        }
        PACKED => SegmentLocation::Packed {
            name: PartsName {
                epoch: Epoch(input.u64()?),
                snapshot: SnapshotId(input.u64()?),
                unique: UniqueId(input.u128()?),
            },
            offset: input.u64()?,
        },
        _ => return Err(input.corrupt("an unknown place of a segment")),
    })
}

pub(super) fn write_blob(out: &mut Writer, blob: &Blob) -> Result<()> {
    write_place(out, &blob.location, blob.bytes, blob.digest)
}

fn write_place(
    out: &mut Writer,
    location: &SegmentLocation,
    bytes: u64,
    digest: Digest,
) -> Result<()> {
    write_location(out, location)?;
    out.u64(bytes);
    out.raw(&digest.0);
    Ok(())
}

pub(super) fn read_blob(input: &mut Reader<'_>) -> Result<Blob> {
    let blob = Blob {
        location: read_location(input)?,
        bytes: input.u64()?,
        digest: Digest(input.digest()?),
    };
    match &blob.location {
        SegmentLocation::Inline(held) if held.len() as u64 != blob.bytes => Err(input
            .corrupt("an inline segment has another size than it says")
            .expected_got(blob.bytes, held.len())),
        SegmentLocation::Packed { offset, .. } if offset.checked_add(blob.bytes).is_none() => {
            Err(input.corrupt("a packed segment ends beyond any object"))
        }
        _ => Ok(blob),
    }
}

pub(super) fn write_segment(out: &mut Writer, segment: &SegmentRef) -> Result<()> {
    let meta = &segment.meta;
    write_range(out, segment.clip);
    out.u8(segment.tier.0);
    out.u32(segment.run);
    write_place(out, &meta.location, meta.bytes, meta.digest)?;
    out.u64(meta.puts);
    out.u64(meta.deletes);
    out.u64(meta.delete_prefixes);
    out.u64(meta.shadowed_bytes);
    out.u32(meta.generations.0.0);
    out.u32(meta.generations.1.0);
    out.u8(meta.shards.0);
    out.u8(meta.shards.1);
    out.option(meta.expires_ms_min, |out, expires| {
        out.u64(expires);
        Ok(())
    })?;
    out.count(meta.regions.len())?;
    for region in &meta.regions {
        if region.first_key.len() > REGION_KEY_BYTES_MAX {
            return Err(
                Error::new(ErrorKind::Limit, "a region's first key is too long")
                    .with("bytes_max", REGION_KEY_BYTES_MAX)
                    .with("got", region.first_key.len()),
            );
        }
        out.blob(&region.first_key)?;
        out.u64(region.offset);
        out.u32(region.index_bytes);
        out.u32(region.filter_bytes);
        out.u32(region.crc);
    }
    Ok(())
}

pub(super) fn read_segment(input: &mut Reader<'_>) -> Result<SegmentRef> {
    let clip = read_range(input)?;
    let tier = Tier(input.u8()?);
    let run = input.u32()?;
    let place = read_blob(input)?;
    let meta = SegmentMeta {
        location: place.location,
        bytes: place.bytes,
        digest: place.digest,
        puts: input.u64()?,
        deletes: input.u64()?,
        delete_prefixes: input.u64()?,
        shadowed_bytes: input.u64()?,
        generations: (Generation(input.u32()?), Generation(input.u32()?)),
        shards: (input.u8()?, input.u8()?),
        expires_ms_min: input.option(Reader::u64)?,
        regions: input.list(REGION_BYTES_MIN, read_region)?,
    };
    meta.check().map_err(|message| input.corrupt(message))?;
    Ok(SegmentRef {
        meta: Arc::new(meta),
        clip,
        tier,
        run,
    })
}

fn read_region(input: &mut Reader<'_>) -> Result<Region> {
    Ok(Region {
        first_key: input.blob(REGION_KEY_BYTES_MAX)?.into(),
        offset: input.u64()?,
        index_bytes: input.u32()?,
        filter_bytes: input.u32()?,
        crc: input.u32()?,
    })
}

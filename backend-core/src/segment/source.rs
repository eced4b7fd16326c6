//! Where a segment's bytes come from.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::names::ObjectName;
use crate::segment::meta::{SegmentLocation, SegmentMeta};
use crate::storage::Storage;

/// The bytes of one segment, by range.
#[derive(Clone, Debug)]
pub struct SegmentSource {
    place: Place,
    bytes: u64,
}

#[derive(Clone, Debug)]
enum Place {
    Memory(Bytes),
    Object {
        storage: Storage,
        name: ObjectName,
        offset: u64,
    },
}

impl SegmentSource {
    /// The bytes of the segment that `meta` describes, in `storage` unless they are inline.
    pub fn new(meta: &SegmentMeta, storage: &Storage) -> Self {
        let place = match &meta.location {
            SegmentLocation::Inline(bytes) => Place::Memory(bytes.clone()),
            SegmentLocation::Object(name) => Place::Object {
                storage: storage.clone(),
                name: ObjectName::Segment(*name),
                offset: 0,
            },
            SegmentLocation::Packed { name, offset } => Place::Object {
                storage: storage.clone(),
                name: ObjectName::Parts(*name),
                offset: *offset,
            },
        };
        Self {
            place,
            bytes: meta.bytes,
        }
    }

    /// A segment in memory.
    pub fn of_bytes(bytes: Bytes) -> Self {
        let len = bytes.len() as u64;
        Self {
            place: Place::Memory(bytes),
            bytes: len,
        }
    }

    /// The bytes in `range`.
    ///
    /// # Errors
    /// Those of [`Storage::get_range`]; [`ErrorKind::Corrupt`] if the range is not within the
    /// segment.
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > self.bytes {
            return Err(self.place_error(
                Error::new(ErrorKind::Corrupt, "a segment's index points outside of it")
                    .with("range", format_args!("{}..{}", range.start, range.end))
                    .with("bytes", self.bytes),
            ));
        }
        match &self.place {
            Place::Memory(bytes) => {
                let (start, end) = (range.start as usize, range.end as usize);
                if end > bytes.len() {
                    return Err(self.place_error(
                        Error::new(ErrorKind::Corrupt, "a segment is shorter than it should be")
                            .with("offset", bytes.len())
                            .expected_got(self.bytes, bytes.len()),
                    ));
                }
                Ok(bytes.slice(start..end))
            }
            Place::Object {
                storage,
                name,
                offset,
            } => {
                let at = |position: u64| {
                    offset.checked_add(position).ok_or_else(|| {
                        Error::new(
                            ErrorKind::Corrupt,
                            "a segment lies beyond the end of all objects",
                        )
                        .with("object", name)
                    })
                };
                storage
                    .get_range(name, at(range.start)?..at(range.end)?)
                    .await
            }
        }
    }

    /// Adds to an error which segment it is about.
    pub fn place_error(&self, e: Error) -> Error {
        if e.fact("object").is_some() {
            return e;
        }
        match &self.place {
            Place::Memory(_) => e.with("object", "inline segment"),
            Place::Object { name, .. } => e.with("object", name),
        }
    }
}

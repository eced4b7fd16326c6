//! Reading one object from front to back.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::hash::KeyHasher;
use crate::ids::Digest;
use crate::inspect::verify::catalog::{Content, Packed};
use crate::inspect::verify::fault::FaultKind;
use crate::inspect::verify::findings::of_object;
use crate::manifest::Blob;
use crate::names::{ObjectName, PartsName};
use crate::segment::{HEADER_BYTES, SegmentCheck, SegmentLocation, SegmentMeta, check_header};
use crate::store::Remote;

/// Bytes of a blob that are read at a time.
const PIECE_BYTES: u64 = 4 << 20;

/// What became of one object.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Its bytes, as far as they were read.
    pub(super) bytes: u64,
    /// What is wrong with it.
    pub(super) wrong: Option<(FaultKind, Error)>,
}

impl Outcome {
    fn wrong(bytes: u64, kind: FaultKind, error: Error) -> Self {
        Self {
            bytes,
            wrong: Some((kind, error)),
        }
    }
}

/// Where an object's bytes come from.
enum Place {
    Memory(Bytes),
    Object {
        remote: Remote,
        name: ObjectName,
        offset: u64,
    },
}

impl Place {
    async fn read(&self, range: std::ops::Range<u64>) -> Result<Bytes> {
        match self {
            Self::Memory(bytes) => {
                let (start, end) = (range.start as usize, range.end as usize);
                bytes
                    .get(start..end)
                    .map(|_| bytes.slice(start..end))
                    .ok_or_else(|| {
                        Error::new(
                            ErrorKind::Corrupt,
                            "an inline segment is shorter than it says",
                        )
                        .expected_got(end, bytes.len())
                    })
            }
            Self::Object {
                remote,
                name,
                offset,
            } => {
                let end = offset.checked_add(range.end);
                let end = end.ok_or_else(|| {
                    Error::new(ErrorKind::Corrupt, "a segment ends beyond any object")
                })?;
                remote.get_range(*name, offset + range.start..end).await
            }
        }
    }
}

/// Verifies what `content` says, whose keys are hashed by `hasher` if anybody knows it.
///
/// # Errors
/// Those of a store that does not answer; what is wrong with the object is no error.
pub(super) async fn check(
    remote: Remote,
    content: Content,
    hasher: Option<KeyHasher>,
) -> Result<Outcome> {
    let place = match content.location() {
        SegmentLocation::Inline(bytes) => Place::Memory(bytes.clone()),
        SegmentLocation::Object(name) => {
            let name = ObjectName::Segment(*name);
            if let Some(wrong) = check_size(&remote, name, &content).await? {
                return Ok(wrong);
            }
            Place::Object {
                remote,
                name,
                offset: 0,
            }
        }
        SegmentLocation::Packed { name, offset } => Place::Object {
            remote,
            name: ObjectName::Parts(*name),
            offset: *offset,
        },
    };
    match content {
        Content::Segment(meta, _) => check_segment(&place, meta, hasher).await,
        Content::Blob(blob) => check_blob(&place, &blob).await,
    }
}

/// Whether an object is there and as long as it is to be. One of another length may be another
/// segment, which is what its header says then.
async fn check_size(
    remote: &Remote,
    name: ObjectName,
    content: &Content,
) -> Result<Option<Outcome>> {
    let expected = content.bytes();
    let Some(got) = remote.size(name).await? else {
        let e = Error::new(ErrorKind::NotFound, "an object is missing");
        return Ok(Some(Outcome::wrong(0, FaultKind::Missing, e)));
    };
    if got == expected {
        return Ok(None);
    }
    let header = HEADER_BYTES as u64;
    if let Content::Segment(meta, _) = content
        && got >= header
    {
        let front = remote.get_range(name, 0..header).await;
        let found = front.and_then(|bytes| check_header(meta, &bytes));
        if let Err(e) = found
            && of_object(e)?.kind() == ErrorKind::Mismatch
        {
            let e = Error::new(ErrorKind::Mismatch, "the object is another segment").expected_got(
                format_args!("{expected} bytes"),
                format_args!("{got} bytes"),
            );
            return Ok(Some(Outcome::wrong(header, FaultKind::Foreign, e)));
        }
    }
    Ok(Some(Outcome::wrong(
        0,
        FaultKind::Size,
        of_size(expected, got),
    )))
}

fn of_size(expected: u64, got: u64) -> Error {
    let message = if got > expected {
        "an object is longer than its manifest says"
    } else {
        "an object is shorter than its manifest says"
    };
    Error::new(ErrorKind::Corrupt, message).expected_got(
        format_args!("{expected} bytes"),
        format_args!("{got} bytes"),
    )
}

async fn check_segment(
    place: &Place,
    meta: Arc<SegmentMeta>,
    hasher: Option<KeyHasher>,
) -> Result<Outcome> {
    let mut check = SegmentCheck::new(meta, hasher);
    let mut bytes = 0;
    loop {
        let range = match check.wants() {
            Ok(Some(range)) => range,
            Ok(None) => return Ok(Outcome { bytes, wrong: None }),
            Err(flaw) => {
                let kind = FaultKind::of_flaw(flaw.kind);
                return Ok(Outcome::wrong(bytes, kind, flaw.error));
            }
        };
        let piece = match place.read(range).await {
            Ok(piece) => piece,
            Err(e) => return unreadable(bytes, e),
        };
        bytes += piece.len() as u64;
        if let Err(flaw) = check.take(&piece) {
            let kind = FaultKind::of_flaw(flaw.kind);
            return Ok(Outcome::wrong(bytes, kind, flaw.error));
        }
    }
}

async fn check_blob(place: &Place, blob: &Blob) -> Result<Outcome> {
    let mut digest = blake3::Hasher::new();
    let mut at = 0;
    while at < blob.bytes {
        let end = blob.bytes.min(at + PIECE_BYTES);
        match place.read(at..end).await {
            Ok(piece) => digest.update(&piece),
            Err(e) => return unreadable(at, e),
        };
        at = end;
    }
    let got = Digest(*digest.finalize().as_bytes());
    if got == blob.digest {
        return Ok(Outcome {
            bytes: at,
            wrong: None,
        });
    }
    let e = Error::new(ErrorKind::Corrupt, "a digest differs from its manifest's");
    let e = e.expected_got(blob.digest, got);
    Ok(Outcome::wrong(at, FaultKind::Digest, e))
}

fn unreadable(bytes: u64, e: Error) -> Result<Outcome> {
    let e = of_object(e)?;
    let kind = match e.kind() {
        ErrorKind::NotFound => FaultKind::Missing,
        _ => FaultKind::Size,
    };
    Ok(Outcome::wrong(bytes, kind, e))
}

/// Whether an object of small segments is there and ends where it is to.
///
/// # Errors
/// Those of a store that does not answer.
pub(super) async fn check_packed(
    remote: Remote,
    name: PartsName,
    packed: Packed,
) -> Result<Option<(FaultKind, Error)>> {
    let Some(got) = remote.size(ObjectName::Parts(name)).await? else {
        let e = Error::new(ErrorKind::NotFound, "an object is missing");
        return Ok(Some((FaultKind::Missing, e)));
    };
    let is_whole = got == packed.bytes || got > packed.bytes && !packed.is_exact;
    Ok((!is_whole).then(|| (FaultKind::Size, of_size(packed.bytes, got))))
}

//! One object from one store to another.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::Digest;
use crate::names::ObjectName;
use crate::store::protocol::CreateAnswer;
use crate::store::{Remote, Tries};

/// What an object holds at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) digest: Digest,
    /// Whether it is all that the object holds.
    pub(super) is_whole: bool,
}

/// What became of an object of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// It was copied.
    Now(u64),
    /// It was there already.
    Before(u64),
}

/// Copies an object, unless it is there already; either is verified.
///
/// # Errors
/// [`ErrorKind::Corrupt`] or [`ErrorKind::NotFound`] that names the object and the side; those of
/// requests.
pub(super) async fn copy_object(
    from: &Remote,
    to: &Remote,
    object: ObjectName,
    pieces: &[Piece],
) -> Result<Copied> {
    if let Some(bytes) = read(to, object, pieces, "destination").await? {
        return Ok(Copied::Before(bytes.len() as u64));
    }
    let bytes = read(from, object, pieces, "source").await?;
    let bytes = bytes.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "an object is missing")
            .with("object", object)
            .with("side", "source")
    })?;
    let count = bytes.len() as u64;
    match put_if_absent(to, object, bytes, count).await? {
        None => Ok(Copied::Now(count)),
        Some(other) => {
            verify(object, pieces, &other, "destination")?;
            Ok(Copied::Before(count))
        }
    }
}

/// The verified bytes of an object, if it is there.
async fn read(
    remote: &Remote,
    object: ObjectName,
    pieces: &[Piece],
    side: &'static str,
) -> Result<Option<Bytes>> {
    let Some(count) = remote.size(object).await? else {
        return Ok(None);
    };
    check_size(object, pieces, count, side)?;
    let Some(bytes) = remote.get(object, count).await? else {
        return Ok(None);
    };
    verify(object, pieces, &bytes, side)?;
    Ok(Some(bytes))
}

fn check_size(object: ObjectName, pieces: &[Piece], got: u64, side: &'static str) -> Result<()> {
    for piece in pieces {
        let end = piece.offset.saturating_add(piece.bytes);
        let is_right = got == end || got > end && !piece.is_whole;
        if !is_right {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "an object has another size than its manifest says",
            )
            .with("object", object)
            .with("side", side)
            .expected_got(format_args!("{end} bytes"), format_args!("{got} bytes")));
        }
    }
    Ok(())
}

fn verify(object: ObjectName, pieces: &[Piece], bytes: &Bytes, side: &'static str) -> Result<()> {
    check_size(object, pieces, bytes.len() as u64, side)?;
    for piece in pieces {
        let (from, to) = (piece.offset as usize, (piece.offset + piece.bytes) as usize);
        let got = Digest::of(&bytes[from..to]);
        if got != piece.digest {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "an object's digest differs from its manifest's",
            )
            .with("object", object)
            .with("side", side)
            .with("offset", piece.offset)
            .expected_got(piece.digest, got));
        }
    }
    Ok(())
}

/// Creates an object, or gives what lies there instead; perhaps our own bytes from a try whose
/// outcome was not known.
///
/// # Errors
/// [`ErrorKind::InDoubt`] if the store gives no clear answer.
pub(super) async fn put_if_absent(
    to: &Remote,
    object: ObjectName,
    bytes: Bytes,
    bytes_max: u64,
) -> Result<Option<Bytes>> {
    let mut tries = Tries::default();
    loop {
        let (answer, doubt) = to.create_once(object, bytes.clone()).await?;
        if answer == CreateAnswer::Created {
            return Ok(None);
        }
        if answer == CreateAnswer::Exists
            && let Some(found) = to.get(object, bytes_max).await?
        {
            return Ok(Some(found));
        }
        let unclear = Error::new(
            ErrorKind::InDoubt,
            "it is not known whether an object was created",
        )
        .with("object", object)
        .with("side", "destination");
        let unclear = match doubt {
            Some(doubt) => unclear.because(doubt),
            None => unclear,
        };
        to.pause(&mut tries, unclear).await?;
    }
}

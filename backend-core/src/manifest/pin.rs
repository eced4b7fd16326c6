//! Pins and claims of savepoints: what keeps a snapshot for somebody other than its job. They
//! have the frame of the records.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::ids::{JobId, UniqueId};
use crate::manifest::meta::{read_position, write_position};
use crate::manifest::model::Position;
use crate::manifest::record::{check_owner, head, opened, read_job, sealed};
use crate::names::ObjectName;

const PIN_MAGIC: [u8; 8] = *b"SLPINNED";
const CLAIMED_MAGIC: [u8; 8] = *b"SLCLAIMD";

/// What lies under `pins/{unique}`: a snapshot that somebody reads, and that is not collected
/// meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The job whose snapshot it is.
    pub job: JobId,
    /// The snapshot.
    pub position: Position,
    /// The pin's own name.
    pub unique: UniqueId,
    /// Who reads, for people.
    pub holder: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it ends by itself, in milliseconds since 1970; `None`: when it is removed.
    pub expires_ms: Option<u64>,
}

impl Pin {
    /// Whether the pin still holds at `now_ms`.
    pub fn holds_at(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|end| now_ms < end)
    }

    /// The pin as it is stored.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if a name is too long.
    pub fn encode(&self) -> Result<Bytes> {
        let mut out = head(PIN_MAGIC);
        out.name(self.job.as_str())?;
        write_position(&mut out, self.position);
        out.u128(self.unique.0);
        out.name(&self.holder)?;
        out.u64(self.created_ms);
        out.option(self.expires_ms, |out, end| {
            out.u64(end);
            Ok(())
        })?;
        Ok(sealed(out))
    }

    /// Reads a pin in the directory of `job` that was stored as `object`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] for damage, [`crate::ErrorKind::Unsupported`] for an
    /// unknown version, [`crate::ErrorKind::Mismatch`] for another job's or name's.
    pub fn decode(object: ObjectName, job: &JobId, bytes: &[u8]) -> Result<Self> {
        let read = |bytes| {
            let mut input = opened("pin", PIN_MAGIC, bytes)?;
            let pin = Self {
                job: read_job(&mut input)?,
                position: read_position(&mut input)?,
                unique: UniqueId(input.u128()?),
                holder: input.name()?.to_owned(),
                created_ms: input.u64()?,
                expires_ms: input.option(crate::wire::Reader::u64)?,
            };
            input.end()?;
            check_owner(job, &pin.job, object, ObjectName::Pin(pin.unique))?;
            Ok(pin)
        };
        read(bytes).map_err(|e: Error| e.with("object", object))
    }
}

/// What lies under `claimed/{epoch}-{id}`: a savepoint that another job has taken over, so that
/// its own job keeps it no longer than that job's pin does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavepointClaim {
    /// The job whose savepoint it is.
    pub job: JobId,
    /// The savepoint.
    pub position: Position,
    /// What tells this claim from every other attempt at the same savepoint.
    pub unique: UniqueId,
    /// The job that it belongs to now.
    pub by: JobId,
    /// When, in milliseconds since 1970. To read; nothing is decided by it.
    pub created_ms: u64,
}

impl SavepointClaim {
    /// The claim as it is stored.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if a name is too long.
    pub fn encode(&self) -> Result<Bytes> {
        let mut out = head(CLAIMED_MAGIC);
        out.name(self.job.as_str())?;
        write_position(&mut out, self.position);
        out.u128(self.unique.0);
        out.name(self.by.as_str())?;
        out.u64(self.created_ms);
        Ok(sealed(out))
    }

    /// Reads a claim in the directory of `job` that was stored as `object`.
    ///
    /// # Errors
    /// As [`Pin::decode`].
    pub fn decode(object: ObjectName, job: &JobId, bytes: &[u8]) -> Result<Self> {
        let read = |bytes| {
            let mut input = opened("savepoint claim", CLAIMED_MAGIC, bytes)?;
            let claim = Self {
                job: read_job(&mut input)?,
                position: read_position(&mut input)?,
                unique: UniqueId(input.u128()?),
                by: read_job(&mut input)?,
                created_ms: input.u64()?,
            };
            input.end()?;
            let Position { epoch, id } = claim.position;
            check_owner(job, &claim.job, object, ObjectName::Claimed(epoch, id))?;
            Ok(claim)
        };
        read(bytes).map_err(|e: Error| e.with("object", object))
    }
}

//! Claims and condemn records: small objects under one frame.
//!
//! ```text
//! | magic 8 | version 4 | flags 4 (0) | body | BLAKE3 of all before 32 |
//! ```

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Digest, Epoch, JobId, UniqueId};
use crate::manifest::frame::check_version;
use crate::manifest::limits::RECORD_BYTES_MAX;
use crate::manifest::meta::{read_position, write_position};
use crate::manifest::model::Position;
use crate::names::ObjectName;
use crate::wire::{Reader, Writer};

const CLAIM_MAGIC: [u8; 8] = *b"SLEPOCH\n";
const CONDEMN_MAGIC: [u8; 8] = *b"SLCONDM\n";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;
const POSITION_BYTES: usize = 16;

/// What lies under `epochs/{epoch}`: who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The job.
    pub job: JobId,
    /// The epoch that is claimed.
    pub epoch: Epoch,
    /// What tells this claim from every other attempt at the same epoch.
    pub unique: UniqueId,
    /// When, in milliseconds since 1970. To read; nothing is decided by it.
    pub created_ms: u64,
}

impl Claim {
    /// The claim as it is stored.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if a name is too long.
    pub fn encode(&self) -> Result<Bytes> {
        let mut out = head(CLAIM_MAGIC);
        out.name(self.job.as_str())?;
        out.u64(self.epoch.0);
        out.u128(self.unique.0);
        out.u64(self.created_ms);
        Ok(sealed(out))
    }

    /// Reads a claim of `job` that was stored as `object`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for damage, [`ErrorKind::Unsupported`] for an unknown version,
    /// [`ErrorKind::Mismatch`] for another job's or epoch's.
    pub fn decode(object: ObjectName, job: &JobId, bytes: &[u8]) -> Result<Self> {
        let read = |bytes| {
            let mut input = opened("claim", CLAIM_MAGIC, bytes)?;
            let claim = Self {
                job: read_job(&mut input)?,
                epoch: Epoch(input.u64()?),
                unique: UniqueId(input.u128()?),
                created_ms: input.u64()?,
            };
            input.end()?;
            check_owner(job, &claim.job, object, ObjectName::Epoch(claim.epoch))?;
            Ok(claim)
        };
        read(bytes).map_err(|e: Error| e.with("object", object))
    }
}

/// What lies under `collect/{epoch}-{index}`: which snapshots may be deleted, by rule.
///
/// A rule rather than a list of names: it also condemns a manifest that lands late.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condemn {
    /// The job.
    pub job: JobId,
    /// The epoch of the coordinator that collects.
    pub epoch: Epoch,
    /// The record's number in its epoch.
    pub index: u64,
    /// What tells this record from every other attempt at the same name.
    pub unique: UniqueId,
    /// Every position below this one is condemned ..
    pub below: Position,
    /// .. except these.
    pub except: BTreeSet<Position>,
}

impl Condemn {
    /// Whether the snapshot at `position` is condemned.
    pub fn condemns(&self, position: Position) -> bool {
        position < self.below && !self.except.contains(&position)
    }

    /// The record as it is stored.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if it is larger than [`RECORD_BYTES_MAX`].
    pub fn encode(&self) -> Result<Bytes> {
        let mut out = head(CONDEMN_MAGIC);
        out.name(self.job.as_str())?;
        out.u64(self.epoch.0);
        out.u64(self.index);
        out.u128(self.unique.0);
        write_position(&mut out, self.below);
        out.count(self.except.len())?;
        for position in &self.except {
            write_position(&mut out, *position);
        }
        let bytes = sealed(out);
        if bytes.len() as u64 > RECORD_BYTES_MAX {
            return Err(
                Error::new(ErrorKind::Limit, "a condemn record is too large")
                    .with("bytes_max", RECORD_BYTES_MAX)
                    .with("got", bytes.len()),
            );
        }
        Ok(bytes)
    }

    /// Reads a condemn record of `job` that was stored as `object`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for damage, [`ErrorKind::Unsupported`] for an unknown version,
    /// [`ErrorKind::Mismatch`] for another job's or place's.
    pub fn decode(object: ObjectName, job: &JobId, bytes: &[u8]) -> Result<Self> {
        let read = |bytes| {
            let mut input = opened("condemn record", CONDEMN_MAGIC, bytes)?;
            let (owner, epoch) = (read_job(&mut input)?, Epoch(input.u64()?));
            let (index, unique) = (input.u64()?, UniqueId(input.u128()?));
            let below = read_position(&mut input)?;
            let except = input.list(POSITION_BYTES, read_position)?;
            input.end()?;
            if !except.is_sorted_by(|a, b| a < b) {
                return Err(input.corrupt("the positions of a condemn record do not ascend"));
            }
            check_owner(job, &owner, object, ObjectName::Collect(epoch, index))?;
            Ok(Self {
                job: owner,
                epoch,
                index,
                unique,
                below,
                except: except.into_iter().collect(),
            })
        };
        read(bytes).map_err(|e: Error| e.with("object", object))
    }
}

pub(super) fn head(magic: [u8; 8]) -> Writer {
    let mut out = Writer::default();
    out.raw(&magic);
    out.u32(VERSION);
    out.u32(0);
    out
}

pub(super) fn sealed(out: Writer) -> Bytes {
    let mut bytes = out.finish();
    let digest = Digest::of(&bytes);
    bytes.extend(digest.0);
    bytes.into()
}

/// The body of a record whose magic, digest, version and flags are right.
pub(super) fn opened<'a>(
    section: &'static str,
    magic: [u8; 8],
    bytes: &'a [u8],
) -> Result<Reader<'a>> {
    let whole = Reader::new(section, bytes, 0);
    if bytes.len() < HEAD_BYTES + DIGEST_BYTES {
        return Err(whole.corrupt("a record is cut short").expected_got(
            format_args!("at least {} bytes", HEAD_BYTES + DIGEST_BYTES),
            format_args!("{} bytes", bytes.len()),
        ));
    }
    let (body, stored) = bytes.split_at(bytes.len() - DIGEST_BYTES);
    if Digest::of(body).0 != stored {
        return Err(whole.corrupt("a record's digest differs"));
    }
    let mut input = Reader::new(section, body, 0);
    let got = input.raw(magic.len())?;
    if got != magic {
        return Err(input
            .corrupt("a record of another kind")
            .expected_got(magic.escape_ascii(), got.escape_ascii()));
    }
    check_version(section, input.u32()?)?;
    if input.u32()? != 0 {
        return Err(input.corrupt("reserved bytes are not zero"));
    }
    Ok(input)
}

pub(super) fn read_job(input: &mut Reader<'_>) -> Result<JobId> {
    JobId::new(input.name()?).map_err(|_| input.corrupt("a job has no name"))
}

pub(super) fn check_owner(
    job: &JobId,
    got_job: &JobId,
    object: ObjectName,
    got: ObjectName,
) -> Result<()> {
    if job != got_job {
        return Err(
            Error::new(ErrorKind::Mismatch, "an object of another job").expected_got(job, got_job)
        );
    }
    if object != got {
        return Err(
            Error::new(ErrorKind::Mismatch, "a record lies under another's name")
                .expected_got(object, got),
        );
    }
    Ok(())
}

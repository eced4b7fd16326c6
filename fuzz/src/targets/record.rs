//! Claims, condemn records and pins: decoded, they encode to the same bytes.

use backend_core::manifest::{Claim, Condemn, Pin, SavepointClaim};
use backend_core::names::ObjectName;
use backend_core::{Epoch, ErrorKind, JobId, Position, SnapshotId, UniqueId};

use crate::cursor::Cursor;
use crate::memory::bounded;
use crate::targets::check_refusal;

/// The set of a condemn record's positions beside the list that it is made of.
const BYTES_PER_BYTE: usize = 8;
const HEAD_BYTES: usize = 16;

pub(super) fn check(bytes: &[u8]) -> bool {
    let owner = owner(bytes);
    let (job, epoch, index) = owner.unwrap_or_else(|| (job("job"), Epoch(1), 0));
    let is_claim = check_claim(&job, epoch, bytes);
    let is_condemn = check_condemn(&job, epoch, index, bytes);
    is_claim | is_condemn | check_pin(&job, bytes) | check_taken(&job, epoch, index, bytes)
}

fn job(name: &str) -> JobId {
    JobId::new(name).expect("the name is short and not empty")
}

/// Whose record it is, and which, as far as the bytes say: a store asks for what it will get.
fn owner(bytes: &[u8]) -> Option<(JobId, Epoch, u64)> {
    let mut fields = Cursor::new(bytes);
    fields.take(HEAD_BYTES)?;
    let name = std::str::from_utf8(fields.blob()?).ok()?;
    let (epoch, index) = (fields.u64()?, fields.u64()?);
    Some((JobId::new(name).ok()?, Epoch(epoch), index))
}

fn check_claim(job_id: &JobId, epoch: Epoch, bytes: &[u8]) -> bool {
    let object = ObjectName::Epoch(epoch);
    let bytes_max = BYTES_PER_BYTE * bytes.len();
    let decode = |job: &JobId| Claim::decode(object, job, bytes);
    match bounded("a claim", bytes_max, || decode(job_id)) {
        Ok(claim) => {
            assert_eq!(claim.encode().expect("encodes again"), bytes);
            let other = decode(&job("another")).map_err(|e| e.kind());
            assert!(*job_id == job("another") || other == Err(ErrorKind::Mismatch));
            true
        }
        Err(e) => {
            check_refusal(&e);
            false
        }
    }
}

fn check_condemn(job: &JobId, epoch: Epoch, index: u64, bytes: &[u8]) -> bool {
    let object = ObjectName::Collect(epoch, index);
    let bytes_max = BYTES_PER_BYTE * bytes.len();
    let decode = || Condemn::decode(object, job, bytes);
    match bounded("a condemn record", bytes_max, decode) {
        Ok(condemn) => {
            assert_eq!(condemn.encode().expect("encodes again"), bytes);
            assert!(!condemn.condemns(condemn.below));
            assert!(condemn.except.iter().all(|kept| !condemn.condemns(*kept)));
            let first = Position::new(Epoch(0), SnapshotId(0));
            let spared = condemn.except.contains(&first) || condemn.below == first;
            assert_eq!(condemn.condemns(first), !spared);
            true
        }
        Err(e) => {
            check_refusal(&e);
            false
        }
    }
}

fn check_pin(job: &JobId, bytes: &[u8]) -> bool {
    let object = ObjectName::Pin(pinned(bytes).unwrap_or(UniqueId(0)));
    let bytes_max = BYTES_PER_BYTE * bytes.len();
    match bounded("a pin", bytes_max, || Pin::decode(object, job, bytes)) {
        Ok(pin) => {
            assert_eq!(pin.encode().expect("encodes again"), bytes);
            let end = pin.expires_ms.unwrap_or(u64::MAX);
            assert_eq!(pin.holds_at(end), pin.expires_ms.is_none());
            true
        }
        Err(e) => {
            check_refusal(&e);
            false
        }
    }
}

/// The name of the pin, as far as the bytes say.
fn pinned(bytes: &[u8]) -> Option<UniqueId> {
    let mut fields = Cursor::new(bytes);
    fields.take(HEAD_BYTES)?;
    fields.blob()?;
    let (_epoch, _id) = (fields.u64()?, fields.u64()?);
    fields.u128().map(UniqueId)
}

/// A savepoint's claim begins as a condemn record does, with a position instead of a number.
fn check_taken(job: &JobId, epoch: Epoch, id: u64, bytes: &[u8]) -> bool {
    let object = ObjectName::Claimed(epoch, SnapshotId(id));
    let bytes_max = BYTES_PER_BYTE * bytes.len();
    let decode = || SavepointClaim::decode(object, job, bytes);
    match bounded("a savepoint's claim", bytes_max, decode) {
        Ok(claim) => {
            assert_eq!(claim.encode().expect("encodes again"), bytes);
            true
        }
        Err(e) => {
            check_refusal(&e);
            false
        }
    }
}

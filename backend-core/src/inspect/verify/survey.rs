//! What lies in a job's directory besides snapshots.

use crate::error::{Error, ErrorKind, Result};
use crate::ids::Epoch;
use crate::inspect::verify::fault::FaultKind;
use crate::inspect::verify::findings::{Findings, of_object};
use crate::manifest::limits::RECORD_BYTES_MAX;
use crate::manifest::{Claim, Condemn, Position};
use crate::names::{Folder, ObjectName};
use crate::storage::Listed;
use crate::store::Remote;

/// The objects of a folder with their sizes; what else lies there is a fault that hurts no
/// snapshot, but stops whoever lists the folder.
pub(super) async fn list(
    remote: &Remote,
    folder: Folder,
    findings: &mut Findings,
) -> Result<Vec<(ObjectName, u64)>> {
    let mut objects = Vec::new();
    for listed in remote.list_all(folder).await? {
        match listed {
            Listed::Object(object) => objects.push((object.name, object.bytes)),
            Listed::Stranger(name, bytes) => {
                let e = Error::new(ErrorKind::Corrupt, "a folder holds a stranger")
                    .with("folder", folder.as_str())
                    .with("bytes", bytes);
                findings.add(name, FaultKind::Name, e, Vec::new());
            }
        }
    }
    objects.sort_unstable();
    Ok(objects)
}

/// The condemn records that can be read.
pub(super) async fn condemned(remote: &Remote, findings: &mut Findings) -> Result<Vec<Condemn>> {
    let mut condemned = Vec::new();
    for (object, _) in list(remote, Folder::Collect, findings).await? {
        let bytes = record(remote, object).await?;
        match bytes.and_then(|bytes| Condemn::decode(object, &remote.job, &bytes)) {
            Ok(record) => condemned.push(record),
            Err(e) => findings.add(object, FaultKind::Record, e, Vec::new()),
        }
    }
    Ok(condemned)
}

/// Whether the claims can be read and have no gaps.
pub(super) async fn check_claims(remote: &Remote, findings: &mut Findings) -> Result<()> {
    let mut expected = 1;
    for (object, _) in list(remote, Folder::Epochs, findings).await? {
        let ObjectName::Epoch(epoch) = object else {
            continue;
        };
        if epoch.0 > expected {
            let e = Error::new(ErrorKind::Corrupt, "an epoch is missing")
                .with("next", epoch)
                .with("count", epoch.0 - expected);
            let missing = ObjectName::Epoch(Epoch(expected));
            findings.add(missing, FaultKind::Record, e, Vec::new());
        }
        expected = epoch.0.saturating_add(1);
        let bytes = record(remote, object).await?;
        let claim = bytes.and_then(|bytes| Claim::decode(object, &remote.job, &bytes));
        if let Err(e) = claim {
            findings.add(object, FaultKind::Record, e, Vec::new());
        }
    }
    Ok(())
}

/// The bytes of a record, or what is wrong with it.
async fn record(remote: &Remote, object: ObjectName) -> Result<Result<bytes::Bytes>> {
    Ok(match remote.get(object, RECORD_BYTES_MAX).await {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(Error::new(ErrorKind::NotFound, "an object is missing")),
        Err(e) => Err(of_object(e)?),
    })
}

/// Where an object of state stands in its job: what it was written for.
pub(super) fn written_for(object: ObjectName) -> Option<Position> {
    match object {
        ObjectName::Segment(name) => Some(Position::new(name.epoch, name.snapshot)),
        ObjectName::Parts(name) => Some(Position::new(name.epoch, name.snapshot)),
        _ => None,
    }
}

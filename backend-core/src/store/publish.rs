//! The drivers of claims and commits: they do what the protocol's machines ask for.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Epoch, UniqueId};
use crate::manifest::limits::{MANIFEST_BYTES_MAX, RECORD_BYTES_MAX};
use crate::manifest::{Claim, Position};
use crate::names::{Folder, ObjectName, PartsName};
use crate::store::load::decode;
use crate::store::protocol::{ClaimStep, Claiming, CommitStep, Committing, CreateAnswer, fenced};
use crate::store::remote::{Remote, Tries};

/// Claims the next epoch.
///
/// # Errors
/// [`ErrorKind::Fenced`] if another coordinator claimed it at the same time;
/// [`ErrorKind::InDoubt`] if that cannot be told: a later claim takes a later epoch.
pub(super) async fn claim_epoch(remote: &Remote) -> Result<Epoch> {
    let unique = UniqueId(remote.env.unique());
    let created_ms = remote.env.now_ms();
    let mut claiming = Claiming::new(unique);
    let mut tries = Tries::default();
    loop {
        match claiming.step() {
            ClaimStep::ListEpochs => {
                let listed = remote.list(Folder::Epochs).await?;
                let epochs = listed.iter().filter_map(|object| match object.name {
                    ObjectName::Epoch(epoch) => Some(epoch),
                    _ => None,
                });
                let epochs: Vec<Epoch> = epochs.collect();
                check_owner(remote, epochs.last().copied()).await?;
                claiming.on_epochs(&epochs)?;
            }
            ClaimStep::Create(epoch) => {
                let claim = Claim {
                    job: remote.job.clone(),
                    epoch,
                    unique,
                    created_ms,
                };
                let answer = create(
                    remote,
                    ObjectName::Epoch(epoch),
                    claim.encode()?,
                    &mut tries,
                );
                claiming.on_create(answer.await?);
            }
            ClaimStep::ReadBack(epoch) => {
                let object = ObjectName::Epoch(epoch);
                let bytes = remote.get(object, RECORD_BYTES_MAX).await;
                let found = match bytes.map_err(|e| in_doubt(object, e))? {
                    Some(bytes) => Some(Claim::decode(object, &remote.job, &bytes)?.unique),
                    None => None,
                };
                claiming.on_read_back(found);
            }
            ClaimStep::Claimed(epoch) => return Ok(epoch),
            ClaimStep::Lost(epoch) => return Err(fenced(epoch, epoch)),
        }
    }
}

/// Whether the last claim is of the same job: a mistyped name is not to stop another job. What a
/// claim that is damaged says, nobody knows.
async fn check_owner(remote: &Remote, last: Option<Epoch>) -> Result<()> {
    let Some(epoch) = last else {
        return Ok(());
    };
    let object = ObjectName::Epoch(epoch);
    let Some(bytes) = remote.get(object, RECORD_BYTES_MAX).await? else {
        return Ok(());
    };
    match Claim::decode(object, &remote.job, &bytes) {
        Err(e) if e.kind() == ErrorKind::Mismatch => Err(e),
        _ => Ok(()),
    }
}

/// Creates the manifest `bytes` at `position` and looks for a successor. The answer is
/// `Confirmed`, `Fenced` or `Taken`.
///
/// # Errors
/// [`ErrorKind::InDoubt`]: call again with the same machine and bytes. [`ErrorKind::Refused`] if
/// this call has created nothing.
pub(super) async fn publish(
    remote: &Remote,
    position: Position,
    committing: &mut Committing,
    bytes: &Bytes,
) -> Result<CommitStep> {
    let object = position.object();
    let mut tries = Tries::default();
    loop {
        match committing.step() {
            CommitStep::Create => {
                let answer = create(remote, object, bytes.clone(), &mut tries).await?;
                committing.on_create(answer);
            }
            CommitStep::ReadBack => {
                let found = remote.get(object, MANIFEST_BYTES_MAX).await;
                let found = match found.map_err(|e| in_doubt(object, e))? {
                    Some(found) => Some(decode(&remote.job, object, &found)?.0.meta.unique),
                    None => None,
                };
                committing.on_read_back(found);
            }
            CommitStep::Look(epoch) => {
                let next = ObjectName::Epoch(epoch);
                let size = remote.size(next).await.map_err(|e| in_doubt(object, e))?;
                committing.on_look(size.is_some());
            }
            done @ (CommitStep::Confirmed | CommitStep::Fenced(_) | CommitStep::Taken(_)) => {
                return Ok(done);
            }
        }
    }
}

/// Stores small segments for which a manifest has no room. Their name is nobody else's, so an
/// object that is there is ours.
///
/// # Errors
/// [`ErrorKind::Transient`] if the store gives no clear answer.
pub(super) async fn store_parts(remote: &Remote, name: PartsName, bytes: Bytes) -> Result<()> {
    let object = ObjectName::Parts(name);
    let mut tries = Tries::default();
    loop {
        let (answer, doubt) = remote.create_once(object, bytes.clone()).await?;
        if answer != CreateAnswer::InDoubt {
            return Ok(());
        }
        let unclear = Error::new(ErrorKind::Transient, "small state could not be stored")
            .with("object", object);
        let unclear = match doubt {
            Some(doubt) => unclear.because(doubt),
            None => unclear,
        };
        remote.pause(&mut tries, unclear).await?;
    }
}

/// One try to create an object, with a pause after it if its outcome is not known.
///
/// # Errors
/// [`ErrorKind::Refused`] only if it is the first of `tries`.
pub(super) async fn create(
    remote: &Remote,
    object: ObjectName,
    bytes: Bytes,
    tries: &mut Tries,
) -> Result<CreateAnswer> {
    let (answer, doubt) = match remote.create_once(object, bytes).await {
        // An earlier try may still take effect.
        Err(e) if e.kind() == ErrorKind::Refused && !tries.is_first() => {
            return Err(in_doubt(object, e));
        }
        outcome => outcome?,
    };
    match (answer, doubt) {
        (CreateAnswer::Created, _) => {}
        (_, Some(doubt)) => remote.pause(tries, in_doubt(object, doubt)).await?,
        // A name that is taken and cannot be read back is asked for again: that is bounded, too.
        (_, None) => {
            let hidden = Error::new(ErrorKind::InDoubt, "an object exists and is not found");
            remote.pause(tries, hidden.with("object", object)).await?;
        }
    }
    Ok(answer)
}

pub(super) fn in_doubt(object: ObjectName, e: Error) -> Error {
    Error::new(
        ErrorKind::InDoubt,
        "it is not known whether an object was created",
    )
    .with("object", object)
    .because(e)
}

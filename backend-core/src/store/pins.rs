//! Keeping a snapshot of a job that goes on: pins of readers, and savepoints that change hands.

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{JobId, UniqueId};
use crate::manifest::{Pin, Position, SnapshotKind};
use crate::names::ObjectName;
use crate::store::pinning::{pin, renew, take_over};
use crate::store::remote::Remote;
use crate::store::snapshot::Snapshot;
use crate::store::snapshot_store::SnapshotStore;

/// A snapshot that is not collected as long as it is pinned.
///
/// The pin is an object of the job's directory: it outlives this value and its process until
/// [`Pinned::release`] or the end of its lease. A lease that has ended makes reads fail with
/// [`ErrorKind::NotFound`] sooner or later, and never gives wrong data: names are not used again.
#[derive(Debug)]
pub struct Pinned {
    remote: Remote,
    pin: Pin,
    snapshot: Snapshot,
}

impl Pinned {
    /// The snapshot.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The pin.
    pub fn pin(&self) -> &Pin {
        &self.pin
    }

    /// Holds the snapshot for `lease_ms` from now on, or for good.
    ///
    /// # Errors
    /// As [`SnapshotStore::pin`], also if a lease has ended and the snapshot is condemned; the
    /// old pin stays as it is.
    pub async fn renew(&mut self, lease_ms: Option<u64>) -> Result<()> {
        self.pin = renew(&self.remote, &self.pin, lease_ms).await?;
        Ok(())
    }

    /// Lets go of the snapshot.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if the store does not answer: the pin may stay. It is removed by
    /// [`SnapshotStore::unpin`].
    pub async fn release(self) -> Result<()> {
        self.remote.delete(ObjectName::Pin(self.pin.unique)).await
    }
}

impl SnapshotStore {
    /// Keeps a snapshot from being collected, for `lease_ms` or until it is released. `holder`
    /// says who reads, for people.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the snapshot is condemned or not there; those of
    /// [`SnapshotStore::load`].
    pub async fn pin(
        &self,
        position: Position,
        holder: &str,
        lease_ms: Option<u64>,
    ) -> Result<Pinned> {
        self.check_probed().await?;
        let remote = self.remote();
        let pin = pin(remote, position, holder, lease_ms).await?;
        match remote.load(position).await {
            Ok(snapshot) => Ok(Pinned {
                remote: remote.clone(),
                pin,
                snapshot,
            }),
            Err(e) => {
                // A pin of what cannot be read is of no use; one that stays harms little.
                let _ = remote.delete(ObjectName::Pin(pin.unique)).await;
                Err(e)
            }
        }
    }

    /// All pins, those whose lease has ended among them.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] and others if one cannot be read.
    pub async fn pins(&self) -> Result<Vec<Pin>> {
        self.remote().pins().await
    }

    /// Removes a pin, whoever made it. It is no error if there is none of that name.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if the store does not answer.
    pub async fn unpin(&self, unique: UniqueId) -> Result<()> {
        self.remote().delete(ObjectName::Pin(unique)).await
    }

    /// Takes a savepoint of this job over for job `by`: its own job keeps it no longer for being
    /// a savepoint, only for the pin that is returned. Job `by` restores from it, takes a
    /// snapshot of its own, and releases the pin; then this job's next collection deletes it.
    /// The pin has no lease: a job that dies before it releases it calls again, gets another pin,
    /// and removes the old one by [`SnapshotStore::unpin`].
    ///
    /// # Errors
    /// [`ErrorKind::InDoubt`] if it is not known whether it belongs to job `by`: call again. The
    /// pin stays. [`ErrorKind::Mismatch`] if it belongs to a third job by now, which the error names;
    /// [`ErrorKind::Invalid`] if it is no savepoint; those of [`SnapshotStore::pin`].
    pub async fn claim_savepoint(&self, position: Position, by: &JobId) -> Result<Pinned> {
        let pinned = self.pin(position, by.as_str(), None).await?;
        let claimed = if pinned.snapshot.kind() == SnapshotKind::Savepoint {
            take_over(self.remote(), position, by).await
        } else {
            Err(
                Error::new(ErrorKind::Invalid, "the snapshot is no savepoint")
                    .with("snapshot", position)
                    .with("kind", pinned.snapshot.kind()),
            )
        };
        match claimed {
            Ok(()) => Ok(pinned),
            // It may be this job's by now, and then only the pin keeps it.
            Err(e) if matches!(e.kind(), ErrorKind::InDoubt | ErrorKind::Transient) => Err(e),
            Err(e) => {
                let _ = pinned.release().await;
                Err(e)
            }
        }
    }
}

//! Keeping a snapshot of a job that goes on: pins of readers, and savepoints that change hands.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{JobId, UniqueId};
use crate::manifest::limits::RECORD_BYTES_MAX;
use crate::manifest::{Pin, Position, SavepointClaim, SnapshotKind};
use crate::names::{Folder, ObjectName};
use crate::store::protocol::{Settle, SettleStep};
use crate::store::publish::{create, in_doubt};
use crate::store::remote::{Remote, Tries};
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

/// The pins of a job.
#[derive(Debug, Default)]
pub(super) struct Pins {
    /// What is pinned.
    pub(super) held: BTreeSet<Position>,
    /// Pins whose lease has ended.
    pub(super) expired: Vec<ObjectName>,
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
    /// As [`SnapshotStore::pin`]; the old pin stays as it is.
    pub async fn renew(&mut self, lease_ms: Option<u64>) -> Result<()> {
        let renewed = pin(&self.remote, self.pin.position, &self.pin.holder, lease_ms).await?;
        let old = std::mem::replace(&mut self.pin, renewed);
        self.remote.delete(ObjectName::Pin(old.unique)).await
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
    /// Calling again for the same job gives another pin.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] if it belongs to a third job by now, which the error names;
    /// [`ErrorKind::Invalid`] if it is no savepoint; those of [`SnapshotStore::pin`].
    pub async fn claim_savepoint(
        &self,
        position: Position,
        by: &JobId,
        lease_ms: Option<u64>,
    ) -> Result<Pinned> {
        let pinned = self.pin(position, by.as_str(), lease_ms).await?;
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
            Err(e) => {
                let _ = pinned.release().await;
                Err(e)
            }
        }
    }
}

impl Remote {
    async fn pins(&self) -> Result<Vec<Pin>> {
        let mut pins = Vec::new();
        for object in self.list(Folder::Pins).await? {
            // One that is gone was released meanwhile.
            if let Some(bytes) = self.get(object.name, RECORD_BYTES_MAX).await? {
                pins.push(Pin::decode(object.name, &self.job, &bytes)?);
            }
        }
        Ok(pins)
    }

    /// The savepoints that another job has taken over.
    pub(super) async fn claimed_savepoints(&self) -> Result<BTreeSet<Position>> {
        let claimed = self.list(Folder::Claimed).await?;
        let position_of = |name: ObjectName| match name {
            ObjectName::Claimed(epoch, id) => Some(Position::new(epoch, id)),
            _ => None,
        };
        Ok(claimed.iter().filter_map(|o| position_of(o.name)).collect())
    }
}

impl Pins {
    pub(super) async fn read(remote: &Remote) -> Result<Self> {
        let now_ms = remote.env.now_ms();
        let mut pins = Self::default();
        for pin in remote.pins().await? {
            if pin.holds_at(now_ms) {
                pins.held.insert(pin.position);
            } else {
                pins.expired.push(ObjectName::Pin(pin.unique));
            }
        }
        Ok(pins)
    }
}

/// Pins first, then reads the condemn records: a collection that has not seen the pin has written
/// its record before.
async fn pin(
    remote: &Remote,
    position: Position,
    holder: &str,
    lease_ms: Option<u64>,
) -> Result<Pin> {
    let created_ms = remote.env.now_ms();
    let pin = Pin {
        job: remote.job.clone(),
        position,
        unique: UniqueId(remote.env.unique()),
        holder: holder.to_owned(),
        created_ms,
        expires_ms: lease_ms.map(|lease| created_ms.saturating_add(lease)),
    };
    let object = ObjectName::Pin(pin.unique);
    settle(remote, object, pin.unique, pin.encode()?, |bytes| {
        Ok(Pin::decode(object, &remote.job, bytes)?.unique)
    })
    .await?;
    let is_condemned = remote
        .condemned()
        .await
        .map(|records| records.iter().any(|record| record.condemns(position)));
    match is_condemned {
        Ok(false) => Ok(pin),
        condemned => {
            let _ = remote.delete(object).await;
            condemned?;
            Err(Error::new(
                ErrorKind::NotFound,
                "the snapshot is condemned: a collection has deleted it, or is about to",
            )
            .with("snapshot", position))
        }
    }
}

async fn take_over(remote: &Remote, position: Position, by: &JobId) -> Result<()> {
    let Position { epoch, id } = position;
    let object = ObjectName::Claimed(epoch, id);
    let claim = SavepointClaim {
        job: remote.job.clone(),
        position,
        unique: UniqueId(remote.env.unique()),
        by: by.clone(),
        created_ms: remote.env.now_ms(),
    };
    let mut owner = by.clone();
    settle(remote, object, claim.unique, claim.encode()?, |bytes| {
        let found = SavepointClaim::decode(object, &remote.job, bytes)?;
        owner = found.by;
        Ok(found.unique)
    })
    .await?;
    if owner == *by {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Mismatch,
        "the savepoint belongs to another job by now",
    )
    .with("object", object)
    .expected_got(by, owner))
}

/// Creates an object that carries `unique`, whatever it takes to learn whether it, or another
/// one, is there. `unique_of` reads the one that is.
async fn settle(
    remote: &Remote,
    object: ObjectName,
    unique: UniqueId,
    bytes: Bytes,
    mut unique_of: impl FnMut(&[u8]) -> Result<UniqueId>,
) -> Result<()> {
    let mut settle = Settle::new(unique);
    let mut tries = Tries::default();
    loop {
        match settle.step() {
            SettleStep::Create => {
                settle.on_create(create(remote, object, bytes.clone(), &mut tries).await?);
            }
            SettleStep::ReadBack => {
                let found = remote.get(object, RECORD_BYTES_MAX).await;
                let found = match found.map_err(|e| in_doubt(object, e))? {
                    Some(bytes) => Some(unique_of(&bytes)?),
                    None => None,
                };
                settle.on_read_back(found);
            }
            SettleStep::Ours | SettleStep::Theirs(_) => return Ok(()),
        }
    }
}

//! Pins and claims of savepoints in a job's directory: made, read and settled.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{JobId, UniqueId};
use crate::manifest::limits::RECORD_BYTES_MAX;
use crate::manifest::{Pin, Position, SavepointClaim};
use crate::names::{Folder, ObjectName};
use crate::store::protocol::{Settle, SettleStep};
use crate::store::publish::{create, in_doubt};
use crate::store::remote::{Remote, Tries};

/// The pins of a job.
#[derive(Debug, Default)]
pub(super) struct Pins {
    /// What is pinned.
    pub(super) held: BTreeSet<Position>,
    /// Pins whose lease has ended.
    pub(super) expired: Vec<ObjectName>,
    /// All pins, and what they pin.
    pub(super) all: Vec<(ObjectName, Position)>,
}

impl Remote {
    pub(super) async fn pins(&self) -> Result<Vec<Pin>> {
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
            pins.all.push((ObjectName::Pin(pin.unique), pin.position));
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
pub(super) async fn pin(
    remote: &Remote,
    position: Position,
    holder: &str,
    lease_ms: Option<u64>,
) -> Result<Pin> {
    let pin = put_pin(remote, position, holder, lease_ms).await?;
    match is_condemned(remote, position).await {
        Ok(false) => Ok(pin),
        condemned => {
            let _ = remote.delete(ObjectName::Pin(pin.unique)).await;
            condemned?;
            Err(condemned_error(position))
        }
    }
}

/// Pins what `old` pins, too. A collection that had condemned it before `old` was seen keeps it
/// as long as there is a pin at every moment, so `old` is left to end by itself in that case.
pub(super) async fn renew(remote: &Remote, old: &Pin, lease_ms: Option<u64>) -> Result<Pin> {
    let position = old.position;
    let pin = put_pin(remote, position, &old.holder, lease_ms).await?;
    let is_held = async {
        if !is_condemned(remote, position).await? {
            remote.delete(ObjectName::Pin(old.unique)).await?;
            return Ok(true);
        }
        Ok(old.holds_at(remote.env.now_ms()) && remote.size(position.object()).await?.is_some())
    };
    match is_held.await {
        Ok(true) => Ok(pin),
        held => {
            let _ = remote.delete(ObjectName::Pin(pin.unique)).await;
            held?;
            Err(condemned_error(position))
        }
    }
}

async fn put_pin(
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
    Ok(pin)
}

async fn is_condemned(remote: &Remote, position: Position) -> Result<bool> {
    let records = remote.condemned().await?;
    Ok(records.iter().any(|record| record.condemns(position)))
}

fn condemned_error(position: Position) -> Error {
    Error::new(
        ErrorKind::NotFound,
        "the snapshot is condemned: a collection has deleted it, or is about to",
    )
    .with("snapshot", position)
}

/// Makes the savepoint at `position` one of job `by`.
pub(super) async fn take_over(remote: &Remote, position: Position, by: &JobId) -> Result<()> {
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

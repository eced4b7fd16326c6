//! Going on from the newest snapshot that is whole, when the last one is not.

use crate::error::{Error, ErrorKind, Result};
use crate::inspect::verify::{Fault, Scope, VerifyOptions, verify};
use crate::manifest::Position;
use crate::store::{Adopt, Coordinator, SnapshotStore};

/// A coordinator that went on from the newest whole snapshot, and what that costs.
#[derive(Debug)]
pub struct Fallback {
    /// The coordinator.
    pub coordinator: Coordinator,
    /// The snapshot that it went on from; `None` for a job that has none.
    pub from: Option<Position>,
    /// The newer snapshots, newest first, that are given up: what was processed since `from` has
    /// to be processed again, and external effects that they committed are not taken back.
    pub lost: Vec<LostSnapshot>,
}

/// A snapshot that is given up.
#[derive(Debug)]
pub struct LostSnapshot {
    /// Its place.
    pub position: Position,
    /// What is wrong with it; at most as many faults as [`VerifyOptions::faults_max`].
    pub faults: Vec<Fault>,
}

/// Claims the next epoch, as [`SnapshotStore::claim`] does, and adopts the newest snapshot that
/// verifies. Newer ones are given up: they stay until the next collection, unless somebody pins
/// them, and nothing builds on them.
///
/// This is an operator's decision, so nothing does it by itself: a claim that finds damage is an
/// error. All bytes of every snapshot that is tried are read.
///
/// # Errors
/// [`ErrorKind::Corrupt`] if no snapshot is whole: the epoch is claimed, nothing was adopted, and
/// nothing is lost. Those of [`SnapshotStore::claim`] and of [`verify`]; condemn records that
/// cannot be read are an error, too.
pub async fn claim_newest_whole(
    store: &SnapshotStore,
    options: &VerifyOptions,
) -> Result<Fallback> {
    let mut options = options.clone();
    options.counts_live = false;
    let epoch = store.claim_epoch().await?;
    let mut lost = Vec::new();
    for position in store.live_positions().await?.into_iter().rev() {
        let report = verify(store, Scope::Snapshot(position), &options).await?;
        if report.newest_whole == Some(position) {
            let coordinator = store.adopt(epoch, Adopt::At(position)).await?;
            return Ok(Fallback {
                coordinator,
                from: Some(position),
                lost,
            });
        }
        lost.push(LostSnapshot {
            position,
            faults: report.faults,
        });
    }
    if lost.is_empty() {
        return Ok(Fallback {
            coordinator: store.adopt(epoch, Adopt::Newest).await?,
            from: None,
            lost,
        });
    }
    let newest = &lost[0];
    let error = Error::new(ErrorKind::Corrupt, "no snapshot of the job is whole")
        .with("snapshots", lost.len())
        .with("newest", newest.position);
    Err(match newest.faults.first() {
        Some(fault) => error.with("object", &fault.object),
        None => error,
    })
}

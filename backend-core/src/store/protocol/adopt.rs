//! Choosing what a new coordinator goes on from.

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Epoch, SnapshotId};
use crate::manifest::{Condemn, Position};

/// What a new coordinator goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseChoice {
    /// The manifest to adopt; `None` for a new job.
    pub base: Option<Position>,
    /// The id of the adoption manifest: above every id that was seen, condemned ones too.
    pub next: SnapshotId,
}

/// The snapshot to go on from: the newest that is not condemned of the highest epoch that has
/// one.
///
/// `manifests` must have been listed before `condemned` was read: a manifest that lands in
/// between is missed, never one that is condemned taken.
pub fn newest<'a>(
    manifests: impl IntoIterator<Item = &'a Position>,
    condemned: &[Condemn],
) -> Option<Position> {
    let is_live = |position: &&Position| !condemned.iter().any(|c| c.condemns(**position));
    manifests.into_iter().filter(is_live).max().copied()
}

/// [`newest`], for the coordinator of `epoch`.
///
/// # Errors
/// [`ErrorKind::Fenced`] if a later epoch has a manifest; [`ErrorKind::Corrupt`] if every
/// manifest is condemned, or this epoch has one although it was just claimed.
pub fn choose_base(
    epoch: Epoch,
    manifests: &[Position],
    condemned: &[Condemn],
) -> Result<BaseChoice> {
    if let Some(later) = manifests
        .iter()
        .map(|p| p.epoch)
        .max()
        .filter(|e| *e > epoch)
    {
        return Err(fenced(epoch, later));
    }
    if let Some(own) = manifests.iter().find(|p| p.epoch == epoch) {
        return Err(Error::new(
            ErrorKind::Corrupt,
            "an epoch that was just claimed has a manifest",
        )
        .with("object", own.object()));
    }
    let base = newest(manifests, condemned);
    if base.is_none() && !manifests.is_empty() {
        return Err(
            Error::new(ErrorKind::Corrupt, "every manifest of the job is condemned")
                .with("count", manifests.len()),
        );
    }
    let highest = manifests.iter().map(|p| p.id.0).max().unwrap_or(0);
    let next = highest.checked_add(1).ok_or_else(|| {
        Error::new(
            ErrorKind::Corrupt,
            "a manifest has the last id that there is",
        )
        .with("id", highest)
    })?;
    Ok(BaseChoice {
        base,
        next: SnapshotId(next),
    })
}

/// The error of a coordinator of `epoch` that was overtaken by `by`.
pub(crate) fn fenced(epoch: Epoch, by: Epoch) -> Error {
    Error::new(ErrorKind::Fenced, "a newer coordinator has claimed the job")
        .with("epoch", epoch)
        .with("fenced_by", by)
}

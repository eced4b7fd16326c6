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

/// Which snapshot a new coordinator is to go on from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adopt {
    /// The last one.
    #[default]
    Newest,
    /// This one, by an operator's wish: what came after it is given up.
    At(Position),
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

/// What the coordinator of `epoch` goes on from: [`newest`], or what was wished.
///
/// # Errors
/// [`ErrorKind::Fenced`] if a later epoch has a manifest; [`ErrorKind::Corrupt`] if every
/// manifest is condemned, or this epoch has one although it was just claimed;
/// [`ErrorKind::NotFound`] if the snapshot that is wished for is condemned or not there.
pub fn choose_base(
    epoch: Epoch,
    manifests: &[Position],
    condemned: &[Condemn],
    adopt: Adopt,
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
    let base = match adopt {
        Adopt::Newest => newest(manifests, condemned),
        Adopt::At(wished) => {
            let wished = manifests.iter().filter(|p| **p == wished);
            let found = newest(wished, condemned);
            Some(found.ok_or_else(|| gone(adopt, manifests, condemned))?)
        }
    };
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

fn gone(adopt: Adopt, manifests: &[Position], condemned: &[Condemn]) -> Error {
    let message = "the snapshot to go on from is condemned or not there";
    let error = Error::new(ErrorKind::NotFound, message);
    let error = match adopt {
        Adopt::At(wished) => error.with("snapshot", wished),
        Adopt::Newest => error,
    };
    match newest(manifests, condemned) {
        Some(newest) => error.with("newest", newest),
        None => error,
    }
}

/// The error of a coordinator of `epoch` that was overtaken by `by`.
pub(crate) fn fenced(epoch: Epoch, by: Epoch) -> Error {
    Error::new(ErrorKind::Fenced, "a newer coordinator has claimed the job")
        .with("epoch", epoch)
        .with("fenced_by", by)
}

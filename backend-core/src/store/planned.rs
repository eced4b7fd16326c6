//! What a collection has decided.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, ErrorKind};
use crate::manifest::Position;
use crate::names::ObjectName;
use crate::store::load::missing;
use crate::store::protocol::{Collecting, KeepReason};
use crate::store::remote::Remote;

/// What a collection knows once it has looked around.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) collecting: Collecting,
    pub(super) kept: BTreeMap<Position, KeepReason>,
    pub(super) condemned: Vec<Position>,
    /// Records that the new one makes unnecessary.
    pub(super) superseded: Vec<ObjectName>,
    /// Pins that hold no more, or what was gone before they were made.
    pub(super) idle_pins: Vec<ObjectName>,
    pub(super) pinned: BTreeSet<Position>,
}

/// Why a manifest that is kept is gone.
pub(super) async fn gone(remote: &Remote, position: Position) -> Error {
    match remote.condemned().await {
        Ok(records) if records.iter().any(|record| record.condemns(position)) => Error::new(
            ErrorKind::Declined,
            "a later collection has deleted what this one would keep",
        )
        .with("snapshot", position),
        Ok(_) => missing(position.object()),
        Err(e) => e,
    }
}

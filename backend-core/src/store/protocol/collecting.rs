//! Collecting: say by rule what is condemned, look for a successor, look for pins, then sweep.

use std::collections::BTreeSet;

use crate::ids::{Epoch, SnapshotId, UniqueId};
use crate::manifest::{Condemn, Position};
use crate::names::ObjectName;
use crate::store::protocol::ledger::{Holds, written_for};
use crate::store::protocol::settle::{CreateAnswer, Settle, SettleStep};

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectStep {
    /// Create the condemn record, with the same bytes at every try.
    Create,
    /// Read the unique id of the record.
    ReadBack,
    /// Look whether this epoch exists.
    Look(Epoch),
    /// List the pins.
    ListPins,
    /// Delete what the rule dooms: manifests first, then objects of state.
    Sweep(Sweep),
    /// A successor is there: delete nothing, and stop.
    Fenced(Epoch),
    /// Another record has the name. Only another coordinator of our epoch could have put it
    /// there: delete nothing, and stop.
    Taken(UniqueId),
}

/// One collection by the coordinator of the highest epoch, after its adoption.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Collecting {
    record: Condemn,
    floor: SnapshotId,
    settle: Settle,
    successor: Option<bool>,
    pinned: Option<BTreeSet<Position>>,
}

impl Collecting {
    /// Condemns what `record` says. `holds` is what the ledger held when the record's exceptions
    /// were chosen.
    pub fn new(record: Condemn, holds: &Holds) -> Self {
        Self {
            settle: Settle::new(record.unique),
            floor: holds.floor,
            record,
            successor: None,
            pinned: None,
        }
    }

    /// The record.
    pub fn record(&self) -> &Condemn {
        &self.record
    }

    /// What to do next.
    pub fn step(&self) -> CollectStep {
        let next = Epoch(self.record.epoch.0 + 1);
        match (self.settle.step(), self.successor, &self.pinned) {
            (SettleStep::Create, ..) => CollectStep::Create,
            (SettleStep::ReadBack, ..) => CollectStep::ReadBack,
            (SettleStep::Theirs(unique), ..) => CollectStep::Taken(unique),
            (SettleStep::Ours, None, _) => CollectStep::Look(next),
            (SettleStep::Ours, Some(true), _) => CollectStep::Fenced(next),
            (SettleStep::Ours, Some(false), None) => CollectStep::ListPins,
            (SettleStep::Ours, Some(false), Some(pinned)) => {
                CollectStep::Sweep(Sweep::new(&self.record, self.floor, pinned))
            }
        }
    }

    /// A try to create the record ended.
    pub fn on_create(&mut self, answer: CreateAnswer) {
        self.settle.on_create(answer);
    }

    /// The record was read: it carries `found`, or is not there.
    pub fn on_read_back(&mut self, found: Option<UniqueId>) {
        self.settle.on_read_back(found);
    }

    /// The look ended. One that came before the record was known to be there proves nothing and
    /// is not taken.
    pub fn on_look(&mut self, successor_exists: bool) {
        if self.settle.step() == SettleStep::Ours {
            self.successor.get_or_insert(successor_exists);
        }
    }

    /// The snapshots that are pinned. Only a list from after the record is taken: whoever pins
    /// later sees the record.
    pub fn on_pins(&mut self, pinned: BTreeSet<Position>) {
        if self.settle.step() == SettleStep::Ours && self.successor == Some(false) {
            self.pinned.get_or_insert(pinned);
        }
    }
}

/// What may be deleted. It stays right however late it is carried out: what is confirmed later
/// builds on what is spared, and on objects above the floor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The last confirmed snapshot.
    below: Position,
    /// The lowest base of any pending snapshot.
    floor: SnapshotId,
    /// The snapshots below that stay.
    spared: BTreeSet<Position>,
}

impl Sweep {
    /// What goes by `record` while `pinned` are pinned. It may be carried out only as
    /// [`Collecting`] says; before that it tells what would go.
    pub fn new(record: &Condemn, floor: SnapshotId, pinned: &BTreeSet<Position>) -> Self {
        Self {
            below: record.below,
            floor,
            spared: record.except.union(pinned).copied().collect(),
        }
    }

    /// The snapshots whose objects are to be kept: those that are spared, and the last confirmed
    /// one. A spared one may be gone already, if it was pinned too late.
    pub fn kept(&self) -> impl Iterator<Item = Position> {
        self.spared.iter().copied().chain([self.below])
    }

    /// Whether the manifest at `position` goes.
    pub fn dooms_manifest(&self, position: Position) -> bool {
        self.is_below(position) && !self.spared.contains(&position)
    }

    fn is_below(&self, position: Position) -> bool {
        position < self.below
    }

    /// Whether nobody who still leads creates `object`, a claim, a manifest or a record.
    pub fn is_past(&self, object: &ObjectName) -> bool {
        match *object {
            ObjectName::Epoch(epoch) => epoch <= self.below.epoch,
            ObjectName::Collect(epoch, _) => epoch < self.below.epoch,
            ObjectName::Manifest(epoch, id) | ObjectName::Claimed(epoch, id) => {
                self.is_below(Position::new(epoch, id))
            }
            ObjectName::Parts(_)
            | ObjectName::Segment(_)
            | ObjectName::Pin(_)
            | ObjectName::Probe(_) => false,
        }
    }

    /// Whether an object of state goes, if `named` are the objects of all of [`Sweep::kept`].
    ///
    /// An object above the floor may belong to a pending snapshot. Not being named by a
    /// manifest, and an id that is dead, are not enough.
    pub fn dooms_object(&self, object: &ObjectName, named: &BTreeSet<ObjectName>) -> bool {
        let (epoch, id) = written_for(object);
        let is_past = epoch < self.below.epoch || (epoch == self.below.epoch && id <= self.floor);
        epoch != Epoch(0) && is_past && !named.contains(object)
    }
}

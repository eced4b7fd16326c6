//! Committing one manifest: create, then look for a successor.

use crate::ids::{Epoch, UniqueId};
use crate::manifest::Position;
use crate::store::protocol::settle::{CreateAnswer, Settle, SettleStep};

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitStep {
    /// Create the manifest, with the same bytes at every try.
    Create,
    /// Read the unique id of the manifest.
    ReadBack,
    /// Look whether this epoch exists.
    Look(Epoch),
    /// The manifest is there and no successor was.
    Confirmed,
    /// A successor is there: stop. Whether the manifest counts is for the successor to say.
    Fenced(Epoch),
    /// Another manifest has the place. Only another coordinator of our epoch could have put it
    /// there: stop.
    Taken(UniqueId),
}

/// Commits the manifest at one position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Committing {
    position: Position,
    settle: Settle,
    successor: Option<bool>,
}

impl Committing {
    /// The manifest at `position`, which carries `unique`.
    pub const fn new(position: Position, unique: UniqueId) -> Self {
        Self {
            position,
            settle: Settle::new(unique),
            successor: None,
        }
    }

    /// What to do next.
    pub fn step(&self) -> CommitStep {
        match (self.settle.step(), self.successor) {
            (SettleStep::Create, _) => CommitStep::Create,
            (SettleStep::ReadBack, _) => CommitStep::ReadBack,
            (SettleStep::Theirs(unique), _) => CommitStep::Taken(unique),
            (SettleStep::Ours, None) => CommitStep::Look(self.next_epoch()),
            (SettleStep::Ours, Some(false)) => CommitStep::Confirmed,
            (SettleStep::Ours, Some(true)) => CommitStep::Fenced(self.next_epoch()),
        }
    }

    fn next_epoch(&self) -> Epoch {
        Epoch(self.position.epoch.0 + 1)
    }

    /// A try to create the manifest ended.
    pub fn on_create(&mut self, answer: CreateAnswer) {
        self.settle.on_create(answer);
    }

    /// The manifest was read: it carries `found`, or is not there.
    pub fn on_read_back(&mut self, found: Option<UniqueId>) {
        self.settle.on_read_back(found);
    }

    /// The look ended. One that came before the manifest was known to be there proves nothing
    /// and is not taken.
    pub fn on_look(&mut self, successor_exists: bool) {
        if self.settle.step() == SettleStep::Ours {
            self.successor.get_or_insert(successor_exists);
        }
    }
}

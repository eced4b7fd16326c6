//! Claiming the next epoch.

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Epoch, UniqueId};
use crate::names::ObjectName;
use crate::store::protocol::settle::{CreateAnswer, Settle, SettleStep};

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimStep {
    /// List all epochs.
    ListEpochs,
    /// Create the claim of this epoch.
    Create(Epoch),
    /// Read the unique id in the claim of this epoch.
    ReadBack(Epoch),
    /// The epoch is ours.
    Claimed(Epoch),
    /// Another coordinator claimed this epoch at the same time. Stop.
    Lost(Epoch),
}

/// Claims the epoch after the highest one. A claim that loses a race does not try again by
/// itself: two that did would fence each other without end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claiming {
    epoch: Option<Epoch>,
    settle: Settle,
}

impl Claiming {
    /// A claim that carries `unique`.
    pub const fn new(unique: UniqueId) -> Self {
        Self {
            epoch: None,
            settle: Settle::new(unique),
        }
    }

    /// The unique id that the claim carries.
    pub const fn unique(&self) -> UniqueId {
        self.settle.unique()
    }

    /// What to do next.
    pub fn step(&self) -> ClaimStep {
        let Some(epoch) = self.epoch else {
            return ClaimStep::ListEpochs;
        };
        match self.settle.step() {
            SettleStep::Create => ClaimStep::Create(epoch),
            SettleStep::ReadBack => ClaimStep::ReadBack(epoch),
            SettleStep::Ours => ClaimStep::Claimed(epoch),
            SettleStep::Theirs(_) => ClaimStep::Lost(epoch),
        }
    }

    /// The epochs that exist, ascending. A later list changes nothing: the number is kept until
    /// it is settled.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if one is missing: a gap would let a coordinator look for its
    /// successor where there is none.
    pub fn on_epochs(&mut self, epochs: &[Epoch]) -> Result<()> {
        for (expected, got) in (1..).zip(epochs) {
            if *got != Epoch(expected) {
                return Err(Error::new(ErrorKind::Corrupt, "an epoch is missing")
                    .with("object", ObjectName::Epoch(Epoch(expected))));
            }
        }
        let next = Epoch(epochs.last().map_or(0, |epoch| epoch.0) + 1);
        self.epoch.get_or_insert(next);
        Ok(())
    }

    /// A try to create the claim ended.
    pub fn on_create(&mut self, answer: CreateAnswer) {
        self.settle.on_create(answer);
    }

    /// The claim was read: it carries `found`, or is not there.
    pub fn on_read_back(&mut self, found: Option<UniqueId>) {
        self.settle.on_read_back(found);
    }
}

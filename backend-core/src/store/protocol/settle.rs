//! Creating one object until it is known whose it is.

use crate::ids::UniqueId;

/// What a driver learned from one try to create an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateAnswer {
    /// It was created.
    Created,
    /// The name was taken, perhaps by an earlier try.
    Exists,
    /// No clear answer: the object may be there, or appear.
    InDoubt,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SettleStep {
    /// Create the object, with the same bytes at every try.
    Create,
    /// Read its unique id.
    ReadBack,
    /// It is there, and ours.
    Ours,
    /// It is there, and another's: ours will never be.
    Theirs(UniqueId),
}

/// Settles who created an object.
///
/// It ends only when an object was seen: an object that is not found may still appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settle {
    unique: UniqueId,
    step: SettleStep,
}

impl Settle {
    /// An object that carries `unique` is to be created.
    pub const fn new(unique: UniqueId) -> Self {
        Self {
            unique,
            step: SettleStep::Create,
        }
    }

    /// The unique id that the object carries.
    pub const fn unique(&self) -> UniqueId {
        self.unique
    }

    /// What to do next.
    pub const fn step(&self) -> SettleStep {
        self.step
    }

    /// A try to create ended.
    pub fn on_create(&mut self, answer: CreateAnswer) {
        if self.step == SettleStep::Create {
            self.step = match answer {
                CreateAnswer::Created => SettleStep::Ours,
                CreateAnswer::Exists | CreateAnswer::InDoubt => SettleStep::ReadBack,
            };
        }
    }

    /// The object was read: it carries `found`, or is not there.
    pub fn on_read_back(&mut self, found: Option<UniqueId>) {
        if self.step == SettleStep::ReadBack {
            self.step = match found {
                Some(unique) if unique == self.unique => SettleStep::Ours,
                Some(unique) => SettleStep::Theirs(unique),
                None => SettleStep::Create,
            };
        }
    }
}

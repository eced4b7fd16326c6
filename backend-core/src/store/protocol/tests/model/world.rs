//! The state of a model: the store, the processes, and what is true whoever knows it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::bounds::{Bounds, Variant};
use super::objects::{Manifest, Put, Record, Store};
use super::sealed::Sealed;
use super::truth::Truth;
use crate::contract::SnapshotMode;
use crate::ids::{Epoch, SnapshotId, UniqueId};
use crate::manifest::Position;
use crate::names::ObjectName;
use crate::store::protocol::{Claiming, Collecting, Committing, CreateAnswer, Ledger, ObjectSet};

/// How the store answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    /// At once, and truly.
    Clear,
    /// Not at all: the request is in flight.
    Doubt,
}

/// A coordinator with its two tasks. One that stops makes no more steps, which is also what
/// others see of a crash; what a crash loses is what the next coordinator does not have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) phase: Phase,
    /// It goes on after its coordinator was fenced: nobody has told it.
    pub(super) collection: Option<Collection>,
    /// Collections that were begun.
    pub(super) collections: u8,
}

#[expect(
    clippy::large_enum_variant,
    reason = "there are at most three, and most of them lead"
)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    Claiming(Claiming),
    /// The epoch is claimed.
    Claimed(Epoch),
    /// These manifests were listed.
    Listed(Epoch, Vec<Position>),
    Adopting(Commit),
    Leading(Lead),
    Stopped,
}

/// A manifest on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Commit {
    pub(super) machine: Committing,
    pub(super) position: Position,
    pub(super) manifest: Sealed<Manifest>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lead {
    pub(super) ledger: Ledger,
    /// The last confirmed manifest.
    pub(super) last: Sealed<Manifest>,
    /// What was triggered and may still be written, also if it was aborted.
    pub(super) writes: BTreeMap<SnapshotId, Write>,
    /// The segments of this attempt that are durable.
    pub(super) durable: BTreeSet<ObjectName>,
    pub(super) commit: Option<Commit>,
    pub(super) triggered: u8,
    /// Tasks are alike: the first to write is task 0.
    pub(super) has_written: bool,
}

/// A snapshot on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Write {
    pub(super) mode: SnapshotMode,
    pub(super) base: SnapshotId,
    /// What its manifest will name.
    pub(super) names: BTreeSet<ObjectName>,
    pub(super) tasks: [Upload; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Upload {
    Due,
    InDoubt,
    Durable,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Collection {
    pub(super) machine: Collecting,
    pub(super) record: Arc<Record>,
    /// What the manifests that are kept name, once it sweeps.
    pub(super) named: Option<BTreeSet<ObjectName>>,
    /// What was neither pending nor confirmed when it was planned.
    pub(super) dead: BTreeSet<SnapshotId>,
}

/// Somebody outside the job who reads a snapshot. When its lease ends it is as if it had
/// unpinned: from then on it may find nothing, and says so.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reader {
    Idle,
    /// Its pin is in doubt.
    Pinning(Position),
    Pinned(Position),
    /// The pin was confirmed by the condemn records; these segments are read.
    Reading(Position, ObjectSet),
    Done,
}

pub(super) const READER: UniqueId = UniqueId(99);

/// What may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Left {
    pub(super) doubts: u8,
    pub(super) aborts: u8,
    pub(super) restarts: u8,
    pub(super) fallbacks: u8,
    pub(super) pins: u8,
    pub(super) collections: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) variant: Variant,
    pub(super) store: Store,
    pub(super) nodes: Vec<Sealed<Node>>,
    pub(super) reader: Reader,
    pub(super) left: Left,
    pub(super) truth: Truth,
}

impl World {
    pub(super) fn new(bounds: &Bounds, variant: Variant) -> Self {
        let idle = Sealed::new(Node {
            phase: Phase::Idle,
            collection: None,
            collections: 0,
        });
        Self {
            variant,
            store: Store::default(),
            nodes: vec![idle; bounds.coordinators],
            reader: Reader::Idle,
            left: Left {
                doubts: bounds.doubts,
                aborts: bounds.aborts,
                restarts: bounds.restarts,
                fallbacks: bounds.fallbacks,
                pins: bounds.pins,
                collections: bounds.collections_all,
            },
            truth: Truth::default(),
        }
    }

    pub(super) fn node(&mut self, index: usize) -> &mut Node {
        self.nodes[index].edit()
    }

    /// Sends a request. The answer `InDoubt` leaves it in flight.
    pub(super) fn send(&mut self, put: Put, answer: Answer) -> CreateAnswer {
        match answer {
            Answer::Clear => self.store.apply(put),
            Answer::Doubt => {
                self.left.doubts -= 1;
                self.store.delay(put);
                CreateAnswer::InDoubt
            }
        }
    }

    /// Whether a request about `name` may stay without an answer; one that has no effect
    /// is as good as none.
    pub(super) fn may_doubt(&self, name: &ObjectName, is_delete: bool) -> bool {
        self.left.doubts > 0 && self.store.has(name) == is_delete
    }
}

impl Phase {
    pub(super) fn lead(&self) -> Option<&Lead> {
        match self {
            Self::Leading(lead) => Some(lead),
            _ => None,
        }
    }

    pub(super) fn lead_mut(&mut self) -> &mut Lead {
        match self {
            Self::Leading(lead) => lead,
            other => panic!("only a leader does this: {other:?}"),
        }
    }
}

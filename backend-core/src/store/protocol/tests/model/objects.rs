//! What lies in the store, and what is on its way there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::sealed::Sealed;
use crate::ids::{Epoch, SnapshotId, TaskIndex, UniqueId};
use crate::manifest::{Condemn, Position};
use crate::names::{ObjectName, SegmentName};
use crate::store::protocol::{CreateAnswer, ObjectSet};

/// A snapshot and how it came to follow the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Link {
    pub(super) position: Position,
    /// An operator asked for the one before it.
    pub(super) is_asked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Manifest {
    pub(super) unique: UniqueId,
    /// Its ancestors, the oldest first, and itself.
    pub(super) chain: Vec<Link>,
    /// The segments that it names.
    pub(super) names: ObjectSet,
}

impl Manifest {
    pub(super) fn parent(&self) -> Option<Position> {
        let mut links = self.chain.iter().rev();
        links.nth(1).map(|link| link.position)
    }
}

/// A condemn record; `names` if it lists what it condemns, as none should.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Record {
    pub(super) condemn: Condemn,
    pub(super) names: Option<BTreeSet<Position>>,
    /// Nobody sees it: it is there for the checks alone.
    pub(super) is_hidden: bool,
}

impl Record {
    pub(super) fn condemns(&self, position: Position) -> bool {
        match &self.names {
            Some(names) => names.contains(&position),
            None => self.condemn.condemns(position),
        }
    }

    /// The rule that says of `listed` what the record says.
    fn rule(&self, listed: &[Position]) -> Condemn {
        let mut rule = self.condemn.clone();
        if let Some(names) = &self.names {
            let others = listed.iter().filter(|p| !names.contains(p));
            rule.except.extend(others);
        }
        rule
    }

    /// Whether all that `older` condemns is condemned by this one, too.
    pub(super) fn supersedes(&self, older: &Self) -> bool {
        let (newer, older) = (&self.condemn, &older.condemn);
        older.below <= newer.below && !newer.except.iter().any(|p| older.condemns(*p))
    }
}

/// What a request wants of the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Put {
    Claim(Epoch, UniqueId),
    Manifest(Position, Sealed<Manifest>),
    Segment(ObjectName),
    Record(Arc<Record>),
    Pin(UniqueId, Position),
    Delete(ObjectName),
}

impl Put {
    pub(super) fn object(&self) -> ObjectName {
        match self {
            Self::Claim(epoch, _) => ObjectName::Epoch(*epoch),
            Self::Manifest(position, _) => position.object(),
            Self::Segment(name) | Self::Delete(name) => *name,
            Self::Record(record) => record_name(&record.condemn),
            Self::Pin(unique, _) => ObjectName::Pin(*unique),
        }
    }
}

pub(super) fn record_name(record: &Condemn) -> ObjectName {
    ObjectName::Collect(record.epoch, record.index)
}

/// The one segment that a task writes for a snapshot.
pub(super) fn segment(epoch: Epoch, snapshot: SnapshotId, task: u32) -> ObjectName {
    ObjectName::Segment(SegmentName {
        epoch,
        snapshot,
        task: TaskIndex(task),
        index: 0,
        unique: UniqueId(0),
    })
}

/// An object store: what is created is seen by whoever asks next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Store {
    pub(super) claims: BTreeMap<Epoch, UniqueId>,
    pub(super) manifests: Sealed<BTreeMap<Position, Sealed<Manifest>>>,
    pub(super) segments: Sealed<BTreeSet<ObjectName>>,
    pub(super) records: Sealed<BTreeMap<ObjectName, Arc<Record>>>,
    pub(super) pins: BTreeMap<UniqueId, Position>,
    /// Requests without an answer: each takes effect at some later time, or never.
    flight: Vec<Put>,
}

impl Store {
    /// Carries out a request, now.
    pub(super) fn apply(&mut self, put: Put) -> CreateAnswer {
        let has = self.has(&put.object());
        match put {
            Put::Delete(name) => self.delete(&name),
            _ if has => return CreateAnswer::Exists,
            Put::Claim(epoch, unique) => {
                self.claims.insert(epoch, unique);
            }
            Put::Manifest(position, manifest) => {
                self.manifests.edit().insert(position, manifest);
            }
            Put::Segment(name) => {
                self.segments.edit().insert(name);
            }
            Put::Record(record) => {
                let name = record_name(&record.condemn);
                self.records.edit().insert(name, record);
            }
            Put::Pin(unique, position) => {
                self.pins.insert(unique, position);
            }
        }
        CreateAnswer::Created
    }

    /// Leaves a request in flight. The order of those does not matter.
    pub(super) fn delay(&mut self, put: Put) {
        let key = |put: &Put| (put.object(), matches!(put, Put::Delete(_)));
        let at = self.flight.partition_point(|other| key(other) <= key(&put));
        self.flight.insert(at, put);
    }

    /// The requests in flight that would have an effect now.
    pub(super) fn landings(&self) -> impl Iterator<Item = usize> {
        let has_effect = |put: &Put| self.has(&put.object()) == matches!(put, Put::Delete(_));
        let flight = self.flight.iter().enumerate();
        flight
            .filter(move |(_, put)| has_effect(put))
            .map(|(i, _)| i)
    }

    pub(super) fn take_flight(&mut self) -> Vec<Put> {
        std::mem::take(&mut self.flight)
    }

    /// A request in flight takes effect.
    pub(super) fn land(&mut self, index: usize) {
        let put = self.flight.remove(index);
        self.apply(put);
    }

    pub(super) fn has(&self, name: &ObjectName) -> bool {
        match name {
            ObjectName::Epoch(epoch) => self.claims.contains_key(epoch),
            ObjectName::Manifest(epoch, id) => {
                self.manifests.contains_key(&Position::new(*epoch, *id))
            }
            ObjectName::Collect(..) => self.records.contains_key(name),
            ObjectName::Pin(unique) => self.pins.contains_key(unique),
            _ => self.segments.contains(name),
        }
    }

    pub(super) fn delete(&mut self, name: &ObjectName) {
        match name {
            ObjectName::Epoch(_) => panic!("claims are never deleted"),
            ObjectName::Manifest(epoch, id) => {
                self.manifests.edit().remove(&Position::new(*epoch, *id));
            }
            ObjectName::Collect(..) => {
                self.records.edit().remove(name);
            }
            ObjectName::Pin(unique) => {
                self.pins.remove(unique);
            }
            _ => {
                self.segments.edit().remove(name);
            }
        }
    }

    /// The unique id in the object `name`.
    pub(super) fn unique_of(&self, name: &ObjectName) -> Option<UniqueId> {
        match name {
            ObjectName::Epoch(epoch) => self.claims.get(epoch).copied(),
            ObjectName::Manifest(epoch, id) => {
                let manifest = self.manifests.get(&Position::new(*epoch, *id));
                manifest.map(|manifest| manifest.unique)
            }
            ObjectName::Collect(..) => self.records.get(name).map(|r| r.condemn.unique),
            _ => None,
        }
    }

    pub(super) fn seal(&mut self) {
        self.manifests.seal();
        self.segments.seal();
        self.records.seal();
    }

    pub(super) fn positions(&self) -> Vec<Position> {
        self.manifests.keys().copied().collect()
    }

    /// The condemn records, as they stand to what was `listed`.
    pub(super) fn condemned(&self, listed: &[Position]) -> Vec<Condemn> {
        let seen = self.records.values().filter(|r| !r.is_hidden);
        seen.map(|r| r.rule(listed)).collect()
    }

    /// Whether whoever reads the condemn records sees that `position` is condemned.
    pub(super) fn condemns(&self, position: Position) -> bool {
        let mut seen = self.records.values().filter(|r| !r.is_hidden);
        seen.any(|r| r.condemns(position))
    }

    /// Whether some collection has condemned `position`.
    pub(super) fn is_given_up(&self, position: Position) -> bool {
        self.records.values().any(|r| r.condemns(position))
    }

    /// Whether all that is named is there.
    pub(super) fn is_whole(&self, names: &ObjectSet) -> bool {
        names.is_subset(&self.segments)
    }
}

//! The steps of a collection.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use std::sync::Arc;

use super::bounds::Variant;
use super::objects::{Put, Record, record_name};
use super::truth::Fault;
use super::world::{Answer, Collection, World};
use crate::ids::{Epoch, JobId, SnapshotId, UniqueId};
use crate::manifest::{Condemn, Position, SnapshotKind};
use crate::names::ObjectName;
use crate::store::protocol::{
    Candidate, CollectStep, Collecting, CreateAnswer, Others, Retention, Sweep, retain,
};

impl World {
    /// Asks the ledger what it holds, lists manifests, condemn records and pins, and says what
    /// is kept.
    pub(super) fn plan(&mut self, index: usize) {
        let node = &self.nodes[index];
        let ledger = &node.phase.lead().expect("it leads").ledger;
        let mut holds = ledger.holds().expect("it is settled");
        if self.variant == Variant::FloorIsConfirmed {
            holds.floor = holds.confirmed.id;
        }
        let (below, epoch) = (holds.confirmed, ledger.epoch());
        let manifests = self.store.manifests.iter();
        let listed = self.store.positions();
        let candidates: Vec<_> = manifests
            .filter(|(position, _)| !self.store.condemns(**position))
            .map(|(position, manifest)| Candidate {
                position: *position,
                parent: manifest.parent(),
                kind: SnapshotKind::Aligned,
                created_ms: 0,
            })
            .collect();
        let others = Others {
            pinned: self.store.pins.values().copied().collect(),
            claimed: BTreeSet::new(),
        };
        let condemned = self.store.condemned(&listed);
        let retention = Retention::default();
        let kept = retain(&holds, &candidates, &condemned, &retention, &others, 0);
        let condemn = Condemn {
            job: JobId::new("j").expect("valid"),
            epoch,
            index: u64::from(node.collections),
            unique: UniqueId(u128::from(epoch.0)),
            below,
            except: kept.into_keys().filter(|p| *p < below).collect(),
        };
        let doomed = listed.into_iter().filter(|p| condemn.condemns(*p));
        let lists = self.variant == Variant::RecordListsNames;
        let names = lists.then(|| doomed.collect());
        let pending: BTreeSet<_> = ledger.pending().map(|p| p.trigger.id).collect();
        let writes = node.phase.lead().expect("it leads").writes.keys();
        let collection = Collection {
            machine: Collecting::new(condemn.clone(), &holds),
            dead: writes.filter(|id| !pending.contains(id)).copied().collect(),
            record: Arc::new(Record {
                condemn,
                names,
                is_hidden: self.variant == Variant::NoCondemnRecord,
            }),
            named: None,
        };
        self.left.collections = self.left.collections.saturating_sub(1);
        let node = self.node(index);
        node.collection = Some(collection);
        node.collections += 1;
    }

    fn collection(&mut self, index: usize) -> &mut Collection {
        let collection = &mut self.node(index).collection;
        collection.as_mut().expect("it collects")
    }

    /// Creates the condemn record, or reads it back first.
    pub(super) fn record(&mut self, index: usize, answer: Answer) {
        let mut collection = self.collection(index).clone();
        let machine = &mut collection.machine;
        let name = record_name(machine.record());
        loop {
            match machine.step() {
                CollectStep::Create => {
                    let got = self.send(Put::Record(Arc::clone(&collection.record)), answer);
                    machine.on_create(got);
                    if got == CreateAnswer::InDoubt {
                        break;
                    }
                }
                CollectStep::ReadBack => machine.on_read_back(self.store.unique_of(&name)),
                _ => break,
            }
        }
        *self.collection(index) = collection;
    }

    /// Looks for a successor. A collection that finds one ends; the coordinator may not have
    /// noticed yet.
    pub(super) fn look_before_sweep(&mut self, index: usize) {
        let CollectStep::Look(next) = self.collection(index).machine.step() else {
            panic!("it looks");
        };
        let found = self.store.claims.contains_key(&next);
        let found = found && self.variant != Variant::SweepsUnlooked;
        self.collection(index).machine.on_look(found);
        if found {
            self.node(index).collection = None;
        }
    }

    /// Lists the pins, and reads the manifests that are kept. Of those, one that the record
    /// relies on can only have been deleted by a successor: what it named is not known any more,
    /// so nothing is deleted. One that is only pinned was pinned too late if it is gone.
    pub(super) fn list_pins(&mut self, index: usize) {
        let pinned: BTreeSet<Position> = match self.variant {
            Variant::PinsBeforeRecord => BTreeSet::new(),
            _ => self.store.pins.values().copied().collect(),
        };
        let manifests = self.store.manifests.clone();
        let record = Arc::clone(&self.collection(index).record);
        let mut relied_on = record.condemn.except.iter().chain([&record.condemn.below]);
        let is_overtaken = relied_on.any(|p| !manifests.contains_key(p));
        if is_overtaken && self.variant != Variant::GoneNamesNothing {
            self.end_collection(index);
            return;
        }
        let collection = self.collection(index);
        collection.machine.on_pins(pinned);
        let CollectStep::Sweep(sweep) = collection.machine.step() else {
            panic!("it sweeps");
        };
        let kept = sweep.kept().filter_map(|p| manifests.get(&p));
        let named = kept.flat_map(|manifest| manifest.names.iter().copied());
        collection.named = Some(named.collect());
    }

    /// What a sweep deletes next, of what is there now: manifests, then segments, then condemn
    /// records that say nothing new.
    pub(super) fn doomed(&self, collection: &Collection) -> Option<ObjectName> {
        let named = collection.named.as_ref()?;
        let CollectStep::Sweep(sweep) = collection.machine.step() else {
            return None;
        };
        let manifest = || {
            let mut positions = self.store.manifests.keys();
            let found = positions.find(|p| sweep.dooms_manifest(**p));
            found.map(|p| p.object())
        };
        let segment = || {
            let mut segments = self.store.segments.iter();
            let found = segments.find(|name| self.dooms(&sweep, collection, name, named));
            found.copied()
        };
        let record = || {
            let mut records = self.store.records.values();
            let found = records.find(|other| self.forgets(&collection.record, other));
            found.map(|other| record_name(&other.condemn))
        };
        if self.variant == Variant::SegmentsFirst {
            return segment().or_else(manifest).or_else(record);
        }
        manifest().or_else(segment).or_else(record)
    }

    fn dooms(
        &self,
        sweep: &Sweep,
        collection: &Collection,
        name: &ObjectName,
        named: &BTreeSet<ObjectName>,
    ) -> bool {
        let epoch = collection.record.condemn.epoch;
        let is_dead = matches!(name, ObjectName::Segment(segment)
            if segment.epoch == epoch && collection.dead.contains(&segment.snapshot));
        sweep.dooms_object(name, named)
            || (self.variant == Variant::CollectsDeadIds && is_dead && !named.contains(name))
    }

    fn forgets(&self, own: &Record, other: &Record) -> bool {
        let is_own = record_name(&own.condemn) == record_name(&other.condemn);
        !is_own && (self.variant == Variant::ForgetsRecords || own.supersedes(other))
    }

    /// Deletes the next object.
    pub(super) fn delete(&mut self, index: usize, answer: Answer) {
        let collection = self.nodes[index].collection.as_ref().expect("it collects");
        let name = self.doomed(collection).expect("something is left");
        let records = self.store.records.clone();
        self.send(Put::Delete(name), answer);
        self.check_records(&records);
    }

    /// Deletes what comes next and all that is like it.
    pub(super) fn delete_batch(&mut self, index: usize) {
        let next = |world: &Self| {
            let collection = world.nodes[index].collection.as_ref().expect("it collects");
            world.doomed(collection)
        };
        let first = next(self).expect("something is left");
        let is_alike = |name: &ObjectName| discriminant(name) == discriminant(&first);
        while next(self).is_some_and(|name| is_alike(&name)) {
            self.delete(index, Answer::Clear);
        }
    }

    /// A request in flight takes effect.
    pub(super) fn land(&mut self, index: usize) {
        let records = self.store.records.clone();
        self.store.land(index);
        self.check_records(&records);
    }

    fn check_records(&mut self, before: &BTreeMap<ObjectName, Arc<Record>>) {
        let mut gone = before.iter().filter(|(name, _)| !self.store.has(name));
        if gone.any(|(_, record)| self.pardons(record)) {
            self.truth.fault(Fault::Pardoned);
        }
    }

    /// Whether something that `gone` condemned is condemned by no other record.
    fn pardons(&self, gone: &Record) -> bool {
        let others: Vec<_> = self.store.records.values().collect();
        let below = gone.condemn.below;
        let epochs = 1..=below.epoch.0;
        let mut positions = epochs.flat_map(|epoch| {
            let ids = 1..=below.id.0 + 4;
            ids.map(move |id| Position::new(Epoch(epoch), SnapshotId(id)))
        });
        positions.any(|p| gone.condemns(p) && !others.iter().any(|r| r.condemns(p)))
    }

    /// The collection ends, or is given up while its record is in doubt: a later one may follow.
    pub(super) fn end_collection(&mut self, index: usize) {
        self.node(index).collection = None;
    }
}

//! The model as `stateright` explores it: which steps are possible, and what must hold.

use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::{Model, Property};

use super::bounds::{Bounds, Doubtful, Variant};
use super::quiet;
use super::truth::{Fault, property};
use super::world::{Answer, Lead, Node, Phase, Reader, Upload, World};
use crate::contract::SnapshotMode;
use crate::ids::{Epoch, SnapshotId};
use crate::manifest::Position;
use crate::names::ObjectName;
use crate::store::protocol::{ClaimStep, CollectStep, CommitStep};

/// One step of one process, or of the store. What a process does without being seen is part of
/// the step before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Start(usize),
    Claim(usize, Answer),
    List(usize),
    Choose(usize, Option<Position>),
    /// Trigger, write, begin to commit, and create for the first time.
    Snapshot(usize, SnapshotMode, Answer),
    Trigger(usize, SnapshotMode),
    Upload(usize, SnapshotId, u32, Answer),
    /// Begin, and create for the first time.
    Commit(usize, SnapshotId, Answer),
    /// Create for the first time or again.
    Publish(usize, Answer),
    Look(usize),
    Abort(usize, SnapshotId),
    Restart(usize),
    GiveUp(usize),
    Plan(usize),
    Record(usize, Answer),
    LookBeforeSweep(usize),
    ListPins(usize),
    Delete(usize, Answer),
    /// Delete all manifests, or all segments, or all records.
    DeleteBatch(usize),
    EndCollection(usize),
    Pin(Position, Answer),
    Read,
    Unpin,
    /// A request in flight takes effect.
    Land(usize),
}

impl Action {
    /// Whether something may be missing after it that was not before.
    fn may_break(self) -> bool {
        !matches!(
            self,
            Self::Start(_)
                | Self::Claim(..)
                | Self::List(_)
                | Self::Trigger(..)
                | Self::Upload(..)
                | Self::Plan(_)
                | Self::Record(..)
                | Self::ListPins(_)
        )
    }
}

/// The protocol, or a broken variant of it, within bounds.
#[derive(Clone, Debug)]
pub(super) struct Protocol {
    pub(super) bounds: Bounds,
    pub(super) variant: Variant,
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.bounds, self.variant)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.truth.is_broken() {
            return;
        }
        for (index, node) in world.nodes.iter().enumerate() {
            self.lead_actions(world, index, node, actions);
            self.collect_actions(world, index, node, actions);
        }
        self.reader_actions(world, actions);
        actions.extend(world.store.landings().map(Action::Land));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.step(action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        // A property is a function without a context: one for each fault.
        macro_rules! never {
            ($($fault:ident),*) => {
                vec![$(Property::always(property(Fault::$fault), |_: &Self, world: &World| {
                    !world.truth.has(Fault::$fault)
                })),*]
            };
        }
        let mut properties = never![
            Lost, Hollow, Unpinned, Forked, Revived, Shrunk, Twice, Unasked, Declined, Pardoned
        ];
        properties.push(Property::always(QUIET, |model, world| {
            !model.is_sampled(world) || quiet::check(world).is_ok()
        }));
        properties.extend(self.reachable());
        properties
    }
}

/// What a new coordinator, and the leader, can always bring about.
pub(super) const QUIET: &str = "the job can go on, and its garbage goes";

impl Protocol {
    /// Whether `world` is one of those that are run to their end.
    fn is_sampled(&self, world: &World) -> bool {
        if world.truth.is_broken() || self.bounds.sample == 0 {
            return false;
        }
        let mut hasher = DefaultHasher::new();
        world.hash(&mut hasher);
        hasher.finish().is_multiple_of(self.bounds.sample)
    }

    /// What shows that the model is not empty.
    fn reachable(&self) -> Vec<Property<Self>> {
        let bounds = &self.bounds;
        let mut found: Vec<Property<Self>> = vec![Property::sometimes(
            "all snapshots of a coordinator are confirmed",
            |model: &Self, world: &World| {
                let all = usize::from(model.bounds.snapshots) + 1;
                let of = |e: u64| {
                    world
                        .truth
                        .confirmed
                        .keys()
                        .filter(|p| p.epoch.0 == e)
                        .count()
                };
                (1..4).any(|epoch| of(epoch) == all)
            },
        )];
        let mut sometimes = |is_in: bool, name, condition| {
            if is_in {
                found.push(Property::sometimes(name, condition));
            }
        };
        sometimes(
            bounds.coordinators > 1,
            "a snapshot is confirmed in epoch 2",
            |_, world| confirms(world, 2),
        );
        sometimes(
            bounds.coordinators > 2,
            "a snapshot is confirmed in epoch 3",
            |_, world| confirms(world, 3),
        );
        sometimes(
            bounds.coordinators > 1,
            "a manifest is there that nobody confirms, and is passed over",
            |_, world| {
                let passed = |p: &Position| {
                    !world.truth.confirmed.contains_key(p)
                        && world.truth.last.is_some_and(|last| p.epoch < last.epoch)
                };
                world.store.manifests.keys().any(passed)
            },
        );
        sometimes(bounds.collections > 0, "a collection ends", |_, world| {
            world.nodes.iter().any(has_collected)
        });
        sometimes(
            bounds.collections > 0 && bounds.collections_all > 1 && bounds.coordinators > 1,
            "two epochs collect at a time",
            |_, world| {
                let sweeps = world.nodes.iter().filter(|n| is_sweeping(n));
                sweeps.count() > 1
            },
        );
        sometimes(
            bounds.collections > 0
                && bounds.coordinators > 1
                && bounds.doubtful.contains(&Doubtful::Manifest),
            "a condemned manifest lands after a collection",
            |_, world| {
                let is_condemned = |p: &Position| world.store.condemns(*p);
                world.nodes.iter().all(|n| n.collection.is_none())
                    && world.nodes.iter().any(has_collected)
                    && world.store.manifests.keys().any(is_condemned)
            },
        );
        sometimes(
            bounds.collections > 0 && bounds.pins > 0,
            "a snapshot is read that was condemned after it was pinned",
            |_, world| match world.reader {
                Reader::Reading(position, _) => {
                    world.store.condemns(position) && world.nodes.iter().any(has_collected)
                }
                _ => false,
            },
        );
        sometimes(
            bounds.fallbacks > 0,
            "a fallback is confirmed",
            |_, world| {
                let asked = |m: &super::sealed::Sealed<super::objects::Manifest>| {
                    m.chain.iter().any(|link| link.is_asked)
                };
                let confirmed = world.truth.confirmed.keys();
                confirmed
                    .filter_map(|p| world.store.manifests.get(p))
                    .any(asked)
            },
        );
        found
    }

    fn lead_actions(&self, world: &World, i: usize, node: &Node, actions: &mut Vec<Action>) {
        match &node.phase {
            // They are alike: they start in the order of their numbers.
            Phase::Idle if i == 0 || world.nodes[i - 1].phase != Phase::Idle => {
                actions.push(Action::Start(i));
            }
            Phase::Idle | Phase::Stopped => {}
            Phase::Claiming(claiming) => {
                let epoch = match claiming.step() {
                    ClaimStep::Create(epoch) | ClaimStep::ReadBack(epoch) => epoch,
                    other => panic!("the step before did this: {other:?}"),
                };
                let name = ObjectName::Epoch(epoch);
                self.either(world, &name, false, |answer| {
                    actions.push(Action::Claim(i, answer));
                });
            }
            Phase::Claimed(_) => actions.push(Action::List(i)),
            Phase::Listed(_, listed) => {
                actions.push(Action::Choose(i, None));
                if world.left.fallbacks > 0 {
                    let live = listed.iter().filter(|p| !world.store.condemns(**p));
                    let mut older: Vec<_> = live.copied().collect();
                    older.pop();
                    let asked = older.into_iter().map(|p| Action::Choose(i, Some(p)));
                    actions.extend(asked);
                }
            }
            Phase::Adopting(_) => self.publish_actions(world, i, node, actions),
            Phase::Leading(lead) => {
                self.publish_actions(world, i, node, actions);
                self.snapshot_actions(world, i, lead, actions);
            }
        }
    }

    fn snapshot_actions(&self, world: &World, i: usize, lead: &Lead, actions: &mut Vec<Action>) {
        let ledger = &lead.ledger;
        if lead.triggered < self.bounds.snapshots && ledger.pending().count() < self.bounds.pending
        {
            let modes = self.bounds.modes;
            let mode = modes[usize::from(lead.triggered) % modes.len()];
            if self.bounds.is_coarse {
                // The next place is free, as is this one.
                let name = Position::new(ledger.epoch(), SnapshotId(u64::MAX)).object();
                self.either(world, &name, false, |answer| {
                    actions.push(Action::Snapshot(i, mode, answer));
                });
            } else {
                actions.push(Action::Trigger(i, mode));
            }
        }
        for (id, write) in lead.writes.iter().filter(|_| !self.bounds.is_coarse) {
            let is_committing = ledger.in_doubt() == Some(*id);
            for task in 0..2 {
                if write.tasks[task as usize] == Upload::Durable
                    || is_committing
                    || (task == 1 && !lead.has_written)
                {
                    continue;
                }
                let name = super::objects::segment(ledger.epoch(), *id, task);
                self.either(world, &name, false, |answer| {
                    actions.push(Action::Upload(i, *id, task, answer));
                });
            }
            let is_written = write.tasks == [Upload::Durable; 2];
            if is_written && lead.commit.is_none() && ledger.committable(*id).is_ok() {
                let name = Position::new(ledger.epoch(), *id).object();
                self.either(world, &name, false, |answer| {
                    actions.push(Action::Commit(i, *id, answer));
                });
            }
        }
        if lead.commit.is_none() {
            if world.left.aborts > 0 {
                let ids = ledger.pending().map(|p| p.trigger.id);
                actions.extend(ids.map(|id| Action::Abort(i, id)));
            }
            if world.left.restarts > 0 && !lead.writes.is_empty() {
                actions.push(Action::Restart(i));
            }
        } else if self.variant == Variant::GivesUpInDoubt {
            let step = lead.commit.as_ref().map(|commit| commit.machine.step());
            if step == Some(CommitStep::ReadBack) {
                actions.push(Action::GiveUp(i));
            }
        }
    }

    fn collect_actions(&self, world: &World, i: usize, node: &Node, actions: &mut Vec<Action>) {
        let may_begin = node.collections < self.bounds.collections;
        let Some(collection) = &node.collection else {
            let ledger = node.phase.lead().map(|lead| &lead.ledger);
            let may_begin = may_begin && world.left.collections > 0;
            if may_begin && ledger.is_some_and(|ledger| ledger.holds().is_ok()) {
                actions.push(Action::Plan(i));
            }
            return;
        };
        let record = super::objects::record_name(collection.machine.record());
        match collection.machine.step() {
            CollectStep::Create => {
                self.either(world, &record, false, |answer| {
                    actions.push(Action::Record(i, answer));
                });
            }
            CollectStep::ReadBack => {
                self.either(world, &record, false, |answer| {
                    actions.push(Action::Record(i, answer));
                });
                if may_begin {
                    actions.push(Action::EndCollection(i));
                }
            }
            CollectStep::Look(_) => actions.push(Action::LookBeforeSweep(i)),
            CollectStep::ListPins => actions.push(Action::ListPins(i)),
            CollectStep::Sweep(_) => match world.doomed(collection) {
                Some(name) => {
                    self.delete_actions(world, i, &name, actions);
                }
                None => actions.push(Action::EndCollection(i)),
            },
            CollectStep::Fenced(_) | CollectStep::Taken(_) => {}
        }
    }

    fn delete_actions(
        &self,
        world: &World,
        i: usize,
        name: &ObjectName,
        actions: &mut Vec<Action>,
    ) {
        if self.bounds.in_batches {
            actions.push(Action::DeleteBatch(i));
            return;
        }
        self.either(world, name, true, |answer| {
            actions.push(Action::Delete(i, answer));
        });
    }

    /// An answer that is clear, and one that is not if that is possible.
    fn either(
        &self,
        world: &World,
        name: &ObjectName,
        is_delete: bool,
        mut push: impl FnMut(Answer),
    ) {
        push(Answer::Clear);
        let about = match name {
            _ if is_delete => Doubtful::Deletion,
            ObjectName::Epoch(_) => Doubtful::Claim,
            ObjectName::Manifest(..) => Doubtful::Manifest,
            ObjectName::Collect(..) => Doubtful::Record,
            ObjectName::Pin(_) => Doubtful::Pin,
            _ => Doubtful::Segment,
        };
        if world.may_doubt(name, is_delete) && self.bounds.doubtful.contains(&about) {
            push(Answer::Doubt);
        }
    }

    fn publish_actions(&self, world: &World, i: usize, node: &Node, actions: &mut Vec<Action>) {
        let Some(commit) = node.phase.commit() else {
            return;
        };
        match commit.machine.step() {
            CommitStep::Create | CommitStep::ReadBack => {
                let name = commit.position.object();
                self.either(world, &name, false, |answer| {
                    actions.push(Action::Publish(i, answer));
                });
            }
            CommitStep::Look(_) => actions.push(Action::Look(i)),
            other => panic!("the step before did this: {other:?}"),
        }
    }

    fn reader_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let pin = ObjectName::Pin(super::world::READER);
        match world.reader {
            Reader::Idle if world.left.pins > 0 => {
                for position in world.store.manifests.keys() {
                    self.either(world, &pin, false, |answer| {
                        actions.push(Action::Pin(*position, answer));
                    });
                }
            }
            Reader::Idle | Reader::Done => {}
            Reader::Pinning(position) => {
                self.either(world, &pin, false, |answer| {
                    actions.push(Action::Pin(position, answer));
                });
            }
            Reader::Pinned(_) => actions.push(Action::Read),
            Reader::Reading(..) => actions.push(Action::Unpin),
        }
    }
}

fn confirms(world: &World, epoch: u64) -> bool {
    let confirmed = world.truth.confirmed.keys();
    confirmed.filter(|p| p.epoch == Epoch(epoch)).count() > 1
}

fn is_sweeping(node: &super::sealed::Sealed<Node>) -> bool {
    node.collection.as_ref().is_some_and(|c| c.named.is_some())
}

fn has_collected(node: &super::sealed::Sealed<Node>) -> bool {
    node.collection.is_none() && node.collections > 0
}

impl World {
    /// Takes a step, and checks what must hold after it.
    pub(super) fn step(&mut self, action: Action) {
        match action {
            Action::Start(i) => self.start(i),
            Action::Claim(i, answer) => self.claim(i, answer),
            Action::List(i) => self.list(i),
            Action::Choose(i, asked) => self.choose(i, asked),
            Action::Snapshot(i, mode, answer) => {
                let id = self.trigger(i, mode);
                self.upload(i, id, 0, Answer::Clear);
                self.upload(i, id, 1, Answer::Clear);
                self.commit(i, id);
                self.publish(i, answer);
            }
            Action::Trigger(i, mode) => {
                self.trigger(i, mode);
            }
            Action::Upload(i, id, task, answer) => self.upload(i, id, task, answer),
            Action::Commit(i, id, answer) => {
                self.commit(i, id);
                self.publish(i, answer);
            }
            Action::Publish(i, answer) => self.publish(i, answer),
            Action::Look(i) => self.look(i),
            Action::Abort(i, id) => self.abort(i, id),
            Action::Restart(i) => self.restart(i),
            Action::GiveUp(i) => self.give_up(i),
            Action::Plan(i) => self.plan(i),
            Action::Record(i, answer) => self.record(i, answer),
            Action::LookBeforeSweep(i) => self.look_before_sweep(i),
            Action::ListPins(i) => self.list_pins(i),
            Action::Delete(i, answer) => self.delete(i, answer),
            Action::DeleteBatch(i) => self.delete_batch(i),
            Action::EndCollection(i) => self.end_collection(i),
            Action::Pin(position, answer) => self.pin(position, answer),
            Action::Read => self.read(),
            Action::Unpin => self.unpin(),
            Action::Land(index) => self.land(index),
        }
        for node in &mut self.nodes {
            node.seal();
        }
        self.store.seal();
        if action.may_break() {
            let read = match &self.reader {
                Reader::Reading(_, names) => Some(names),
                _ => None,
            };
            self.truth.check_whole(&self.store, read);
        }
    }
}

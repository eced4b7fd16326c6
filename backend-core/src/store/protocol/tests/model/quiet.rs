//! What can be brought about from a state once everybody else is quiet.

use super::machine::Action;
use super::sealed::Sealed;
use super::world::{Answer, Node, Phase, Reader, World};
use crate::contract::SnapshotMode;
use crate::ids::SnapshotId;
use crate::store::protocol::{CollectStep, CommitStep};

/// More steps than any process takes to its end.
const STEPS_MAX: usize = 400;

/// What could not be brought about.
pub(super) type Stuck = &'static str;

/// Whether from `world` a new coordinator, and the present leader if there is one, can always
/// commit a snapshot and collect all garbage, if whatever is in flight lands first or never does.
pub(super) fn check(world: &World) -> Result<(), Stuck> {
    for lands in [true, false] {
        let mut world = world.clone();
        world.calm(lands);
        let mut taken_over = world.clone();
        let index = taken_over.add_coordinator();
        taken_over.take_over(index)?;
        taken_over.finish(index)?;
        if let Some(leader) = world.leader() {
            world.finish(leader)?;
        }
    }
    Ok(())
}

impl World {
    /// Requests in flight land or are lost, and all leases end.
    fn calm(&mut self, lands: bool) {
        for put in self.store.take_flight() {
            if lands {
                self.store.apply(put);
            }
        }
        self.store.pins.clear();
        self.reader = Reader::Done;
    }

    /// The leader, if it has the highest epoch that is claimed.
    fn leader(&self) -> Option<usize> {
        let highest = self.store.claims.keys().last()?;
        self.nodes.iter().position(|node| {
            let lead = node.phase.lead();
            lead.is_some_and(|lead| lead.ledger.epoch() == *highest)
        })
    }

    fn add_coordinator(&mut self) -> usize {
        self.nodes.push(Sealed::new(Node {
            phase: Phase::Idle,
            collection: None,
            collections: 0,
        }));
        self.nodes.len() - 1
    }

    fn take_over(&mut self, index: usize) -> Result<(), Stuck> {
        for action in [
            Action::Start(index),
            Action::Claim(index, Answer::Clear),
            Action::List(index),
            Action::Choose(index, None),
        ] {
            self.step(action);
        }
        match self.nodes[index].phase {
            Phase::Adopting(_) => {
                self.step(Action::Publish(index, Answer::Clear));
                self.step(Action::Look(index));
                Ok(())
            }
            Phase::Leading(_) => Ok(()),
            _ => Err("a new coordinator finds nothing to go on from"),
        }
    }

    /// The leader settles what is in doubt, gives up what is pending, commits one full snapshot
    /// and collects twice.
    fn finish(&mut self, index: usize) -> Result<(), Stuck> {
        self.settle(index)?;
        let lead = self.nodes[index]
            .phase
            .lead()
            .ok_or("the leader is fenced")?;
        let pending: Vec<_> = lead.ledger.pending().map(|p| p.trigger.id).collect();
        for id in pending {
            self.step(Action::Abort(index, id));
        }
        self.step(Action::Trigger(index, SnapshotMode::Full));
        let lead = self.nodes[index]
            .phase
            .lead()
            .ok_or("the leader is fenced")?;
        let id: SnapshotId = *lead.writes.keys().last().ok_or("nothing was triggered")?;
        self.step(Action::Upload(index, id, 0, Answer::Clear));
        self.step(Action::Upload(index, id, 1, Answer::Clear));
        self.step(Action::Commit(index, id, Answer::Clear));
        self.settle(index)?;
        self.collect(index)?;
        for _ in 0..2 {
            self.step(Action::Plan(index));
            self.collect(index)?;
        }
        self.check_clean()
    }

    fn settle(&mut self, index: usize) -> Result<(), Stuck> {
        for _ in 0..STEPS_MAX {
            let commit = self.nodes[index].phase.commit();
            let Some(step) = commit.map(|commit| commit.machine.step()) else {
                return Ok(());
            };
            self.step(match step {
                CommitStep::Look(_) => Action::Look(index),
                _ => Action::Publish(index, Answer::Clear),
            });
        }
        Err("a commit is not settled")
    }

    fn collect(&mut self, index: usize) -> Result<(), Stuck> {
        for _ in 0..STEPS_MAX {
            let Some(collection) = &self.nodes[index].collection else {
                return Ok(());
            };
            let action = match collection.machine.step() {
                CollectStep::Create | CollectStep::ReadBack => Action::Record(index, Answer::Clear),
                CollectStep::Look(_) => Action::LookBeforeSweep(index),
                CollectStep::ListPins => Action::ListPins(index),
                CollectStep::Sweep(_) if self.doomed(collection).is_some() => {
                    Action::Delete(index, Answer::Clear)
                }
                CollectStep::Sweep(_) => Action::EndCollection(index),
                CollectStep::Fenced(_) | CollectStep::Taken(_) => {
                    return Err("a collection is fenced without a successor");
                }
            };
            self.step(action);
        }
        Err("a collection does not end")
    }

    /// Nothing is left but what is live.
    fn check_clean(&self) -> Result<(), Stuck> {
        if self.truth.is_broken() {
            return Err("a fault shows itself");
        }
        let store = &self.store;
        if store.manifests.keys().any(|p| store.condemns(*p)) {
            return Err("a condemned manifest is left");
        }
        let is_named = |name| store.manifests.values().any(|m| m.names.contains(name));
        if !store.segments.iter().all(is_named) {
            return Err("a segment is left that no manifest names");
        }
        if store.records.len() != 1 {
            return Err("condemn records pile up");
        }
        Ok(())
    }
}

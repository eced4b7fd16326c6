//! The steps of a coordinator and its tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::bounds::Variant;
use super::objects::{Link, Manifest, Put, segment};
use super::sealed::Sealed;
use super::truth::Fault;
use super::world::{Answer, Commit, Lead, Phase, Upload, World, Write};
use crate::contract::SnapshotMode;
use crate::ids::{Epoch, SnapshotId, UniqueId};
use crate::manifest::Position;
use crate::names::ObjectName;
use crate::store::protocol::{
    Adopt, ClaimStep, Claiming, CommitStep, Committing, CreateAnswer, Ledger, ObjectSet,
    choose_base,
};

impl World {
    /// An operator starts a coordinator, and it lists the epochs.
    pub(super) fn start(&mut self, index: usize) {
        let highest = self.store.claims.keys().last().map_or(0, |epoch| epoch.0);
        let gap = u64::from(self.variant == Variant::ClaimsWithGaps && highest > 0);
        let epochs: Vec<_> = (1..=highest + gap).map(Epoch).collect();
        let mut claiming = Claiming::new(UniqueId(index as u128 + 1));
        claiming.on_epochs(&epochs).expect("no gap");
        self.node(index).phase = Phase::Claiming(claiming);
    }

    /// Creates the claim, or reads it back first.
    pub(super) fn claim(&mut self, index: usize, answer: Answer) {
        let Phase::Claiming(mut claiming) = self.nodes[index].phase.clone() else {
            panic!("it claims");
        };
        let phase = loop {
            match claiming.step() {
                ClaimStep::Create(epoch) => {
                    let got = self.send(Put::Claim(epoch, claiming.unique()), answer);
                    claiming.on_create(got);
                    if got == CreateAnswer::InDoubt {
                        break Phase::Claiming(claiming);
                    }
                }
                ClaimStep::ReadBack(epoch) => {
                    let name = ObjectName::Epoch(epoch);
                    claiming.on_read_back(self.store.unique_of(&name));
                }
                ClaimStep::Claimed(epoch) => break Phase::Claimed(epoch),
                ClaimStep::Lost(_) => break self.stopped(),
                ClaimStep::ListEpochs => panic!("they were listed"),
            }
        };
        if self.store.claims.len() > self.nodes.len() {
            self.truth.fault(Fault::Unasked);
        }
        self.node(index).phase = phase;
    }

    fn stopped(&self) -> Phase {
        if self.variant == Variant::ClaimsAgain {
            Phase::Idle
        } else {
            Phase::Stopped
        }
    }

    pub(super) fn list(&mut self, index: usize) {
        let Phase::Claimed(epoch) = self.nodes[index].phase else {
            panic!("it has claimed");
        };
        let listed = self.store.positions();
        self.node(index).phase = Phase::Listed(epoch, listed);
    }

    /// Reads the condemn records and chooses the base: the newest, or what an operator `asked`
    /// for instead, of what is not condemned.
    pub(super) fn choose(&mut self, index: usize, asked: Option<Position>) {
        let Phase::Listed(epoch, listed) = &self.nodes[index].phase else {
            panic!("it has listed");
        };
        let epoch = *epoch;
        let condemned = self.store.condemned(listed);
        let adopt = asked.map_or(Adopt::Newest, Adopt::At);
        let phase = match choose_base(epoch, listed, &condemned, adopt) {
            Ok(choice) => {
                let found = choice.base.map(|p| self.store.manifests.get(&p).cloned());
                match found {
                    Some(None) => self.stopped(),
                    found => self.go_on_from(epoch, choice.next, found.flatten(), asked.is_some()),
                }
            }
            Err(_) => self.stopped(),
        };
        self.left.fallbacks -= u8::from(asked.is_some());
        self.node(index).phase = phase;
    }

    fn go_on_from(
        &mut self,
        epoch: Epoch,
        id: SnapshotId,
        base: Option<Sealed<Manifest>>,
        is_asked: bool,
    ) -> Phase {
        if let (Variant::NoAdoptionManifest, Some(base)) = (self.variant, &base) {
            self.truth.restore(epoch, &base.chain);
            let before = SnapshotId(id.0 - 1);
            return Phase::Leading(Lead::new(epoch, before, base.clone()));
        }
        let position = Position::new(epoch, id);
        let (chain, names) = match base {
            Some(base) => (base.chain.clone(), Arc::clone(&base.names)),
            None => (Vec::new(), Arc::default()),
        };
        Phase::Adopting(Commit::new(position, chain, is_asked, names))
    }

    pub(super) fn trigger(&mut self, index: usize, mode: SnapshotMode) -> SnapshotId {
        let lead = self.node(index).phase.lead_mut();
        let trigger = lead.ledger.trigger(mode, 0).expect("it leads");
        let names = match mode {
            SnapshotMode::Incremental => (*lead.last.names).clone(),
            _ => BTreeSet::new(),
        };
        let write = Write {
            mode,
            base: trigger.base.expect("a ledger's triggers have a base"),
            names,
            tasks: [Upload::Due; 2],
        };
        lead.writes.insert(trigger.id, write);
        lead.triggered += 1;
        trigger.id
    }

    /// A task puts its segment of a snapshot. The snapshot refers to it, and if it is
    /// incremental to what this task has written above the base, for whichever snapshot.
    pub(super) fn upload(&mut self, index: usize, id: SnapshotId, task: u32, answer: Answer) {
        let epoch = self.nodes[index]
            .phase
            .lead()
            .expect("leads")
            .ledger
            .epoch();
        let name = segment(epoch, id, task);
        let got = self.send(Put::Segment(name), answer);
        let lead = self.node(index).phase.lead_mut();
        lead.has_written = true;
        let write = lead.writes.get_mut(&id).expect("it is written");
        if got == CreateAnswer::InDoubt {
            write.tasks[task as usize] = Upload::InDoubt;
            return;
        }
        write.tasks[task as usize] = Upload::Durable;
        if write.mode == SnapshotMode::Incremental {
            let between = (write.base.0 + 1..id.0).map(|id| segment(epoch, SnapshotId(id), task));
            let shared = between.filter(|name| lead.durable.contains(name));
            write.names.extend(shared);
        }
        write.names.insert(name);
        lead.durable.insert(name);
    }

    /// Begins to commit what both tasks have acknowledged.
    pub(super) fn commit(&mut self, index: usize, id: SnapshotId) {
        let lead = self.node(index).phase.lead_mut();
        let pending = lead.ledger.committable(id).expect("it is pending");
        let names = Arc::new(lead.writes[&id].names.clone());
        let attempt = lead.ledger.attempt();
        let is_fit = lead
            .ledger
            .check_ack(&pending, Position::new(lead.ledger.epoch(), id), attempt)
            .is_ok()
            && lead.ledger.check_references(&pending, &*names).is_ok();
        lead.ledger.on_commit_begun(id);
        let position = Position::new(lead.ledger.epoch(), id);
        lead.commit = Some(Commit::new(position, lead.last.chain.clone(), false, names));
        if !is_fit {
            self.truth.fault(Fault::Declined);
        }
    }

    /// Creates the manifest under way, or reads it back first.
    pub(super) fn publish(&mut self, index: usize, answer: Answer) {
        let mut commit = self.nodes[index].phase.commit().expect("under way").clone();
        let name = commit.position.object();
        loop {
            match commit.machine.step() {
                CommitStep::Create => {
                    let put = Put::Manifest(commit.position, commit.manifest.clone());
                    let got = self.send(put, answer);
                    commit.machine.on_create(got);
                    if got == CreateAnswer::InDoubt {
                        break;
                    }
                }
                CommitStep::ReadBack => commit.machine.on_read_back(self.store.unique_of(&name)),
                _ => break,
            }
        }
        let is_taken = matches!(commit.machine.step(), CommitStep::Taken(_));
        let stopped = self.stopped();
        let node = self.node(index);
        match &mut node.phase {
            phase if is_taken => *phase = stopped,
            Phase::Adopting(adopting) => *adopting = commit,
            phase => phase.lead_mut().commit = Some(commit),
        }
    }

    /// Looks for a successor: confirmed or fenced.
    pub(super) fn look(&mut self, index: usize) {
        let mut commit = self.nodes[index].phase.commit().expect("under way").clone();
        let CommitStep::Look(next) = commit.machine.step() else {
            panic!("it looks");
        };
        let found = self.store.claims.contains_key(&next);
        commit
            .machine
            .on_look(found && self.variant != Variant::NoLook);
        if commit.machine.step() != CommitStep::Confirmed {
            self.node(index).phase = self.stopped();
            return;
        }
        self.truth.confirm(&commit.manifest);
        let Position { epoch, id } = commit.position;
        if let Phase::Adopting(_) = self.nodes[index].phase {
            self.truth.restore(epoch, &commit.manifest.chain);
            self.node(index).phase = Phase::Leading(Lead::new(epoch, id, commit.manifest));
            return;
        }
        let lead = self.node(index).phase.lead_mut();
        lead.ledger
            .on_confirmed(id, Arc::clone(&commit.manifest.names));
        lead.last = commit.manifest;
        lead.commit = None;
        lead.writes = lead.writes.split_off(&id.next());
    }

    pub(super) fn abort(&mut self, index: usize, id: SnapshotId) {
        let lead = self.node(index).phase.lead_mut();
        lead.ledger.abort(id).expect("it is settled");
        let epoch = lead.ledger.epoch();
        if self.variant == Variant::AbortDeletes {
            for task in 0..2 {
                self.store.delete(&segment(epoch, id, task));
            }
        }
    }

    /// The job restarts within the epoch: its tasks begin anew from the last confirmed snapshot.
    pub(super) fn restart(&mut self, index: usize) {
        let lead = self.node(index).phase.lead_mut();
        lead.ledger.next_attempt().expect("it is settled");
        lead.writes = BTreeMap::new();
        lead.durable = BTreeSet::new();
    }

    /// What no coordinator may do: its ledger does not allow it, so a new one takes over.
    pub(super) fn give_up(&mut self, index: usize) {
        let lead = self.node(index).phase.lead_mut();
        let commit = lead.commit.take().expect("under way");
        let Position { epoch, id } = commit.position;
        let mut forgetful = Lead::new(epoch, id, lead.last.clone());
        forgetful.triggered = lead.triggered;
        *lead = forgetful;
        self.truth.dropped.insert(commit.position);
    }
}

impl Commit {
    fn new(position: Position, mut chain: Vec<Link>, is_asked: bool, names: ObjectSet) -> Self {
        let unique = UniqueId(u128::from(position.epoch.0));
        chain.push(Link { position, is_asked });
        let manifest = Manifest {
            unique,
            chain,
            names,
        };
        Self {
            machine: Committing::new(position, unique),
            position,
            manifest: Sealed::new(manifest),
        }
    }
}

impl Lead {
    fn new(epoch: Epoch, confirmed: SnapshotId, last: Sealed<Manifest>) -> Self {
        Self {
            ledger: Ledger::new(epoch, confirmed, Arc::clone(&last.names)),
            last,
            writes: BTreeMap::new(),
            durable: BTreeSet::new(),
            commit: None,
            triggered: 0,
            has_written: false,
        }
    }
}

impl Phase {
    pub(super) fn commit(&self) -> Option<&Commit> {
        match self {
            Self::Adopting(commit) => Some(commit),
            Self::Leading(lead) => lead.commit.as_ref(),
            _ => None,
        }
    }
}

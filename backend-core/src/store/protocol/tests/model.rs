//! Random walks of three coordinators over a store that delays, loses and doubts: the protocol
//! holds, and each broken variant of it is caught.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::contract::SnapshotMode;
use crate::ids::{Epoch, SnapshotId, UniqueId};
use crate::manifest::Position;
use crate::store::protocol::{
    Adopt, ClaimStep, Claiming, CommitStep, Committing, CreateAnswer, Ledger, choose_base,
};

/// What a walk leaves out of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Whole,
    NoLook,
    NoAdoptionManifest,
    GivesUpInDoubt,
    ClaimsWithGaps,
}

#[derive(Clone, Copy)]
enum Put {
    Claim(Epoch, UniqueId),
    Manifest(Position, UniqueId, Option<Position>),
}

enum Node {
    Idle,
    Claiming(Claiming),
    Listing(Epoch),
    Adopting(Committing, Put),
    Leading(Ledger, Position, Option<(Committing, Put)>),
    Stopped,
}

/// The store, and what the world was told.
struct World {
    variant: Variant,
    random: u64,
    unique: u128,
    claims: BTreeMap<Epoch, UniqueId>,
    manifests: BTreeMap<Position, (UniqueId, Option<Position>)>,
    in_flight: Vec<Put>,
    last_confirmed: Option<Position>,
    /// For an adoption: below its epoch only these count from then on.
    adoptions: Vec<(Epoch, BTreeSet<Position>)>,
    rolled_back: BTreeSet<Position>,
}

type Violation = &'static str;

impl World {
    fn new(variant: Variant, seed: u64) -> Self {
        Self {
            variant,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            unique: 0,
            claims: BTreeMap::new(),
            manifests: BTreeMap::new(),
            in_flight: Vec::new(),
            last_confirmed: None,
            adoptions: Vec::new(),
            rolled_back: BTreeSet::new(),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) as usize % bound
    }

    fn unique(&mut self) -> UniqueId {
        self.unique += 1;
        UniqueId(self.unique)
    }

    fn land(&mut self, put: Put) -> CreateAnswer {
        let taken = match put {
            Put::Claim(epoch, unique) => {
                let taken = self.claims.contains_key(&epoch);
                self.claims.entry(epoch).or_insert(unique);
                taken
            }
            Put::Manifest(position, unique, parent) => {
                let taken = self.manifests.contains_key(&position);
                self.manifests.entry(position).or_insert((unique, parent));
                taken
            }
        };
        if taken {
            CreateAnswer::Exists
        } else {
            CreateAnswer::Created
        }
    }

    fn create(&mut self, put: Put) -> CreateAnswer {
        match self.below(6) {
            0 => CreateAnswer::InDoubt,
            1 => {
                self.land(put);
                CreateAnswer::InDoubt
            }
            2 => {
                self.in_flight.push(put);
                CreateAnswer::InDoubt
            }
            _ => self.land(put),
        }
    }

    fn ancestry(&self, of: Position) -> BTreeSet<Position> {
        let mut found = BTreeSet::new();
        let mut next = Some(of);
        while let Some(position) = next {
            found.insert(position);
            next = self
                .manifests
                .get(&position)
                .and_then(|(_, parent)| *parent);
        }
        found
    }

    /// A snapshot is confirmed: a permit is given out for it.
    fn confirm(&mut self, position: Position) -> Result<(), Violation> {
        let ancestry = self.ancestry(position);
        if self
            .last_confirmed
            .is_some_and(|last| !ancestry.contains(&last))
        {
            return Err("a confirmed snapshot is not an ancestor of a later one");
        }
        if self.rolled_back.intersection(&ancestry).next().is_some() {
            return Err("what was rolled back is built upon");
        }
        let fits = |(epoch, allowed): &(Epoch, BTreeSet<Position>)| {
            ancestry
                .iter()
                .all(|p| p.epoch >= *epoch || allowed.contains(p))
        };
        if !self.adoptions.iter().all(fits) {
            return Err("what an adoption passed over is built upon");
        }
        self.last_confirmed = Some(position);
        Ok(())
    }

    /// An adoption is confirmed: the job restarts from it, and all else is rolled back.
    fn restart(&mut self, epoch: Epoch, position: Position) {
        let ancestry = self.ancestry(position);
        self.adoptions.push((epoch, ancestry));
    }

    fn drive(&mut self, committing: &mut Committing, put: Put) {
        match committing.step() {
            CommitStep::Create => committing.on_create(self.create(put)),
            CommitStep::ReadBack => {
                let Put::Manifest(position, ..) = put else {
                    panic!("a commit puts a manifest");
                };
                committing.on_read_back(self.manifests.get(&position).map(|(u, _)| *u));
            }
            CommitStep::Look(epoch) => {
                let found = self.claims.contains_key(&epoch);
                committing.on_look(found && self.variant != Variant::NoLook);
            }
            CommitStep::Confirmed | CommitStep::Fenced(_) | CommitStep::Taken(_) => {}
        }
    }

    fn step(&mut self, node: Node) -> Result<Node, Violation> {
        Ok(match node {
            Node::Idle => Node::Claiming(Claiming::new(self.unique())),
            Node::Claiming(claiming) => self.claim(claiming),
            Node::Listing(epoch) => self.adopt(epoch),
            Node::Adopting(mut committing, put) => {
                self.drive(&mut committing, put);
                let Put::Manifest(position, ..) = put else {
                    panic!("an adoption puts a manifest");
                };
                match committing.step() {
                    CommitStep::Confirmed => {
                        self.confirm(position)?;
                        self.restart(position.epoch, position);
                        let ledger = Ledger::new(position.epoch, position.id, Arc::default());
                        Node::Leading(ledger, position, None)
                    }
                    CommitStep::Fenced(_) | CommitStep::Taken(_) => Node::Stopped,
                    _ => Node::Adopting(committing, put),
                }
            }
            Node::Leading(ledger, last, None) => self.begin(ledger, last),
            Node::Leading(ledger, last, Some((committing, put))) => {
                self.go_on(ledger, last, committing, put)?
            }
            Node::Stopped => Node::Stopped,
        })
    }

    fn claim(&mut self, mut claiming: Claiming) -> Node {
        match claiming.step() {
            ClaimStep::ListEpochs => {
                let highest = self.claims.keys().last().map_or(0, |e| e.0);
                let gap = u64::from(self.variant == Variant::ClaimsWithGaps && highest > 0);
                let epochs: Vec<_> = (1..=highest + gap).map(Epoch).collect();
                claiming.on_epochs(&epochs).expect("no gap");
            }
            ClaimStep::Create(epoch) => {
                let put = Put::Claim(epoch, claiming.unique());
                claiming.on_create(self.create(put));
            }
            ClaimStep::ReadBack(epoch) => {
                claiming.on_read_back(self.claims.get(&epoch).copied());
            }
            ClaimStep::Claimed(epoch) => return Node::Listing(epoch),
            ClaimStep::Lost(_) => return Node::Stopped,
        }
        Node::Claiming(claiming)
    }

    fn adopt(&mut self, epoch: Epoch) -> Node {
        let manifests: Vec<_> = self.manifests.keys().copied().collect();
        let Ok(choice) = choose_base(epoch, &manifests, &[], Adopt::Newest) else {
            return Node::Stopped;
        };
        if let (Variant::NoAdoptionManifest, Some(base)) = (self.variant, choice.base) {
            self.restart(epoch, base);
            let before = SnapshotId(choice.next.0 - 1);
            return Node::Leading(Ledger::new(epoch, before, Arc::default()), base, None);
        }
        let (position, unique) = (Position::new(epoch, choice.next), self.unique());
        let put = Put::Manifest(position, unique, choice.base);
        Node::Adopting(Committing::new(position, unique), put)
    }

    fn begin(&mut self, mut ledger: Ledger, last: Position) -> Node {
        let trigger = ledger
            .trigger(SnapshotMode::Incremental, 0)
            .expect("it leads");
        ledger.committable(trigger.id).expect("pending");
        ledger.on_commit_begun(trigger.id);
        let (position, unique) = (Position::new(ledger.epoch(), trigger.id), self.unique());
        let put = Put::Manifest(position, unique, Some(last));
        Node::Leading(ledger, last, Some((Committing::new(position, unique), put)))
    }

    fn go_on(
        &mut self,
        mut ledger: Ledger,
        last: Position,
        mut committing: Committing,
        put: Put,
    ) -> Result<Node, Violation> {
        let was_doubtful = committing.step() == CommitStep::ReadBack;
        self.drive(&mut committing, put);
        let Put::Manifest(position, ..) = put else {
            panic!("a commit puts a manifest");
        };
        Ok(match committing.step() {
            CommitStep::Confirmed => {
                self.confirm(position)?;
                ledger.on_confirmed(position.id, Arc::default());
                Node::Leading(ledger, position, None)
            }
            CommitStep::Fenced(_) | CommitStep::Taken(_) => Node::Stopped,
            CommitStep::Create if was_doubtful && self.variant == Variant::GivesUpInDoubt => {
                // The ledger itself does not allow it, so a new one takes over.
                self.rolled_back.insert(position);
                let forgetful = Ledger::new(position.epoch, position.id, Arc::default());
                Node::Leading(forgetful, last, None)
            }
            _ => Node::Leading(ledger, last, Some((committing, put))),
        })
    }
}

/// One walk; the answer is how many snapshots were confirmed in how many epochs.
fn walk(variant: Variant, seed: u64) -> Result<(usize, usize), Violation> {
    let mut world = World::new(variant, seed);
    let mut nodes = [Node::Idle, Node::Idle, Node::Idle];
    let mut confirmed = BTreeSet::new();
    for _ in 0..90 {
        let choice = world.below(8);
        if choice == 7 && !world.in_flight.is_empty() {
            let index = world.below(world.in_flight.len());
            let put = world.in_flight.swap_remove(index);
            world.land(put);
            continue;
        }
        let node = &mut nodes[choice % 3];
        *node = world.step(std::mem::replace(node, Node::Stopped))?;
        confirmed.extend(world.last_confirmed);
    }
    let epochs: BTreeSet<_> = confirmed.iter().map(|p| p.epoch).collect();
    Ok((confirmed.len(), epochs.len()))
}

const WALKS: u64 = 100_000;

#[test]
fn the_whole_protocol_confirms_one_chain() {
    let mut most = (0, 0);
    for seed in 0..WALKS {
        let (snapshots, epochs) = walk(Variant::Whole, seed)
            .unwrap_or_else(|violation| panic!("walk {seed}: {violation}"));
        most = (most.0.max(snapshots), most.1.max(epochs));
    }
    assert!(most.0 > 8 && most.1 == 3, "the walks went far: {most:?}");
}

#[test]
fn each_broken_variant_is_caught() {
    for variant in [
        Variant::NoLook,
        Variant::NoAdoptionManifest,
        Variant::GivesUpInDoubt,
        Variant::ClaimsWithGaps,
    ] {
        let caught = (0..WALKS).any(|seed| walk(variant, seed).is_err());
        assert!(caught, "{variant:?} went unnoticed");
    }
}

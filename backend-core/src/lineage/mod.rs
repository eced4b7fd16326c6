//! What a task's snapshots consist of: which segments are durable, up to which generation, and
//! which snapshots are on their way.
//!
//! The rules are those of the format's document, section 'Increments':
//! 1. *Covered* is the highest generation whose changes all lie in durable segments. It depends
//!    on durability, never on confirmation.
//! 2. The write of a snapshot frozen at generation g reads *covered* once. Its delta is the
//!    final state of every sub-key with covered < stamp <= g, and its part lists the durable
//!    segments up to *covered*, then the delta. It waits for no other snapshot.
//! 3. On success covered = max(covered, g). On failure or abort nothing changes: the next delta
//!    is wider.

mod merge;
mod reference;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

pub use self::merge::{MergeClaim, MergeOutcome};
use self::reference::{Parts, Permitted};
use crate::chain::{Chain, ChainAdvice, ChainPolicy};
use crate::contract::{SnapshotMode, Trigger};
use crate::generation::{Generation, WriteContext};
use crate::ids::SnapshotId;
use crate::segment::SegmentRef;

/// The durable segments and pending snapshots of one task. Clones share them.
#[derive(Clone, Debug)]
pub struct Lineage {
    state: Arc<Mutex<State>>,
    policy: ChainPolicy,
    /// Held by whoever merges, for as long as there is something to merge.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
struct State {
    /// The highest generation whose changes all lie in `chain`.
    covered: Generation,
    /// Durable segments, oldest first. Shared, so that a freeze remembers it for one count.
    chain: Arc<Chain>,
    /// Frozen generations whose write has neither ended nor been given up.
    pending: BTreeSet<Generation>,
    /// The objects of each snapshot that may be a base.
    parts: Parts,
    /// The highest snapshot id whose write has read the chain.
    started: SnapshotId,
    /// The number of the next run.
    next_run: u32,
    /// Finished merges, each on top of those before it, that wait for the snapshot that may refer
    /// to them.
    staged: VecDeque<merge::Staged>,
    /// How many snapshots are expected to begin while a merge is under way.
    slack: u64,
    /// Whether somebody merges.
    merging: bool,
    /// No snapshot of this generation or a later one refers to older segments until one has been
    /// written in full.
    rewrite_from: Option<Generation>,
}

impl Lineage {
    /// The lineage of a store restored from `chain`, the segments of `snapshot`, which hold all
    /// changes up to `covered`.
    pub fn restored(
        chain: Chain,
        covered: Generation,
        snapshot: SnapshotId,
        policy: ChainPolicy,
    ) -> Self {
        let mut parts = Parts::default();
        parts.note(snapshot, chain.refs().iter());
        let state = State {
            next_run: chain.next_run(),
            covered,
            parts,
            chain: Arc::new(chain),
            pending: BTreeSet::new(),
            started: snapshot,
            staged: VecDeque::new(),
            slack: 0,
            merging: false,
            rewrite_from: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            policy,
            turn: Arc::default(),
        }
    }

    /// The lineage of a store that holds nothing yet.
    pub fn empty(policy: ChainPolicy) -> Self {
        Self::restored(Chain::default(), Generation::ZERO, SnapshotId(0), policy)
    }

    /// What writes of `generation` have to know now.
    pub fn write_context(&self, generation: Generation, incremental: bool) -> WriteContext {
        let state = self.state.lock();
        let pending = state.pending.last().copied().unwrap_or_default();
        let anchor = state.covered.max(pending);
        WriteContext {
            generation,
            covered: state.covered,
            anchor,
            incremental,
        }
    }

    /// The durable segments say what is no longer so about entries that nobody writes: the next
    /// snapshot that is frozen in `generation` or later is written in full.
    pub fn require_full(&self, generation: Generation) {
        self.state.lock().rewrite_from = Some(generation);
    }

    /// Notes that `generation` has been frozen for the snapshot of `trigger`. The guard forgets it
    /// when it is dropped.
    pub fn freeze(&self, generation: Generation, trigger: &Trigger) -> FrozenGeneration {
        let mut state = self.state.lock();
        state.pending.insert(generation);
        let permitted = state.parts.permitted(trigger);
        let mode = trigger.mode;
        let wants_full = mode != SnapshotMode::Incremental
            || state.covered == Generation::ZERO
            || state.rewrite_from.is_some()
            || !permitted.covers(state.chain.refs())
            || self.policy.advise(&state.chain) == ChainAdvice::WriteFull;
        let base = (!wants_full).then(|| (state.covered, Arc::clone(&state.chain)));
        let enters_chain = mode != SnapshotMode::Savepoint;
        FrozenGeneration {
            lineage: self.clone(),
            generation,
            base,
            permitted,
            enters_chain,
        }
    }

    /// The turn to merge; nobody else merges while it is held.
    pub(crate) fn turn(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.turn)
    }

    /// The bytes and runs of the durable chain.
    pub fn chain(&self) -> Arc<Chain> {
        Arc::clone(&self.state.lock().chain)
    }

    /// The highest generation whose changes all lie in durable segments.
    pub fn covered(&self) -> Generation {
        self.state.lock().covered
    }
}

/// A frozen generation on its way into a snapshot.
#[derive(Debug)]
pub struct FrozenGeneration {
    lineage: Lineage,
    generation: Generation,
    /// What was covered, and by which segments, when it was frozen; `None` to write everything.
    base: Option<(Generation, Arc<Chain>)>,
    /// What the snapshot may refer to; `base` is within it.
    permitted: Permitted,
    /// Whether later increments may build on it; a savepoint belongs to the user.
    enters_chain: bool,
}

/// What the write of a snapshot has to do.
#[derive(Clone, Debug)]
pub struct Delta {
    /// Only changes with a higher stamp are written; `None`: all live entries are.
    pub newer_than: Option<Generation>,
    /// The durable segments that come before the delta in the snapshot's part.
    pub base: Vec<SegmentRef>,
    /// The run number of the delta's segments.
    pub run: u32,
}

impl FrozenGeneration {
    /// The generation.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The stamp up to which pages are not needed, as far as the freeze can tell; `None`: all
    /// are.
    pub fn newer_than(&self) -> Option<Generation> {
        self.base.as_ref().map(|(covered, _)| *covered)
    }

    /// Reads what is covered, once, for the write of the snapshot.
    pub fn start_write(&self) -> Delta {
        let id = self.permitted.id();
        let mut state = self.lineage.state.lock();
        state.install_staged(id);
        state.started = state.started.max(id);
        let run = state.take_run();
        let Some((covered_then, chain_then)) = &self.base else {
            return Delta {
                newer_than: None,
                base: Vec::new(),
                run,
            };
        };
        // A later generation may have become durable first, or a merge for a later snapshot may
        // have entered; their segments hold what this snapshot must not show or refer to, so
        // what was known at the freeze is used instead.
        let may_use_now =
            state.covered <= self.generation && self.permitted.covers(state.chain.refs());
        let (covered, chain) = if may_use_now {
            (state.covered, &state.chain)
        } else {
            (*covered_then, chain_then)
        };
        Delta {
            newer_than: Some(covered),
            base: chain.refs().to_vec(),
            run,
        }
    }

    /// Notes that `segments`, which hold `delta`, are durable.
    pub fn complete(self, delta: &Delta, segments: &[SegmentRef]) {
        let mut state = self.lineage.state.lock();
        let part = delta.base.iter().chain(segments);
        state.parts.note(self.permitted.id(), part);
        if !self.enters_chain || self.generation <= state.covered {
            return;
        }
        let is_full = delta.newer_than.is_none();
        if is_full
            && state
                .rewrite_from
                .is_some_and(|from| from <= self.generation)
        {
            state.rewrite_from = None;
        }
        let mut chain = (*state.chain).clone();
        // Runs that became durable since the delta's base was read hold nothing that it lacks.
        chain.drop_newer_than(delta.newer_than.unwrap_or_default());
        chain.append(segments);
        state.chain = Arc::new(chain);
        state.covered = self.generation;
    }
}

impl State {
    fn take_run(&mut self) -> u32 {
        let run = self.next_run;
        self.next_run = run
            .checked_add(1)
            .expect("a task writes fewer than 2^32 runs");
        run
    }
}

impl Drop for FrozenGeneration {
    fn drop(&mut self) {
        self.lineage.state.lock().pending.remove(&self.generation);
    }
}

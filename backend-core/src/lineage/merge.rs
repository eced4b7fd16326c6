//! Merges of a task's chain: one at a time, staged until a snapshot may refer to the output.
//!
//! A snapshot k may refer to segments of its base's manifest or with an id in (base, k]. The
//! name of an output carries a future id; the output enters the first snapshot with that id or
//! a higher one. If such a snapshot has begun without it, the output is of no use.

use std::sync::Arc;

use super::{Lineage, State};
use crate::chain::{Chain, MergePlan};
use crate::ids::SnapshotId;
use crate::range::HashRange;
use crate::segment::SegmentRef;

/// A merge during which more snapshots begin is given up, and then made before the next one.
const SLACK_MAX: u64 = 16;

/// A finished merge that waits for the snapshot that may refer to it.
#[derive(Debug)]
pub(super) struct Staged {
    plan: MergePlan,
    outputs: Vec<SegmentRef>,
    from: SnapshotId,
}

/// The right to merge the chain of one task; nobody else merges it meanwhile.
#[derive(Debug)]
pub struct MergeClaim {
    lineage: Lineage,
    plan: MergePlan,
    run: u32,
}

/// What became of a finished merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// It enters the next snapshot that may refer to it.
    Staged,
    /// A snapshot that could have referred to it has begun without it.
    TooLate,
}

impl Lineage {
    /// Whether merges lag so far behind that the next snapshot had better wait for them.
    pub fn is_overdue(&self) -> bool {
        let state = self.state.lock();
        self.policy.is_overdue(&state.chain_to_be())
    }

    /// The next merge that the chain needs, with those that wait for a snapshot taken as done;
    /// `None` if there is none, or one is under way.
    pub fn claim_merge(&self, range: HashRange) -> Option<MergeClaim> {
        let mut state = self.state.lock();
        if state.merging {
            return None;
        }
        let plan = self.policy.plan(&state.chain_to_be(), range)?;
        let run = plan.run.unwrap_or_else(|| state.take_run());
        state.merging = true;
        drop(state);
        Some(MergeClaim {
            lineage: self.clone(),
            plan,
            run,
        })
    }
}

impl MergeClaim {
    /// What to read and what to write.
    pub fn plan(&self) -> &MergePlan {
        &self.plan
    }

    /// The run number of the output.
    pub fn run(&self) -> u32 {
        self.run
    }

    /// The id for the names of the outputs: above that of every snapshot whose write has begun,
    /// by as many as lately began during a merge, and not below that of a merge which waits
    /// already, because this one enters the chain behind it.
    pub fn output_id(&self) -> SnapshotId {
        let state = self.lineage.state.lock();
        let first = SnapshotId(
            state
                .started
                .0
                .saturating_add(1)
                .saturating_add(state.slack),
        );
        state
            .staged
            .back()
            .map_or(first, |waiting| waiting.from.max(first))
    }

    /// Hands in `outputs`, which are durable and whose names carry `from`. If that is too late,
    /// the next [`MergeClaim::output_id`] leaves more time.
    pub fn stage(&self, outputs: Vec<SegmentRef>, from: SnapshotId) -> MergeOutcome {
        let mut state = self.lineage.state.lock();
        if state.started >= from {
            state.slack = (2 * state.slack + 1).min(SLACK_MAX);
            return MergeOutcome::TooLate;
        }
        state.slack -= state.slack.div_ceil(8);
        state.staged.push_back(Staged {
            plan: self.plan.clone(),
            outputs,
            from,
        });
        MergeOutcome::Staged
    }
}

impl Drop for MergeClaim {
    fn drop(&mut self) {
        self.lineage.state.lock().merging = false;
    }
}

impl State {
    /// The chain with all staged merges.
    fn chain_to_be(&self) -> Chain {
        let mut chain = (*self.chain).clone();
        for staged in &self.staged {
            chain.replace(&staged.plan, &staged.outputs);
        }
        chain
    }

    /// Lets staged merges into the chain if snapshot `id` may refer to them. One whose inputs
    /// have left the chain is forgotten, and so are those that build on it.
    pub(super) fn install_staged(&mut self, id: SnapshotId) {
        let mut chain = (*self.chain).clone();
        let mut is_changed = false;
        while let Some(staged) = self.staged.pop_front_if(|staged| staged.from <= id) {
            if !chain.replace(&staged.plan, &staged.outputs) {
                self.staged.clear();
                break;
            }
            is_changed = true;
        }
        if is_changed {
            self.chain = Arc::new(chain);
        }
    }
}

//! Merges of a task's chain: one at a time, staged until a snapshot may refer to the output.
//!
//! A snapshot k may refer to segments of its base's manifest or with an id in (base, k]. The
//! name of an output carries a future id; the output enters the first snapshot with that id or
//! a higher one. If such a snapshot has begun without it, the output is of no use.

use std::sync::Arc;

use super::{Lineage, State};
use crate::chain::MergePlan;
use crate::ids::SnapshotId;
use crate::range::HashRange;
use crate::segment::SegmentRef;

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
    /// The next merge that the chain needs, unless one is under way or waits for a snapshot.
    pub fn claim_merge(&self, range: HashRange) -> Option<MergeClaim> {
        let mut state = self.state.lock();
        if state.merging || state.staged.is_some() {
            return None;
        }
        let plan = self.policy.plan(&state.chain, range)?;
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
    /// by `slack` more than need be.
    pub fn output_id(&self, slack: u64) -> SnapshotId {
        let started = self.lineage.state.lock().started;
        SnapshotId(started.0.saturating_add(1).saturating_add(slack))
    }

    /// Hands in `outputs`, which are durable and whose names carry `from`.
    pub fn stage(&self, outputs: Vec<SegmentRef>, from: SnapshotId) -> MergeOutcome {
        let mut state = self.lineage.state.lock();
        if state.started >= from {
            return MergeOutcome::TooLate;
        }
        state.staged = Some(Staged {
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
    /// Lets a staged merge into the chain if snapshot `id` may refer to it. One whose inputs
    /// have left the chain is forgotten.
    pub(super) fn install_staged(&mut self, id: SnapshotId) {
        let Some(staged) = self.staged.take_if(|staged| staged.from <= id) else {
            return;
        };
        let mut chain = (*self.chain).clone();
        if chain.replace(&staged.plan, &staged.outputs) {
            self.chain = Arc::new(chain);
        }
    }
}

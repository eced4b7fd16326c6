//! Carrying out the merges that a chain needs: read, merge, put, hand in.

use std::sync::Arc;

use crate::chain::{KeySpan, MergePlan};
use crate::entry::Op;
use crate::error::Result;
use crate::hash::KeyHasher;
use crate::ids::{Epoch, TaskIndex};
use crate::lineage::{Lineage, MergeClaim, MergeOutcome};
use crate::range::HashRange;
use crate::runtime::IoRuntime;
use crate::segment::{
    BlockEntries, BlockSource, Clip, MergeRules, SegmentRef, SegmentSource, SegmentStream, merge,
    prefix_of,
};
use crate::storage::Storage;
use crate::upload::{EntrySink, RunSpec, Uploader};

/// How often a merge whose snapshot went by is tried again, each time for a later one.
const TRIES: u32 = 6;

/// Merges the chain of one task.
#[derive(Clone, Debug)]
pub struct Compactor {
    /// Puts the outputs.
    pub uploader: Uploader,
    /// The chain.
    pub lineage: Lineage,
    /// The task.
    pub task: TaskIndex,
    /// The task's range.
    pub range: HashRange,
    /// How keys are hashed, to clip what a task does not own.
    pub hasher: KeyHasher,
}

impl Compactor {
    /// Carries out the merges that the chain needs, one after the other, until it needs no more
    /// or about `bytes_max` have been read. If somebody else is at it, it waits if `waits`, and
    /// leaves it to them if not. Names carry `epoch`. Says how many there were.
    ///
    /// # Errors
    /// Those of the store. The chain stays as it is, and the merge is tried again after the next
    /// snapshot.
    pub async fn run(&self, epoch: Epoch, bytes_max: u64, waits: bool) -> Result<u32> {
        let turn = self.lineage.turn();
        let _turn = if waits {
            turn.lock().await
        } else if let Ok(held) = turn.try_lock() {
            held
        } else {
            return Ok(0);
        };
        let mut merges = 0;
        let mut bytes = 0;
        while bytes < bytes_max {
            let Some(claim) = self.lineage.claim_merge(self.range) else {
                break;
            };
            bytes += claim.plan().input_bytes().max(1);
            if !self.merge(&claim, epoch).await? {
                break;
            }
            merges += 1;
        }
        Ok(merges)
    }

    /// Carries out one merge; whether a snapshot can still refer to it.
    async fn merge(&self, claim: &MergeClaim, epoch: Epoch) -> Result<bool> {
        for _ in 0..TRIES {
            if self.merge_once(claim, epoch).await? == MergeOutcome::Staged {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn merge_once(&self, claim: &MergeClaim, epoch: Epoch) -> Result<MergeOutcome> {
        let plan = claim.plan().clone();
        let from = claim.output_id();
        let spec = RunSpec {
            epoch,
            snapshot: from,
            task: self.task,
            clip: plan.clip,
            generations: plan.generations,
            tier: plan.tier,
            run: claim.run(),
            inline_bytes_max: 0,
        };
        let storage = self.uploader.storage.clone();
        let runtime = self.uploader.runtime.clone();
        let now_ms = self.uploader.environment.now_ms();
        let hasher = self.hasher;
        let produce = move |sink: &mut EntrySink<'_>| {
            run_merge(&plan, &storage, &runtime, hasher, now_ms, sink)
        };
        let uploaded = self.uploader.write_run(spec, produce).await?;
        Ok(claim.stage(uploaded.segments, from))
    }
}

/// The segments of one run, one behind the other.
struct RunBlocks {
    runtime: IoRuntime,
    streams: std::vec::IntoIter<SegmentStream>,
    current: Option<SegmentStream>,
}

impl BlockSource for RunBlocks {
    fn next_block(&mut self) -> Result<Option<BlockEntries>> {
        loop {
            if let Some(stream) = &mut self.current
                && let Some(block) = self.runtime.wait(stream.next_block())?
            {
                return Ok(Some(block));
            }
            self.current = self.streams.next();
            if self.current.is_none() {
                return Ok(None);
            }
        }
    }
}

fn run_merge(
    plan: &MergePlan,
    storage: &Storage,
    runtime: &IoRuntime,
    hasher: KeyHasher,
    now_ms: u64,
    sink: &mut EntrySink<'_>,
) -> Result<()> {
    let span = &plan.span;
    let read_span = KeySpan {
        start: span.start.as_deref().map(|start| prefix_of(start).into()),
        end: span.end.clone(),
    };
    // A segment may hold more than its reference counts: what the clip leaves out belongs to
    // other tasks, or was overwritten by one that this task took over from.
    let runs: Vec<&[SegmentRef]> = plan
        .inputs
        .chunk_by(|a, b| a.run == b.run && a.clip == b.clip)
        .collect();
    let clips: Vec<Option<Clip>> = runs
        .iter()
        .map(|run| {
            run[0]
                .clip
                .intersect(plan.clip)
                .map(|range| Clip::new(range, hasher))
        })
        .collect();
    let sources = runs
        .iter()
        .map(|run| open_run(run, storage, runtime, &read_span, plan.clip))
        .collect();
    let rules = MergeRules {
        reaches_bottom: plan.reaches_bottom(),
        now_ms,
    };
    merge(
        sources,
        rules,
        |source, entry, key| {
            // A prefix delete before the span hides what the span holds of its key.
            let starts_before = span.start.as_deref().is_some_and(|start| key < start);
            let in_span = (!starts_before || entry.op == Op::DeletePrefix)
                && span.end.as_deref().is_none_or(|end| key < end);
            match &clips[source] {
                Some(clip) => Ok(in_span && clip.admits(&entry.key)?),
                None => Ok(false),
            }
        },
        |entry| sink(entry, 0),
    )
}

fn open_run(
    run: &[SegmentRef],
    storage: &Storage,
    runtime: &IoRuntime,
    span: &KeySpan,
    clip: HashRange,
) -> RunBlocks {
    let shards = clip.shards();
    let streams: Vec<SegmentStream> = run
        .iter()
        .map(|segment| {
            let source = SegmentSource::new(&segment.meta, storage);
            let shards = (*shards.start(), *shards.end());
            SegmentStream::new(Arc::clone(&segment.meta), source, span.clone(), shards)
        })
        .collect();
    RunBlocks {
        runtime: runtime.clone(),
        streams: streams.into_iter(),
        current: None,
    }
}

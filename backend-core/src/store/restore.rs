//! Who restores what: a snapshot's parts dealt to the tasks of another parallelism.

use std::sync::Arc;

use crate::contract::{TaskPart, TaskRestore};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::OperatorId;
use crate::manifest::{ManifestPart, OperatorMeta};
use crate::range::HashRange;
use crate::segment::SegmentRef;
use crate::store::snapshot::Snapshot;

/// The highest parallelism for which a plan is made.
pub const PARALLELISM_MAX: u32 = 1 << 20;

impl Snapshot {
    /// What each of `parallelism` tasks of `operator` restores, by task. A task whose range no
    /// part touches gets no parts. Segments are clipped to the task's range already, and those
    /// that have nothing in it are left out.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the snapshot knows no such operator; the error names those
    /// that it knows. [`ErrorKind::Invalid`] if `parallelism` is 0, [`ErrorKind::Limit`] above
    /// [`PARALLELISM_MAX`]; [`ErrorKind::Unsupported`] if a part holds channel or operator state.
    pub fn restore_plan(
        &self,
        operator: &OperatorId,
        parallelism: u32,
    ) -> Result<Vec<TaskRestore>> {
        self.restore_plan_or_new(operator, parallelism)?
            .ok_or_else(|| {
                let known: Vec<_> = self.operators().iter().map(|o| o.id.as_str()).collect();
                Error::new(ErrorKind::NotFound, "the snapshot knows no such operator")
                    .with("operator", operator)
                    .with("known", format_args!("[{}]", known.join(", ")))
                    .with("snapshot", self.position())
            })
    }

    /// [`Snapshot::restore_plan`], or `None` if the snapshot knows no such operator: for an
    /// operator that may be new and then starts empty.
    ///
    /// # Errors
    /// As [`Snapshot::restore_plan`], without [`ErrorKind::NotFound`].
    pub fn restore_plan_or_new(
        &self,
        operator: &OperatorId,
        parallelism: u32,
    ) -> Result<Option<Vec<TaskRestore>>> {
        if parallelism == 0 {
            return Err(Error::new(ErrorKind::Invalid, "a parallelism is above 0"));
        }
        if parallelism > PARALLELISM_MAX {
            return Err(Error::new(ErrorKind::Limit, "a parallelism is too high")
                .with("parallelism_max", PARALLELISM_MAX)
                .with("got", parallelism));
        }
        let ranges = (0..parallelism).map(|task| HashRange::of_task(task, parallelism));
        self.restore_ranges(operator, ranges)
    }

    /// What tasks that own `ranges` restore, in their order, or `None` for an unknown operator:
    /// for engines that split the hash space their own way.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if a part holds channel or operator state.
    pub fn restore_ranges(
        &self,
        operator: &OperatorId,
        ranges: impl IntoIterator<Item = HashRange>,
    ) -> Result<Option<Vec<TaskRestore>>> {
        let Some(meta) = self.manifest().operator(operator) else {
            return Ok(None);
        };
        let mut parts: Vec<_> = self.manifest().parts_of(operator).collect();
        parts.iter().try_for_each(|p| check_keyed_only(p))?;
        parts.sort_unstable_by_key(|p| p.task.range);
        let plan = ranges
            .into_iter()
            .map(|range| self.task_restore(meta, &parts, range));
        Ok(Some(plan.collect()))
    }

    /// Whether every operator of the snapshot is among `kept`. A job that would drop one's state
    /// calls this unless its user has agreed.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] that names the operators that would be dropped.
    pub fn check_none_dropped(&self, kept: &[OperatorId]) -> Result<()> {
        let ids = self.operators().iter().map(|o| &o.id);
        let dropped: Vec<_> = ids
            .filter(|id| !kept.contains(id))
            .map(OperatorId::as_str)
            .collect();
        if dropped.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Mismatch,
            "the state of operators would be dropped",
        )
        .with("operators", format_args!("[{}]", dropped.join(", ")))
        .with("snapshot", self.position()))
    }

    /// `parts` are ordered by range and do not overlap.
    fn task_restore(
        &self,
        operator: &OperatorMeta,
        parts: &[&ManifestPart],
        range: HashRange,
    ) -> TaskRestore {
        let first = parts.partition_point(|p| p.task.range.last() < range.first());
        let touching = parts[first..]
            .iter()
            .take_while(|p| p.task.range.first() <= range.last());
        TaskRestore {
            snapshot: self.id(),
            source: self.source().clone(),
            range,
            key_codec: operator.key_codec.clone(),
            hash: operator.hash,
            ttl_clock_ms: self.manifest().meta.ttl_clock_ms,
            parts: touching.map(|p| clipped(&p.task, range)).collect(),
        }
    }
}

fn check_keyed_only(part: &ManifestPart) -> Result<()> {
    if part.channels.is_empty() && part.operator_states.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        "a task has channel or operator state, which this build cannot restore",
    )
    .with("operator", &part.task.operator)
    .with("task", part.task.task))
}

/// The part as a task that owns `range` sees it: shared if nothing is clipped off.
fn clipped(part: &Arc<TaskPart>, range: HashRange) -> Arc<TaskPart> {
    if range.covers(part.range) && part.segments.iter().all(|s| seen(s, range).is_some()) {
        return Arc::clone(part);
    }
    let segments = part
        .segments
        .iter()
        .filter_map(|s| seen(s, range))
        .collect();
    Arc::new(TaskPart {
        segments,
        ..TaskPart::clone(part)
    })
}

/// The segment clipped to `range`, unless none of its shards has a hash in there.
fn seen(segment: &SegmentRef, range: HashRange) -> Option<SegmentRef> {
    let clip = segment.clip.intersect(range)?;
    let (first, last) = segment.meta.shards;
    let (low, high) = (clip.shards(), first..=last);
    (low.start() <= high.end() && high.start() <= low.end()).then(|| SegmentRef {
        meta: Arc::clone(&segment.meta),
        clip,
        ..*segment
    })
}

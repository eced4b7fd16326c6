//! Snapshots of a whole job, and who restores what of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use backend_core::segment::{SegmentLocation, SegmentRef};
use backend_core::{
    Attempt, HashRange, PendingSnapshot, Result, SnapshotId, SnapshotMode, SnapshotStats, TaskPart,
    TaskRestore, TaskSnapshot, Trigger,
};
use futures::executor::block_on;
use parking_lot::Mutex;

use crate::backend::BackendUnderTest;
use crate::contents::Contents;
use crate::job::{Job, Spec};

/// The objects of every snapshot that was written to one medium.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<BTreeMap<SnapshotId, BTreeSet<String>>>);

/// A job that was frozen and not yet written.
#[must_use = "a frozen job that is dropped is not written"]
pub struct Frozen<'b> {
    spec: Spec<'b>,
    trigger: Trigger,
    clock_ms: u64,
    pending: Vec<PendingSnapshot>,
}

impl<'b> Frozen<'b> {
    pub(crate) fn new(
        spec: Spec<'b>,
        trigger: Trigger,
        clock_ms: u64,
        pending: Vec<PendingSnapshot>,
    ) -> Self {
        Self {
            spec,
            trigger,
            clock_ms,
            pending,
        }
    }

    /// The snapshot's number.
    pub fn id(&self) -> SnapshotId {
        self.trigger.id
    }

    /// Writes all tasks' parts, one after the other.
    ///
    /// # Errors
    /// That of the first task that fails; those behind it are cancelled.
    pub fn write(self) -> Result<Snapshot<'b>> {
        block_on(self.write_async())
    }

    /// [`Frozen::write`] as a future.
    ///
    /// # Errors
    /// As [`Frozen::write`].
    pub async fn write_async(self) -> Result<Snapshot<'b>> {
        let mut tasks = Vec::new();
        for pending in self.pending {
            tasks.push(pending.write().await?);
        }
        Ok(Snapshot::new(
            self.spec,
            &self.trigger,
            self.clock_ms,
            tasks,
        ))
    }
}

/// A snapshot of all tasks of a job.
#[derive(Clone)]
pub struct Snapshot<'b> {
    /// What stays the same when the job is restored.
    pub spec: Spec<'b>,
    /// The tasks' parts.
    pub parts: Vec<Arc<TaskPart>>,
    /// What each task's part cost.
    pub stats: Vec<SnapshotStats>,
    id: SnapshotId,
    attempt: Attempt,
    clock_ms: u64,
}

impl<'b> Snapshot<'b> {
    /// Checks what every acknowledgement must hold to.
    fn new(spec: Spec<'b>, trigger: &Trigger, clock_ms: u64, tasks: Vec<TaskSnapshot>) -> Self {
        let parallelism = tasks.len() as u32;
        let mut objects = BTreeSet::new();
        for (index, task) in (0..).zip(&tasks) {
            let scope = spec.scope(index, parallelism);
            let part = &task.part;
            assert_eq!((task.id, task.attempt), (trigger.id, trigger.attempt));
            assert_eq!((&part.operator, part.task), (&scope.operator, scope.task));
            assert_eq!(part.range, scope.range, "a part has its task's range");
            assert_eq!(part.key_codec, scope.key_codec);
            assert_eq!(part.hash, scope.hasher.id());
            assert_eq!(task.stats.segments as usize, part.segments.len());
            for segment in &part.segments {
                assert!(
                    part.range.covers(segment.clip),
                    "a segment is clipped to its task's range"
                );
                if let SegmentLocation::Object(name) = &segment.meta.location {
                    spec.ledger.check_reference(trigger, name);
                    objects.insert(format!("{name:?}"));
                }
            }
        }
        spec.ledger.0.lock().insert(trigger.id, objects);
        let stats = tasks.iter().map(|task| task.stats).collect();
        let parts = tasks.into_iter().map(|task| Arc::new(task.part)).collect();
        Self {
            spec,
            parts,
            stats,
            id: trigger.id,
            attempt: trigger.attempt,
            clock_ms,
        }
    }

    /// The snapshot's number.
    pub fn id(&self) -> SnapshotId {
        self.id
    }

    /// The attempt that it was taken in.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// The bytes of new segments, as the tasks report them.
    pub fn bytes_new(&self) -> u64 {
        self.stats.iter().map(|stats| stats.bytes_new).sum()
    }

    /// What a task that owns `range` restores.
    pub fn task_restore(&self, range: HashRange) -> TaskRestore {
        let parts = self.parts.iter().filter(|part| {
            let shared = part.range.intersect(range);
            shared.is_some()
        });
        TaskRestore {
            snapshot: self.id,
            source: self.spec.medium.storage(),
            range,
            key_codec: self.spec.key_codec.clone(),
            hash: self.spec.hasher.id(),
            ttl_clock_ms: self.clock_ms,
            parts: parts.map(|part| clipped(part, range)).collect(),
        }
    }

    /// The job as it was, at another parallelism, on a new backend.
    ///
    /// # Panics
    /// If it cannot be restored.
    pub fn restore(&self, parallelism: u32) -> Job<'b> {
        self.try_restore(parallelism).expect("a snapshot restores")
    }

    /// [`Snapshot::restore`], or why not.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn try_restore(&self, parallelism: u32) -> Result<Job<'b>> {
        Job::open(self.spec.clone(), parallelism, Some(self))
    }

    /// What a job restored at `parallelism` holds.
    pub fn contents(&self, parallelism: u32) -> Contents {
        self.restore(parallelism).contents()
    }

    /// What is tested.
    pub fn under_test(&self) -> &'b dyn BackendUnderTest {
        self.spec.under_test
    }
}

impl Ledger {
    /// A snapshot may refer to what its base refers to, and to what was written for later ids;
    /// a full one only to what no earlier one refers to.
    fn check_reference(&self, trigger: &Trigger, name: &backend_core::names::SegmentName) {
        let snapshots = self.0.lock();
        let text = format!("{name:?}");
        if trigger.mode != SnapshotMode::Incremental {
            let reused = snapshots.values().any(|objects| objects.contains(&text));
            assert!(
                !reused,
                "a full snapshot refers to an older segment: {text}"
            );
            return;
        }
        let is_of_base = |base| snapshots.get(&base).is_some_and(|o| o.contains(&text));
        let is_allowed = name.snapshot <= trigger.id
            && trigger
                .base
                .is_none_or(|base| name.snapshot > base || is_of_base(base));
        assert!(
            is_allowed,
            "snapshot {} on base {:?} refers to {text}",
            trigger.id, trigger.base
        );
    }
}

/// The part as a task that owns `range` sees it: only segments that touch it, clipped.
fn clipped(part: &TaskPart, range: HashRange) -> Arc<TaskPart> {
    let segments = part.segments.iter().filter_map(|segment| {
        let clip = segment.clip.intersect(range)?;
        let (first, last) = segment.meta.shards;
        let shards = clip.shards();
        let touches = *shards.start() <= last && first <= *shards.end();
        touches.then(|| SegmentRef {
            meta: Arc::clone(&segment.meta),
            clip,
            ..*segment
        })
    });
    Arc::new(TaskPart {
        segments: segments.collect(),
        ..part.clone()
    })
}

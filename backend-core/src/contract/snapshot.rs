//! A snapshot of one task, from trigger to acknowledgement.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

use crate::descriptor::{CodecId, StateDescriptor};
use crate::error::Result;
use crate::generation::Generation;
use crate::hash::HashId;
use crate::ids::{Attempt, Epoch, OperatorId, SnapshotId, TaskIndex};
use crate::range::HashRange;
use crate::segment::SegmentRef;

/// What a snapshot writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SnapshotMode {
    /// Everything, into new segments.
    Full,
    /// What changed since the segments that are already durable, and references to those.
    Incremental,
    /// Full, self-contained, and owned by the user.
    Savepoint,
}

/// The coordinator's order to take a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trigger {
    /// The coordinator's epoch, a part of every segment's name.
    pub epoch: Epoch,
    /// The snapshot's number.
    pub id: SnapshotId,
    /// The last confirmed snapshot: this one may refer to its segments and to those of later
    /// ids, to nothing older.
    pub base: Option<SnapshotId>,
    /// Which attempt of the job this belongs to.
    pub attempt: Attempt,
    /// What to write.
    pub mode: SnapshotMode,
}

/// A frozen state on its way into a snapshot.
///
/// Dropping it, or the future of [`PendingSnapshot::write`], cancels the snapshot: the task is
/// as it was, and its next increment is wider.
#[must_use = "a pending snapshot that is dropped is cancelled"]
pub struct PendingSnapshot {
    id: SnapshotId,
    generation: Generation,
    pause: Duration,
    write: Pin<Box<dyn Future<Output = Result<TaskSnapshot>> + Send>>,
}

impl PendingSnapshot {
    /// For backends: `write` uploads the frozen `generation`, and `pause` is how long the freeze
    /// took.
    pub fn new(
        id: SnapshotId,
        generation: Generation,
        pause: Duration,
        write: impl Future<Output = Result<TaskSnapshot>> + Send + 'static,
    ) -> Self {
        Self {
            id,
            generation,
            pause,
            write: Box::pin(write),
        }
    }

    /// The snapshot's number.
    pub fn id(&self) -> SnapshotId {
        self.id
    }

    /// The generation that was frozen.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// How long the owner was held up.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// Uploads the frozen state, from any thread and on any executor.
    ///
    /// # Errors
    /// Those of the store; the task is as if the snapshot had not been taken.
    pub async fn write(self) -> Result<TaskSnapshot> {
        self.write.await
    }
}

impl fmt::Debug for PendingSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingSnapshot")
            .field("id", &self.id)
            .field("generation", &self.generation)
            .field("pause", &self.pause)
            .finish_non_exhaustive()
    }
}

/// A task's acknowledgement: its durable part of a snapshot, and what it cost.
#[derive(Clone, Debug)]
pub struct TaskSnapshot {
    /// The epoch that the trigger carried.
    pub epoch: Epoch,
    /// The snapshot's number.
    pub id: SnapshotId,
    /// The attempt that the trigger carried.
    pub attempt: Attempt,
    /// The part for the manifest.
    pub part: TaskPart,
    /// What it cost.
    pub stats: SnapshotStats,
}

/// One task's part of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPart {
    /// The operator.
    pub operator: OperatorId,
    /// The task.
    pub task: TaskIndex,
    /// The hashes that the task owned.
    pub range: HashRange,
    /// How its keys are encoded.
    pub key_codec: CodecId,
    /// How its keys are hashed.
    pub hash: HashId,
    /// The highest generation in any of its segments.
    pub generation_max: Generation,
    /// The states that the task knew.
    pub states: Vec<StateDescriptor>,
    /// Its segments, oldest first: a later one overrides an earlier one.
    pub segments: Vec<SegmentRef>,
    /// The engine's own bytes for this task, for example source positions.
    pub engine: Bytes,
}

/// What one task's snapshot cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotStats {
    /// How long the owner was held up.
    pub pause: Duration,
    /// How long encoding and upload took.
    pub write: Duration,
    /// Entries written into new segments.
    pub entries_new: u64,
    /// Bytes of new segments.
    pub bytes_new: u64,
    /// Bytes of older segments that the snapshot refers to.
    pub bytes_referenced: u64,
    /// Segments that the snapshot consists of.
    pub segments: u32,
    /// Objects put.
    pub puts: u32,
    /// Whether all of the state was written anew.
    pub is_full: bool,
}

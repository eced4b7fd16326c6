//! Which task a store belongs to, and what it restores.

use std::sync::Arc;

use crate::contract::snapshot::TaskPart;
use crate::descriptor::CodecId;
use crate::hash::{HashId, KeyHasher};
use crate::ids::{OperatorId, SnapshotId, TaskIndex};
use crate::range::HashRange;
use crate::storage::Storage;

/// Which task a store belongs to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskScope {
    /// The operator, as its user named it.
    pub operator: OperatorId,
    /// The task's index.
    pub task: TaskIndex,
    /// The hashes that the task owns.
    pub range: HashRange,
    /// How keys are encoded; stored, and compared at a restore.
    pub key_codec: CodecId,
    /// How keys are hashed; stored, and compared at a restore.
    pub hasher: KeyHasher,
}

impl TaskScope {
    /// Task `task` of `parallelism` of an operator whose keys are of `key_codec`, hashed by
    /// XXH3.
    ///
    /// # Panics
    /// If `task` is not below `parallelism`.
    pub fn new(operator: OperatorId, task: u32, parallelism: u32, key_codec: CodecId) -> Self {
        Self {
            operator,
            task: TaskIndex(task),
            range: HashRange::of_task(task, parallelism),
            key_codec,
            hasher: KeyHasher::XXH3_64,
        }
    }

    /// The same task with another hash function.
    pub fn with_hasher(mut self, hasher: KeyHasher) -> Self {
        self.hasher = hasher;
        self
    }

    /// The same task with another range, for engines that split the space their own way.
    pub fn with_range(mut self, range: HashRange) -> Self {
        self.range = range;
        self
    }
}

/// What one task restores: the parts of old tasks that touch its range.
#[derive(Clone, Debug)]
pub struct TaskRestore {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// Where its objects lie.
    pub source: Storage,
    /// The new task's range.
    pub range: HashRange,
    /// How the snapshot's keys were encoded.
    pub key_codec: CodecId,
    /// How the snapshot's keys were hashed.
    pub hash: HashId,
    /// Entries that had expired at this time are dropped, in milliseconds since 1970.
    pub ttl_clock_ms: u64,
    /// The old tasks' parts, as they were but for their segments, which are clipped to `range`;
    /// parts that do not touch it are left out.
    pub parts: Vec<Arc<TaskPart>>,
}

//! A snapshot that was read or confirmed.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::ids::{Digest, Epoch, OperatorId, SnapshotId, TaskIndex};
use crate::manifest::{Manifest, OperatorMeta, Position, SnapshotKind};
use crate::storage::Storage;

/// A snapshot: its manifest, and where its objects lie. Clones share the manifest.
#[derive(Clone)]
pub struct Snapshot {
    manifest: Arc<Manifest>,
    digest: Digest,
    source: Storage,
}

impl Snapshot {
    /// The snapshot of `manifest`, whose identity is `digest`, with objects in `source`.
    pub(crate) fn new(manifest: Arc<Manifest>, digest: Digest, source: Storage) -> Self {
        Self {
            manifest,
            digest,
            source,
        }
    }

    /// All that its manifest says.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its identity.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Where its objects lie.
    pub fn source(&self) -> &Storage {
        &self.source
    }

    /// Its place in its job.
    pub fn position(&self) -> Position {
        self.manifest.meta.position
    }

    /// The epoch of the coordinator that committed it.
    pub fn epoch(&self) -> Epoch {
        self.position().epoch
    }

    /// Its number.
    pub fn id(&self) -> SnapshotId {
        self.position().id
    }

    /// What its cut is like.
    pub fn kind(&self) -> SnapshotKind {
        self.manifest.meta.kind
    }

    /// Whether it holds no operator at all, as a new job's first snapshot does.
    pub fn is_empty(&self) -> bool {
        self.manifest.operators.is_empty()
    }

    /// The engine's own bytes for the job.
    pub fn engine(&self) -> &Bytes {
        &self.manifest.meta.engine
    }

    /// The engine's own bytes for one task, if there is such a task.
    pub fn task_engine(&self, operator: &OperatorId, task: TaskIndex) -> Option<&Bytes> {
        self.manifest
            .parts_of(operator)
            .find(|p| p.task.task == task)
            .map(|p| &p.task.engine)
    }

    /// The operators.
    pub fn operators(&self) -> &[OperatorMeta] {
        &self.manifest.operators
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("position", &self.position())
            .field("digest", &self.digest)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

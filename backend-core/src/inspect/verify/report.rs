//! What a verification found.

use crate::hash::HashId;
use crate::ids::{Digest, JobId};
use crate::inspect::verify::fault::Fault;
use crate::inspect::verify::options::Scope;
use crate::manifest::{Position, SnapshotKind};

/// What a verification found. Its text is a report for an operator.
#[derive(Debug)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The job.
    pub job: JobId,
    /// What was verified.
    pub scope: Scope,
    /// What is wrong, by object; at most as many as were asked for.
    pub faults: Vec<Fault>,
    /// How many faults there are besides those.
    pub faults_left_out: u64,
    /// The snapshots, oldest first.
    pub snapshots: Vec<SnapshotFigures>,
    /// The newest snapshot that no fault hurts.
    pub newest_whole: Option<Position>,
    /// Objects that were read.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects of state that no snapshot names and that no pending one can: what crashes,
    /// aborts and condemned snapshots left behind. They do no harm, and collection takes them.
    /// At most as many as faults were asked for.
    pub orphans: Vec<Orphan>,
    /// The number and the bytes of all orphans.
    pub orphans_all: (u64, u64),
    /// The number and the bytes of objects that no snapshot names and that lie above the newest
    /// one: a snapshot that is being taken may name them.
    pub maybe_pending: (u64, u64),
    /// Whether a manifest could not be read, so that some orphans may be its objects.
    pub orphans_uncertain: bool,
    /// Hash functions that are not known, so that shards and live entries were not looked at.
    pub hashes_unknown: Vec<HashId>,
}

/// An object of state that no snapshot names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Orphan {
    /// Its name.
    pub object: String,
    /// Its size.
    pub bytes: u64,
}

/// What a verification knows of one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotFigures {
    /// Its place.
    pub position: Position,
    /// Its identity; `None` if its manifest cannot be read.
    pub digest: Option<Digest>,
    /// What its cut is like, as far as its manifest can be read.
    pub kind: Option<SnapshotKind>,
    /// The faults that hurt it, with those that are not kept.
    pub faults: u64,
    /// The objects that it refers to.
    pub objects: u64,
    /// The bytes that it refers to, each once, with those in its manifest.
    pub bytes_referenced: u64,
    /// The bytes of them that lie in objects which no other snapshot names: what its collection
    /// would set free. `None` if only one snapshot was looked at.
    pub bytes_own: Option<u64>,
    /// Its entries; `None` if they were not counted, because a fault hurts it, because nobody
    /// asked, or because its keys are hashed in an unknown way.
    pub entries: Option<EntryCounts>,
}

/// The entries of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryCounts {
    /// All that count for its tasks: `live`, `expired` and `dead`.
    pub all: u64,
    /// What a restore holds.
    pub live: u64,
    /// What a restore drops because it had expired at the snapshot's clock.
    pub expired: u64,
    /// Puts that later ones override or deletes hide, and the deletes themselves.
    pub dead: u64,
    /// Entries of its segments that belong to no task's clip, and are not among `all`.
    pub clipped: u64,
    /// The bytes of the keys and values of `live`, before segments encode them.
    pub live_bytes: u64,
    /// The same of `expired`.
    pub expired_bytes: u64,
    /// The same of `dead`.
    pub dead_bytes: u64,
}

impl VerifyReport {
    /// Whether nothing is wrong. Orphans are not.
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty() && self.faults_left_out == 0
    }

    /// What is known of one snapshot.
    pub fn snapshot(&self, position: Position) -> Option<&SnapshotFigures> {
        self.snapshots.iter().find(|s| s.position == position)
    }
}

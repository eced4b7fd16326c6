//! A line about a snapshot, for a listing.

use crate::ids::Digest;
use crate::manifest::{Footer, ManifestMeta, Parent, Position, SnapshotKind};

/// What a listing tells about a snapshot, without reading its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotSummary {
    /// Its place in its job.
    pub position: Position,
    /// Its identity.
    pub digest: Digest,
    /// What its cut is like.
    pub kind: SnapshotKind,
    /// The snapshot before it.
    pub parent: Option<Parent>,
    /// When it was committed, in milliseconds since 1970.
    pub created_ms: u64,
    /// The number of tasks of all operators.
    pub tasks: u32,
    /// The size of its manifest.
    pub manifest_bytes: u64,
}

impl SnapshotSummary {
    pub(super) fn new(footer: &Footer, meta: &ManifestMeta, manifest_bytes: u64) -> Self {
        Self {
            position: meta.position,
            digest: footer.digest,
            kind: meta.kind,
            parent: meta.parent,
            created_ms: meta.created_ms,
            tasks: footer.parts,
            manifest_bytes,
        }
    }
}

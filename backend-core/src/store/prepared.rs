//! A manifest on its way to being committed.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Epoch, UniqueId};
use crate::manifest::{EncodedManifest, Manifest, ManifestMeta, Parent, Position, SnapshotKind};
use crate::store::protocol::{BaseChoice, CommitStep, Committing};
use crate::store::publish::publish;
use crate::store::remote::Remote;
use crate::store::snapshot::Snapshot;

/// A manifest whose creation has begun.
#[derive(Debug)]
pub(super) struct Prepared {
    manifest: Arc<Manifest>,
    encoded: EncodedManifest,
    committing: Committing,
    /// Whether it was asked for already.
    pub(super) is_begun: bool,
}

impl Prepared {
    /// Encodes a manifest, and reads it back: what could not be restored is not committed.
    pub(super) fn new(manifest: Manifest) -> Result<Self> {
        let encoded = manifest.encode()?;
        let position = manifest.meta.position;
        let fails = || {
            Error::new(
                ErrorKind::Invalid,
                "the acknowledgements make no valid manifest",
            )
        };
        let (again, digest) =
            Manifest::decode(position.object(), &encoded.bytes).map_err(|e| fails().because(e))?;
        if again != manifest || digest != encoded.digest {
            return Err(fails().with("snapshot", position));
        }
        Ok(Self {
            committing: Committing::new(position, manifest.meta.unique),
            manifest: Arc::new(manifest),
            encoded,
            is_begun: false,
        })
    }

    pub(super) fn position(&self) -> Position {
        self.manifest.meta.position
    }

    pub(super) async fn publish(&mut self, remote: &Remote) -> Result<CommitStep> {
        let position = self.position();
        publish(remote, position, &mut self.committing, &self.encoded.bytes).await
    }

    pub(super) fn into_snapshot(self, remote: &Remote) -> Snapshot {
        Snapshot::new(self.manifest, self.encoded.digest, remote.storage.clone())
    }
}

/// The content of `base` under a new position; nothing for a new job.
pub(super) fn adoption(
    remote: &Remote,
    epoch: Epoch,
    choice: BaseChoice,
    base: Option<&Snapshot>,
) -> Manifest {
    let now_ms = remote.env.now_ms();
    let meta = ManifestMeta {
        job: remote.job.clone(),
        position: Position::new(epoch, choice.next),
        unique: UniqueId(remote.env.unique()),
        parent: base.map(parent_of),
        base: base.map(Snapshot::id),
        created_ms: now_ms,
        ttl_clock_ms: base.map_or(now_ms, |b| b.manifest().meta.ttl_clock_ms),
        // The job goes on from it, so it is no longer the user's alone.
        kind: match base.map(Snapshot::kind) {
            None | Some(SnapshotKind::Savepoint) => SnapshotKind::Aligned,
            Some(kind) => kind,
        },
        engine: base.map_or_else(Bytes::new, |b| b.engine().clone()),
    };
    Manifest {
        meta,
        operators: base.map_or_else(Vec::new, |b| b.manifest().operators.clone()),
        parts: base.map_or_else(Vec::new, |b| b.manifest().parts.clone()),
    }
}

pub(super) fn parent_of(snapshot: &Snapshot) -> Parent {
    Parent {
        position: snapshot.position(),
        unique: snapshot.manifest().meta.unique,
        digest: snapshot.digest(),
    }
}

pub(super) fn taken(position: Position, unique: UniqueId) -> Error {
    Error::new(
        ErrorKind::Fenced,
        "another coordinator of the same epoch has taken the snapshot's place",
    )
    .with("object", position.object())
    .with("fenced_by", unique)
}

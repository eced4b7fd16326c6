//! Reading what a job's directory holds.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Epoch, JobId, OperatorId, TaskIndex};
use crate::manifest::limits::{MANIFEST_BYTES_MAX, RECORD_BYTES_MAX};
use crate::manifest::{
    Condemn, Footer, MANIFEST_END_BYTES, Manifest, ManifestMeta, ManifestPart, Position, Span,
};
use crate::names::{Folder, ObjectName};
use crate::store::protocol::{Candidate, fenced, newest};
use crate::store::remote::Remote;
use crate::store::snapshot::Snapshot;
use crate::store::summary::SnapshotSummary;

/// How often condemn records are listed until none goes while they are read.
const RELISTS_MAX: u32 = 16;

/// The manifests and condemn records of a job, listed in this order.
#[derive(Debug)]
pub(super) struct Listing {
    /// Where there are manifests, ascending, with their bytes.
    pub(super) manifests: Vec<(Position, u64)>,
    pub(super) condemned: Vec<Condemn>,
}

impl Listing {
    pub(super) fn positions(&self) -> Vec<Position> {
        self.manifests.iter().map(|(p, _)| *p).collect()
    }

    pub(super) fn is_live(&self, position: Position) -> bool {
        !self.condemned.iter().any(|c| c.condemns(position))
    }
}

impl Remote {
    /// Manifests first, then condemn records: what is condemned in between is seen.
    pub(super) async fn listing(&self) -> Result<Listing> {
        let mut manifests = Vec::new();
        for object in self.list(Folder::Snapshots).await? {
            if let ObjectName::Manifest(epoch, id) = object.name {
                manifests.push((Position::new(epoch, id), object.bytes));
            }
        }
        let condemned = self.condemned().await?;
        Ok(Listing {
            manifests,
            condemned,
        })
    }

    /// All condemn records. One that is gone when it is read was replaced by a later one, which
    /// says as much.
    pub(super) async fn condemned(&self) -> Result<Vec<Condemn>> {
        let mut relists = 0;
        loop {
            let listed = self.list(Folder::Collect).await?;
            let mut condemned = Vec::with_capacity(listed.len());
            let mut gone = None;
            for object in listed {
                match self.get(object.name, RECORD_BYTES_MAX).await? {
                    Some(bytes) => {
                        condemned.push(Condemn::decode(object.name, &self.job, &bytes)?);
                    }
                    None => gone = Some(object.name),
                }
            }
            relists += 1;
            match gone {
                None => return Ok(condemned),
                Some(object) if relists >= RELISTS_MAX => return Err(missing(object)),
                Some(_) => {}
            }
        }
    }

    /// What a collection asks of a snapshot, without reading its parts.
    pub(super) async fn candidate(&self, position: Position, bytes: u64) -> Result<Candidate> {
        let (_, meta) = self.head(position.object(), Some(bytes)).await?;
        Ok(Candidate {
            position,
            parent: meta.parent.map(|parent| parent.position),
            kind: meta.kind,
            created_ms: meta.created_ms,
        })
    }

    /// Why something that the coordinator of `epoch` needs is not found, or all that it has listed
    /// is condemned: a newer coordinator has collected it, or it is lost.
    pub(super) async fn overtaken(&self, epoch: Epoch, e: Error) -> Error {
        if !matches!(
            e.kind(),
            ErrorKind::NotFound | ErrorKind::Declined | ErrorKind::Corrupt
        ) {
            return e;
        }
        let next = Epoch(epoch.0 + 1);
        match self.size(ObjectName::Epoch(next)).await {
            Ok(Some(_)) => fenced(epoch, next).because(e),
            Ok(None) => e,
            Err(unanswered) => unanswered,
        }
    }

    pub(super) async fn latest(&self) -> Result<Option<Snapshot>> {
        let mut relists = 0;
        loop {
            let listing = self.listing().await?;
            relists += 1;
            let Some(position) = newest(&listing.positions(), &listing.condemned) else {
                // All that was listed has been condemned by one that was put since.
                if !listing.manifests.is_empty() && relists < RELISTS_MAX {
                    continue;
                }
                return Ok(None);
            };
            match self.load(position).await {
                // By now there is a newer one, and this one has been collected.
                Err(e) if e.kind() == ErrorKind::NotFound && relists < RELISTS_MAX => {}
                loaded => return loaded.map(Some),
            }
        }
    }

    pub(super) async fn load(&self, position: Position) -> Result<Snapshot> {
        let object = position.object();
        let bytes = self
            .get(object, MANIFEST_BYTES_MAX)
            .await?
            .ok_or_else(|| missing(object))?;
        let (manifest, digest) = decode(&self.job, object, &bytes)?;
        Ok(Snapshot::new(
            Arc::new(manifest),
            digest,
            self.storage.clone(),
        ))
    }

    pub(super) async fn load_part(
        &self,
        position: Position,
        operator: &OperatorId,
        task: TaskIndex,
    ) -> Result<ManifestPart> {
        let object = position.object();
        let (footer, _) = self.head(object, None).await?;
        let at = |e: Error| e.with("object", object);
        let bytes = self.section(object, &footer.operators).await?;
        let operators = footer.decode_operators(&bytes).map_err(at)?;
        let bytes = self.section(object, &footer.index).await?;
        let index = footer.decode_index(&bytes).map_err(at)?;
        let place = operators.iter().position(|o| o.id == *operator);
        let entry = index
            .iter()
            .find(|e| Some(e.operator as usize) == place && e.task == task)
            .ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "the snapshot knows no such task")
                    .with("operator", operator)
                    .with("task", task)
                    .with("snapshot", position)
            })?;
        let bytes = self.section(object, &entry.span).await?;
        footer.decode_part(entry, &operators, &bytes).map_err(at)
    }

    /// The ends of a manifest: footer and meta section.
    async fn head(&self, object: ObjectName, size: Option<u64>) -> Result<(Footer, ManifestMeta)> {
        let at = |e: Error| e.with("object", object);
        let size = match size {
            Some(size) => size,
            None => self.size(object).await?.ok_or_else(|| missing(object))?,
        };
        let start = size.saturating_sub(MANIFEST_END_BYTES);
        let end = self.get_range(object, start..size).await?;
        let footer = Footer::decode(&end, size).map_err(at)?;
        let bytes = self.section(object, &footer.meta).await?;
        let meta = footer.decode_meta(object, &bytes).map_err(at)?;
        check_job(&self.job, &meta.job).map_err(at)?;
        Ok((footer, meta))
    }

    async fn section(&self, object: ObjectName, span: &Span) -> Result<Bytes> {
        self.get_range(object, span.range()).await
    }

    pub(super) async fn summaries(&self) -> Result<Vec<SnapshotSummary>> {
        let listing = self.listing().await?;
        let mut summaries = Vec::new();
        for (position, bytes) in &listing.manifests {
            if !listing.is_live(*position) {
                continue;
            }
            match self.head(position.object(), Some(*bytes)).await {
                Ok((footer, meta)) => {
                    summaries.push(SnapshotSummary::new(&footer, &meta, *bytes));
                }
                // It has been collected since it was listed, or it is lost.
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    let condemned = self.condemned().await?;
                    if !condemned.iter().any(|c| c.condemns(*position)) {
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        }
        Ok(summaries)
    }
}

/// Reads a manifest of `job` that was stored as `object`.
pub(super) fn decode(
    job: &JobId,
    object: ObjectName,
    bytes: &[u8],
) -> Result<(Manifest, crate::ids::Digest)> {
    let (manifest, digest) = Manifest::decode(object, bytes)?;
    check_job(job, &manifest.meta.job).map_err(|e| e.with("object", object))?;
    Ok((manifest, digest))
}

fn check_job(expected: &JobId, got: &JobId) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Mismatch, "a manifest of another job").expected_got(expected, got))
}

pub(super) fn missing(object: ObjectName) -> Error {
    Error::new(ErrorKind::NotFound, "an object is missing").with("object", object)
}

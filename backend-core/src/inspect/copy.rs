//! Taking a snapshot to another store.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::StreamExt;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Digest, Epoch};
use crate::inspect::transfer::{Copied, Piece, copy_object, put_if_absent};
use crate::manifest::limits::{MANIFEST_BYTES_MAX, RECORD_BYTES_MAX};
use crate::manifest::{Claim, Condemn, Manifest, Position};
use crate::names::{Folder, ObjectName};
use crate::segment::SegmentLocation;
use crate::storage::Storage;
use crate::store::{Remote, Snapshot, SnapshotStore};

/// How a copy goes about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CopyOptions {
    /// Objects that are copied at a time; each is held in memory whole. At least 1. Default: 2.
    pub objects_at_once: usize,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self { objects_at_once: 2 }
    }
}

/// What a copy did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyReport {
    /// Claims that were copied.
    pub claims_copied: u64,
    /// Objects of state that were copied.
    pub objects_copied: u64,
    /// Their bytes.
    pub bytes_copied: u64,
    /// Objects of state that were there already, and verified.
    pub objects_present: u64,
    /// Their bytes.
    pub bytes_present: u64,
    /// Whether the manifest was there already, so that the copy had been complete before.
    pub was_complete: bool,
}

/// Copies `snapshot`, which was read from `source`, into the directory `dest`, with every name
/// and byte as it is: first the claims up to its epoch, then its segments, each verified against
/// its digest on the way, then its manifest. So the copy is whole or absent as the original was;
/// stopped anywhere, the same call goes on where it was.
///
/// Afterwards a [`SnapshotStore`] of the same job on `dest` lists the snapshot, and its
/// [`SnapshotStore::claim`] adopts it. Original and copy do not know of each other: run the job on
/// one of them.
///
/// A job that collects while it is copied may take objects away; keep the snapshot with a pin, or
/// copy the newest.
///
/// # Errors
/// - [`ErrorKind::Mismatch`]: the destination belongs to another run. A claim in it is not the
///   source's, the snapshot's place is taken by another one, a newer snapshot is there, or the
///   snapshot has been condemned there.
/// - [`ErrorKind::Corrupt`], [`ErrorKind::NotFound`]: an object is damaged or missing. The error
///   names it, and the fact `side` says whether at the source or at the destination; no manifest
///   has been written.
/// - [`ErrorKind::Invalid`]: the snapshot is not of `source`, or `dest` is the same directory.
/// - [`ErrorKind::Transient`], [`ErrorKind::InDoubt`]: a store did not answer. Call again.
/// - Those of [`SnapshotStore::open`] on `dest`.
pub async fn copy(
    snapshot: &Snapshot,
    source: &SnapshotStore,
    dest: &Storage,
    options: &CopyOptions,
) -> Result<CopyReport> {
    check_call(snapshot, source, dest, options)?;
    let from = source.remote().clone();
    let (job, env) = (from.job.clone(), from.env.clone());
    let opened = SnapshotStore::open_with(dest.clone(), job, env, from.options.clone()).await?;
    let to = opened.remote().clone();
    let manifest = manifest_bytes(&from, snapshot).await?;
    let mut report = CopyReport {
        was_complete: check_destination(&to, snapshot, &manifest).await?,
        ..CopyReport::default()
    };
    copy_claims(&from, &to, snapshot.epoch(), &mut report).await?;
    copy_objects(&from, &to, snapshot, options, &mut report).await?;
    if !check_destination(&to, snapshot, &manifest).await? {
        let object = snapshot.position().object();
        if let Some(other) =
            put_if_absent(&to, object, manifest.clone(), MANIFEST_BYTES_MAX).await?
            && other != manifest
        {
            return Err(taken(snapshot.position()));
        }
    }
    Ok(report)
}

fn check_call(
    snapshot: &Snapshot,
    source: &SnapshotStore,
    dest: &Storage,
    options: &CopyOptions,
) -> Result<()> {
    let invalid = |message| Err(Error::new(ErrorKind::Invalid, message));
    if options.objects_at_once == 0 {
        return invalid("a copy takes at least one object at a time");
    }
    if !snapshot.source().is_same(source.storage()) || snapshot.manifest().meta.job != *source.job()
    {
        return invalid("the snapshot was not read from the store that it is copied from");
    }
    if dest.is_same(source.storage()) {
        return invalid("a snapshot is copied to another directory");
    }
    Ok(())
}

/// The bytes of the manifest, which are still those that the snapshot was read from.
async fn manifest_bytes(from: &Remote, snapshot: &Snapshot) -> Result<Bytes> {
    let object = snapshot.position().object();
    let bytes = from.get(object, MANIFEST_BYTES_MAX).await?;
    let bytes = bytes.ok_or_else(|| at_source(missing(object)))?;
    let (_, digest) = Manifest::decode(object, &bytes).map_err(at_source)?;
    if digest != snapshot.digest() {
        let e = Error::new(
            ErrorKind::Mismatch,
            "a manifest is another one than was read",
        )
        .with("object", object)
        .expected_got(snapshot.digest(), digest);
        return Err(at_source(e));
    }
    Ok(bytes)
}

/// Whether the manifest is there already; an error if the destination is another run's.
async fn check_destination(to: &Remote, snapshot: &Snapshot, manifest: &Bytes) -> Result<bool> {
    let position = snapshot.position();
    let mut is_there = false;
    for object in to.list(Folder::Snapshots).await? {
        let ObjectName::Manifest(epoch, id) = object.name else {
            continue;
        };
        let other = Position::new(epoch, id);
        if other > position {
            return Err(refused("the destination holds a newer snapshot")
                .with("object", object.name)
                .with("snapshot", position));
        }
        if other == position {
            let found = to.get(object.name, MANIFEST_BYTES_MAX).await?;
            if found.as_ref().is_some_and(|found| found != manifest) {
                return Err(taken(position));
            }
            is_there = found.is_some();
        }
    }
    for object in to.list(Folder::Collect).await? {
        let bytes = to.get(object.name, RECORD_BYTES_MAX).await?;
        let bytes = bytes.ok_or_else(|| at_destination(missing(object.name)))?;
        let record = Condemn::decode(object.name, &to.job, &bytes).map_err(at_destination)?;
        if record.condemns(position) {
            return Err(refused("the snapshot is condemned at the destination")
                .with("object", object.name)
                .with("snapshot", position));
        }
    }
    Ok(is_there)
}

/// Copies the claims up to `epoch`. Those above that the destination has are to be the source's,
/// too: else somebody has claimed the job there.
async fn copy_claims(
    from: &Remote,
    to: &Remote,
    epoch: Epoch,
    report: &mut CopyReport,
) -> Result<()> {
    let there = to.list(Folder::Epochs).await?;
    let above = there.iter().filter_map(|object| match object.name {
        ObjectName::Epoch(other) if other > epoch => Some(other),
        _ => None,
    });
    let above: Vec<Epoch> = above.collect();
    for epoch in above {
        let object = ObjectName::Epoch(epoch);
        if from.get(object, RECORD_BYTES_MAX).await? != to.get(object, RECORD_BYTES_MAX).await? {
            return Err(another_claim(object));
        }
    }
    for epoch in (1..=epoch.0).map(Epoch) {
        let object = ObjectName::Epoch(epoch);
        let bytes = from.get(object, RECORD_BYTES_MAX).await?;
        let bytes = bytes.ok_or_else(|| at_source(missing(object)))?;
        Claim::decode(object, &from.job, &bytes).map_err(at_source)?;
        match put_if_absent(to, object, bytes.clone(), RECORD_BYTES_MAX).await? {
            None => report.claims_copied += 1,
            Some(other) if other == bytes => {}
            Some(_) => return Err(another_claim(object)),
        }
    }
    Ok(())
}

async fn copy_objects(
    from: &Remote,
    to: &Remote,
    snapshot: &Snapshot,
    options: &CopyOptions,
    report: &mut CopyReport,
) -> Result<()> {
    let copies = pieces_of(snapshot.manifest())
        .into_iter()
        .map(|(object, pieces)| {
            let (from, to) = (from.clone(), to.clone());
            let io = from.io.clone();
            async move {
                io.run(async move { copy_object(&from, &to, object, &pieces).await })
                    .await
            }
        });
    let mut copies = futures::stream::iter(copies).buffer_unordered(options.objects_at_once);
    while let Some(copied) = copies.next().await {
        match copied? {
            Copied::Now(bytes) => {
                report.objects_copied += 1;
                report.bytes_copied += bytes;
            }
            Copied::Before(bytes) => {
                report.objects_present += 1;
                report.bytes_present += bytes;
            }
        }
    }
    Ok(())
}

/// What each object of a manifest holds, as far as the manifest says.
fn pieces_of(manifest: &Manifest) -> BTreeMap<ObjectName, Vec<Piece>> {
    let mut objects: BTreeMap<ObjectName, Vec<Piece>> = BTreeMap::new();
    let mut add = |location: &SegmentLocation, bytes: u64, digest: Digest| {
        let Some(object) = location.object() else {
            return;
        };
        let (offset, is_whole) = match location {
            SegmentLocation::Packed { offset, .. } => (*offset, false),
            SegmentLocation::Object(_) | SegmentLocation::Inline(_) => (0, true),
        };
        let piece = Piece {
            offset,
            bytes,
            digest,
            is_whole,
        };
        let pieces = objects.entry(object).or_default();
        if !pieces.contains(&piece) {
            pieces.push(piece);
        }
    };
    for part in &manifest.parts {
        for segment in &part.task.segments {
            let meta = &segment.meta;
            add(&meta.location, meta.bytes, meta.digest);
        }
        let channels = part.channels.iter().map(|c| &c.blob);
        let states = part.operator_states.iter().map(|s| &s.blob);
        for blob in channels.chain(states) {
            add(&blob.location, blob.bytes, blob.digest);
        }
    }
    objects
}

fn missing(object: ObjectName) -> Error {
    Error::new(ErrorKind::NotFound, "an object is missing").with("object", object)
}

fn refused(message: &'static str) -> Error {
    at_destination(Error::new(ErrorKind::Mismatch, message))
}

fn another_claim(object: ObjectName) -> Error {
    refused("the destination belongs to another run: a claim in it is not the source's")
        .with("object", object)
}

fn taken(position: Position) -> Error {
    refused("another snapshot has the place at the destination").with("object", position.object())
}

fn at_source(e: Error) -> Error {
    e.with("side", "source")
}

fn at_destination(e: Error) -> Error {
    e.with("side", "destination")
}

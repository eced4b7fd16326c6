//! From parts to state.

use std::sync::Arc;

use backend_core::names::ObjectName;
use backend_core::segment::{SegmentLocation, SegmentRef};
use backend_core::storage::Storage;
use backend_core::{
    Digest, Error, ErrorKind, Generation, Result, StateDescriptor, TaskRestore, TaskScope,
};
use bytes::Bytes;

use super::entries::Entries;
use super::expiry::drop_expired;
use super::flaw::Flaw;
use super::segment::decode;
use super::write::Lineage;

/// What a store starts from.
pub(super) struct Restored {
    /// What its segments hold.
    pub(super) lineage: Lineage,
    /// What of it had not expired.
    pub(super) entries: Arc<Entries>,
    pub(super) states: Vec<StateDescriptor>,
    pub(super) generation: Generation,
}

impl Default for Restored {
    fn default() -> Self {
        Self {
            lineage: Lineage::default(),
            entries: Arc::default(),
            states: Vec::new(),
            generation: Generation::ZERO.next(),
        }
    }
}

pub(super) async fn restore(
    scope: &TaskScope,
    restore: &TaskRestore,
    flaw: Option<Flaw>,
) -> Result<Restored> {
    if flaw != Some(Flaw::IgnoresIdentity) {
        check_identity(scope, restore)?;
    }
    let mut restored = Restored::default();
    let mut entries = Entries::new();
    let mut generation_max = Generation::ZERO;
    for part in &restore.parts {
        for state in &part.states {
            if !restored.states.iter().any(|known| known.name == state.name) {
                restored.states.push(state.clone());
            }
        }
        generation_max = generation_max.max(part.generation_max);
        let mut segments: Vec<_> = part.segments.iter().collect();
        if flaw == Some(Flaw::ReversesSegments) {
            segments.reverse();
        }
        for segment in segments {
            apply(scope, restore, segment, &mut entries, flaw).await?;
            restored.lineage.segments.push(SegmentRef {
                run: restored.lineage.segments.len() as u32,
                ..segment.clone()
            });
        }
    }
    if flaw != Some(Flaw::RenumbersLists) {
        restored.generation = generation_max.next();
    }
    restored.lineage.generation = generation_max;
    restored.lineage.entries = Arc::new(entries.clone());
    if flaw != Some(Flaw::RestoresExpired) {
        drop_expired(&mut entries, &restored.states, restore.ttl_clock_ms, None);
    }
    restored.entries = Arc::new(entries);
    Ok(restored)
}

fn check_identity(scope: &TaskScope, restore: &TaskRestore) -> Result<()> {
    if scope.key_codec != restore.key_codec {
        return Err(
            Error::new(ErrorKind::Mismatch, "keys were stored by another codec")
                .expected_got(&restore.key_codec, &scope.key_codec),
        );
    }
    if scope.hasher.id() != restore.hash {
        return Err(
            Error::new(ErrorKind::Mismatch, "keys were hashed by another function")
                .expected_got(restore.hash, scope.hasher.id()),
        );
    }
    Ok(())
}

async fn apply(
    scope: &TaskScope,
    restore: &TaskRestore,
    segment: &SegmentRef,
    entries: &mut Entries,
    flaw: Option<Flaw>,
) -> Result<()> {
    let Some(mut bytes) = load(&restore.source, segment, flaw).await? else {
        return Ok(());
    };
    while !bytes.is_empty() {
        let change = decode(&mut bytes)?;
        let is_timer = change.place.0.is_timers();
        let owner = if is_timer {
            &change.place.2
        } else {
            &change.place.1
        };
        let hash = scope.hasher.hash(owner);
        let is_foreign = !scope.range.contains(hash) || !segment.clip.contains(hash);
        if is_timer && is_foreign && flaw != Some(Flaw::RestoresAllTimers) {
            continue;
        }
        if !is_timer && !segment.clip.contains(hash) && flaw != Some(Flaw::IgnoresRanges) {
            continue;
        }
        let inner = Arc::make_mut(entries.entry(change.place.clone()).or_default());
        match change.value {
            Some(value) => drop(inner.insert(change.sub_key, value)),
            None => drop(inner.remove(&change.sub_key)),
        }
        if inner.is_empty() {
            entries.remove(&change.place);
        }
    }
    Ok(())
}

/// The bytes of a segment, whose digest is right. `None` only from a backend that is wrong.
async fn load(source: &Storage, segment: &SegmentRef, flaw: Option<Flaw>) -> Result<Option<Bytes>> {
    let (name, bytes) = match &segment.meta.location {
        SegmentLocation::Inline(bytes) => ("inline".to_owned(), Some(bytes.clone())),
        SegmentLocation::Object(name) => {
            let object = ObjectName::Segment(*name);
            let bytes = source.get(&object, segment.meta.bytes).await?;
            (object.to_string(), bytes)
        }
        _ => return Err(Error::new(ErrorKind::Unsupported, "no such location")),
    };
    let Some(bytes) = bytes else {
        if flaw == Some(Flaw::StartsFresh) {
            return Ok(None);
        }
        return Err(Error::new(ErrorKind::NotFound, "a segment is missing").with("object", name));
    };
    let digest = Digest::of(&bytes);
    if digest != segment.meta.digest && flaw != Some(Flaw::SkipsChecksums) {
        return Err(
            Error::new(ErrorKind::Corrupt, "a segment's digest is another")
                .with("object", name)
                .expected_got(segment.meta.digest, digest),
        );
    }
    Ok(Some(bytes))
}

//! From state to parts.

use std::collections::BTreeSet;
use std::sync::Arc;

use backend_core::names::{ObjectName, SegmentName};
use backend_core::segment::{SegmentLocation, SegmentMeta, SegmentRef, Tier};
use backend_core::storage::{Created, Storage};
use backend_core::{
    Digest, Error, ErrorKind, Generation, Result, SnapshotMode, SnapshotStats, StateDescriptor,
    TaskPart, TaskScope, TaskSnapshot, Trigger, UniqueId,
};
use bytes::Bytes;
use parking_lot::Mutex;

use super::entries::{Entries, Place};
use super::expiry::drop_expired;
use super::flaw::Flaw;
use super::segment::Encoded;

/// What is durable: the state at the end of a generation, and the segments that it consists of.
#[derive(Clone, Default)]
pub(super) struct Lineage {
    pub(super) generation: Generation,
    pub(super) entries: Arc<Entries>,
    pub(super) segments: Vec<SegmentRef>,
}

/// What a write needs besides the frozen state.
#[derive(Clone)]
pub(super) struct Writer {
    pub(super) scope: TaskScope,
    pub(super) storage: Storage,
    pub(super) flaw: Option<Flaw>,
    pub(super) lineage: Arc<Mutex<Lineage>>,
    /// The state as it is now, for a backend that is wrong.
    pub(super) live: Arc<Mutex<Arc<Entries>>>,
}

/// A frozen state.
pub(super) struct Freeze {
    pub(super) trigger: Trigger,
    pub(super) generation: Generation,
    pub(super) entries: Arc<Entries>,
    pub(super) states: Vec<StateDescriptor>,
    /// When it was frozen.
    pub(super) clock_ms: u64,
    /// What was durable at the freeze, for a backend that is wrong.
    pub(super) covered: Option<Lineage>,
    /// The keys that were cleared in the generation.
    pub(super) cleared: BTreeSet<Place>,
}

impl Writer {
    pub(super) fn is(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    pub(super) async fn write(self, mut freeze: Freeze) -> Result<TaskSnapshot> {
        if self.is(Flaw::SnapshotsLive) {
            freeze.entries = Arc::clone(&self.live.lock());
        }
        if !self.is(Flaw::StoresExpired) && !self.is(Flaw::RestoresExpired) {
            let entries = Arc::make_mut(&mut freeze.entries);
            drop_expired(entries, &freeze.states, freeze.clock_ms, None);
        }
        // Read once: what becomes durable from here on is none of this snapshot's business.
        let durable = || self.lineage.lock().clone();
        let covered = freeze.covered.take().unwrap_or_else(durable);
        let covered = self.usable(&mut freeze, covered);
        let encoded = Encoded::difference(
            &covered.entries,
            &freeze.entries,
            &freeze.cleared,
            &self.scope.hasher,
            self.flaw,
        );
        let mut segments = covered.segments;
        let mut stats = SnapshotStats {
            bytes_referenced: segments.iter().map(|s| s.meta.bytes).sum(),
            is_full: segments.is_empty(),
            ..SnapshotStats::default()
        };
        if let Some(shards) = encoded.shards {
            stats.entries_new = encoded.puts + encoded.deletes;
            stats.bytes_new = encoded.bytes.len() as u64;
            stats.puts = 1;
            let run = segments.iter().map(|s| s.run + 1).max().unwrap_or(0);
            let meta = self.store(&freeze, encoded, shards).await?;
            segments.push(SegmentRef {
                meta: Arc::new(meta),
                clip: self.scope.range,
                tier: if run == 0 { Tier::BASE } else { Tier(0) },
                run,
            });
        }
        stats.segments = segments.len() as u32;
        self.cover(&freeze, &segments);
        Ok(TaskSnapshot {
            epoch: freeze.trigger.epoch,
            id: freeze.trigger.id,
            attempt: freeze.trigger.attempt,
            part: self.part(freeze, segments),
            stats,
        })
    }

    /// What the snapshot may build upon.
    fn usable(&self, freeze: &mut Freeze, mut covered: Lineage) -> Lineage {
        let is_full = freeze.trigger.mode != SnapshotMode::Incremental;
        let is_newer = covered.generation > freeze.generation;
        if is_newer && self.is(Flaw::RefersToNewer) {
            freeze.entries = Arc::clone(&covered.entries);
        } else if is_newer || is_full && !self.is(Flaw::ReusesInFull) {
            return Lineage::default();
        } else if self.is(Flaw::WritesEverything) {
            covered.entries = Arc::default();
        }
        covered
    }

    /// Notes what is durable now.
    fn cover(&self, freeze: &Freeze, segments: &[SegmentRef]) {
        let mut lineage = self.lineage.lock();
        let is_newer = freeze.generation > lineage.generation;
        if self.is(Flaw::CoversTooEarly) {
            lineage.segments = segments.to_vec();
        } else if is_newer && freeze.trigger.mode != SnapshotMode::Savepoint {
            *lineage = Lineage {
                generation: freeze.generation,
                entries: Arc::clone(&freeze.entries),
                segments: segments.to_vec(),
            };
        }
    }

    async fn store(
        &self,
        freeze: &Freeze,
        encoded: Encoded,
        shards: (u8, u8),
    ) -> Result<SegmentMeta> {
        let bytes = Bytes::from(encoded.bytes);
        let digest = Digest::of(&bytes);
        let name = SegmentName {
            epoch: freeze.trigger.epoch,
            snapshot: freeze.trigger.id,
            task: self.scope.task,
            index: 0,
            // A digest tells operators apart that share a medium; nothing is written twice.
            unique: UniqueId(u128::from_le_bytes(
                *Digest::of(&[&digest.0[..], self.scope.operator.as_str().as_bytes()].concat())
                    .0
                    .first_chunk()
                    .expect("a digest has 32 bytes"),
            )),
        };
        let meta = SegmentMeta {
            location: SegmentLocation::Object(name),
            bytes: bytes.len() as u64,
            digest,
            puts: encoded.puts,
            deletes: encoded.deletes,
            delete_prefixes: 0,
            shadowed_bytes: 0,
            generations: (freeze.generation, freeze.generation),
            shards,
            expires_ms_min: None,
            regions: Vec::new(),
        };
        match self.storage.create(&ObjectName::Segment(name), bytes).await {
            Ok(Created::Yes) => Ok(meta),
            Err(_) if self.is(Flaw::HidesFailures) => Ok(meta),
            Ok(Created::Exists) => Err(Error::new(
                ErrorKind::InDoubt,
                "a segment of this name is there already",
            )
            .with("object", ObjectName::Segment(name))),
            Err(e) => Err(e),
        }
    }

    fn part(self, freeze: Freeze, segments: Vec<SegmentRef>) -> TaskPart {
        let of_segments = segments.iter().map(|s| s.meta.generations.1).max();
        TaskPart {
            operator: self.scope.operator,
            task: self.scope.task,
            range: self.scope.range,
            key_codec: self.scope.key_codec,
            hash: self.scope.hasher.id(),
            generation_max: of_segments.unwrap_or_default().max(freeze.generation),
            states: freeze.states,
            segments,
            engine: Bytes::new(),
        }
    }
}

//! Snapshots made by hand: times to live, small segments, states and hashes that do not fit.

mod crafted;
mod lookups;

use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;

use crate::clock::ManualEnvironment;
use crate::contract::{SnapshotMode, SnapshotStats, TaskPart, TaskSnapshot, Trigger};
use crate::descriptor::{CodecId, StateDescriptor, StateKind, StateUid};
use crate::entry::{Entry, EntryKey, Op, SchemaTag};
use crate::generation::Generation;
use crate::hash::KeyHasher;
use crate::ids::{JobId, OperatorId, TaskIndex, UniqueId};
use crate::names::{ObjectName, SegmentName};
use crate::range::{HashRange, shard_of};
use crate::segment::{
    FinishedSegment, SegmentLocation, SegmentMeta, SegmentOptions, SegmentRef, SegmentWriter, Tier,
};
use crate::storage::Storage;
use crate::store::{Coordinator, Snapshot, SnapshotStore};

/// An entry that owns its bytes.
#[derive(Clone, Debug)]
struct Owned {
    state: &'static str,
    key: Vec<u8>,
    sub_key: Vec<u8>,
    op: Op,
    expires_ms: Option<u64>,
    value: Vec<u8>,
}

impl Owned {
    fn put(state: &'static str, key: u32, sub_key: &[u8], value: &[u8]) -> Self {
        Self {
            state,
            key: key.to_be_bytes().to_vec(),
            sub_key: sub_key.to_vec(),
            op: Op::Put,
            expires_ms: None,
            value: value.to_vec(),
        }
    }

    fn entry(&self, hasher: KeyHasher) -> Entry<'_> {
        Entry {
            key: EntryKey {
                state: StateUid::of(self.state, StateKind::Value),
                shard: shard_of(hasher.hash(&self.key)),
                key: &self.key,
                namespace: &[],
                sub_key: &self.sub_key,
            },
            op: self.op,
            schema: SchemaTag(0),
            expires_ms: self.expires_ms,
            value: &self.value,
        }
    }
}

fn operator() -> OperatorId {
    OperatorId::new("crafted").expect("a name")
}

/// A job whose only task's segments are written by hand.
struct Craft {
    environment: Arc<ManualEnvironment>,
    objects: Arc<object_store::memory::InMemory>,
    storage: Storage,
    store: SnapshotStore,
    coordinator: Coordinator,
    hasher: KeyHasher,
    next: u128,
}

impl Craft {
    fn new(now_ms: u64, hasher: KeyHasher) -> Self {
        let environment = Arc::new(ManualEnvironment::new(now_ms, 3));
        let objects = Arc::new(object_store::memory::InMemory::new());
        let storage = Storage::new(objects.clone(), "");
        let job = JobId::new("crafted").expect("a name");
        let opened = SnapshotStore::open(storage.clone(), job, environment.clone());
        let store = block_on(opened).expect("opened");
        let coordinator = block_on(store.claim()).expect("claimed");
        Self {
            environment,
            objects,
            storage,
            store,
            coordinator,
            hasher,
            next: 1,
        }
    }

    fn encode(&mut self, mut entries: Vec<Owned>) -> FinishedSegment {
        let hasher = self.hasher;
        entries.sort_by(|a, b| a.entry(hasher).cmp_in_segment(&b.entry(hasher)));
        let options = SegmentOptions {
            block_bytes_target: 1 << 10,
            region_blocks: 1,
            ..SegmentOptions::default()
        };
        self.next += 1;
        let mut writer = SegmentWriter::new(options, UniqueId(self.next)).expect("valid");
        for entry in &entries {
            writer.push(&entry.entry(hasher), 0).expect("in order");
        }
        writer.finish((Generation(1), Generation(1))).expect("some")
    }

    /// A segment object, as a run of its own.
    fn segment(&mut self, trigger: &Trigger, entries: Vec<Owned>) -> SegmentRef {
        let finished = self.encode(entries);
        let name = SegmentName {
            epoch: trigger.epoch,
            snapshot: trigger.id,
            task: TaskIndex(0),
            index: 0,
            unique: finished.unique,
        };
        let object = ObjectName::Segment(name);
        block_on(self.storage.create(&object, finished.bytes)).expect("created");
        let location = SegmentLocation::Object(name);
        self.reference(SegmentMeta {
            location,
            ..finished.meta
        })
    }

    fn reference(&self, meta: SegmentMeta) -> SegmentRef {
        SegmentRef {
            meta: Arc::new(meta),
            clip: HashRange::ALL,
            tier: Tier(0),
            run: self.next as u32,
        }
    }

    fn part(&self, segments: Vec<SegmentRef>) -> TaskPart {
        let u64s = || CodecId::new("u64");
        TaskPart {
            operator: operator(),
            task: TaskIndex(0),
            range: HashRange::ALL,
            key_codec: CodecId::new("u32"),
            hash: self.hasher.id(),
            generation_max: Generation(1),
            states: vec![
                StateDescriptor::value("values", u64s()),
                StateDescriptor::map("maps", CodecId::new("bytes"), u64s()),
            ],
            segments,
            engine: Bytes::new(),
        }
    }

    fn trigger(&mut self) -> Trigger {
        let trigger = self.coordinator.trigger(SnapshotMode::Incremental);
        trigger.expect("triggered")
    }

    fn commit(&mut self, trigger: &Trigger, part: TaskPart) -> Snapshot {
        let ack = TaskSnapshot {
            epoch: trigger.epoch,
            id: trigger.id,
            attempt: trigger.attempt,
            part,
            stats: SnapshotStats::default(),
        };
        let committed = self.coordinator.commit(trigger.id, vec![ack], Bytes::new());
        block_on(committed).expect("committed").snapshot
    }

    /// A snapshot of segments of `runs`, oldest first.
    fn snapshot(&mut self, runs: Vec<Vec<Owned>>) -> Snapshot {
        let trigger = self.trigger();
        let segments = runs.into_iter().map(|run| self.segment(&trigger, run));
        let segments = segments.collect();
        let part = self.part(segments);
        self.commit(&trigger, part)
    }

    fn replace(&self, name: &str, bytes: impl Into<Bytes>) {
        use object_store::{ObjectStoreExt, PutPayload, path::Path};
        let payload = PutPayload::from_bytes(bytes.into());
        block_on(self.objects.put(&Path::from(name), payload)).expect("put");
    }
}

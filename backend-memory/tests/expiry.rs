//! A restore drops what had expired at the snapshot's clock, whoever wrote it.

use std::sync::Arc;

use backend_core::clock::SystemEnvironment;
use backend_core::entry::{Entry, EntryKey};
use backend_core::segment::{
    SegmentLocation, SegmentMeta, SegmentOptions, SegmentRef, SegmentWriter, Tier,
};
use backend_core::storage::Storage;
use backend_core::{
    CodecId, Generation, HashId, HashRange, KeyCodec, OperatorId, SnapshotId, StateBackend,
    StateDescriptor, TaskIndex, TaskPart, TaskRestore, TaskScope, UniqueId, ValueState,
};
use backend_memory::{MemoryBackend, MemoryOptions};
use bytes::Bytes;
use futures::executor::block_on;

/// A part with one key of each expiry.
fn part(expiries: &[Option<u64>]) -> TaskPart {
    let state = StateDescriptor::value("values", CodecId::new("u64"));
    let scope = TaskScope::new(OperatorId::new("job").expect("a name"), 0, 1, u32::id());
    let mut keys: Vec<(u8, [u8; 4], Option<u64>)> = Vec::new();
    for (number, expiry) in expiries.iter().enumerate() {
        let key = (number as u32).to_be_bytes();
        keys.push(((scope.hasher.hash(&key) >> 56) as u8, key, *expiry));
    }
    keys.sort_unstable();
    let mut writer = SegmentWriter::new(SegmentOptions::default(), UniqueId(1)).expect("valid");
    for (shard, key, expires_ms) in &keys {
        let key = EntryKey {
            state: state.uid(),
            shard: *shard,
            key,
            namespace: &[],
            sub_key: &[],
        };
        let entry = Entry {
            expires_ms: *expires_ms,
            ..Entry::put(key, &[7; 8])
        };
        writer.push(&entry, 0).expect("in order");
    }
    let finished = writer
        .finish((Generation(1), Generation(1)))
        .expect("not empty");
    let location = SegmentLocation::Inline(finished.bytes);
    let meta = SegmentMeta {
        location,
        ..finished.meta
    };
    TaskPart {
        operator: scope.operator,
        task: TaskIndex(0),
        range: HashRange::ALL,
        key_codec: scope.key_codec,
        hash: HashId::XXH3_64,
        generation_max: Generation(1),
        states: vec![state],
        segments: vec![SegmentRef {
            meta: Arc::new(meta),
            clip: HashRange::ALL,
            tier: Tier::BASE,
            run: 0,
        }],
        engine: Bytes::new(),
    }
}

#[test]
fn restore_drops_what_had_expired_at_the_snapshot() {
    let storage = Storage::memory();
    let part = part(&[None, Some(99), Some(100), Some(101)]);
    let restore = TaskRestore {
        snapshot: SnapshotId(1),
        source: storage.clone(),
        range: HashRange::ALL,
        key_codec: u32::id(),
        hash: HashId::XXH3_64,
        ttl_clock_ms: 100,
        parts: vec![Arc::new(part)],
    };
    let backend = MemoryBackend::new(
        storage,
        SystemEnvironment::shared(),
        MemoryOptions::default(),
    );
    let scope = TaskScope::new(OperatorId::new("job").expect("a name"), 0, 1, u32::id());
    let opened = block_on(backend.expect("it starts").open(scope, Some(restore)));
    let mut store = opened.expect("it is restored");
    let values = ValueState::<u64>::register(&mut *store, "values").expect("registered");
    let mut found = [false; 4];
    for (number, is_there) in (0_u32..).zip(&mut found) {
        let key = values.key(&number).expect("a key");
        *is_there = values
            .get(&mut *store, &key)
            .wait()
            .expect("read")
            .is_some();
    }
    assert_eq!(found, [true, false, false, true]);
    assert_eq!(
        store.entry_count(values.id()).wait().expect("counted"),
        2,
        "physically gone"
    );
}

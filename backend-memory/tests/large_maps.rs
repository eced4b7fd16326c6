//! A map that spans several files of the base is cleared: merges go file by file, and what the
//! clear hides stays hidden in every one of them.

use backend_core::clock::SystemEnvironment;
use backend_core::storage::Storage;
use backend_core::{
    Attempt, Epoch, KeyCodec, KeyedStore, MapState, OperatorId, SnapshotId, SnapshotMode,
    StateBackend, TaskPart, TaskRestore, TaskScope, Trigger,
};
use backend_memory::{MemoryBackend, MemoryOptions};
use futures::executor::block_on;

fn open(storage: &Storage, parts: Option<TaskPart>) -> Box<dyn KeyedStore> {
    let mut options = MemoryOptions::default();
    options.segment.block_bytes_target = 1 << 10;
    options.segment.segment_bytes_target = 64 << 10;
    options.chain.dead_percent_max = 1;
    let backend = MemoryBackend::new(storage.clone(), SystemEnvironment::shared(), options);
    let scope = TaskScope::new(OperatorId::new("maps").expect("a name"), 0, 1, u32::id());
    let restore = parts.map(|part| TaskRestore {
        snapshot: SnapshotId(99),
        source: storage.clone(),
        range: part.range,
        key_codec: part.key_codec.clone(),
        hash: part.hash,
        ttl_clock_ms: 0,
        parts: vec![part.into()],
    });
    block_on(backend.expect("it starts").open(scope, restore)).expect("it opens")
}

fn snapshot(store: &mut dyn KeyedStore, id: u64) -> TaskPart {
    let trigger = Trigger {
        epoch: Epoch(1),
        id: SnapshotId(id),
        base: None,
        attempt: Attempt(1),
        mode: SnapshotMode::Incremental,
    };
    let pending = store.snapshot(&trigger).expect("frozen");
    block_on(pending.write()).expect("written").part
}

#[test]
fn x12_clear_of_a_map_over_many_files_holds_through_every_merge() {
    let storage = Storage::memory();
    let mut store = open(&storage, None);
    let maps = MapState::<u32, u64>::register(&mut *store, "maps").expect("registered");
    let large = maps.key(&7_u32).expect("a key");
    for sub_key in 0..60_000 {
        let value = u64::from(sub_key) * 0x9e37_79b9;
        maps.put(&mut *store, &large, &sub_key, &value)
            .expect("put");
    }
    let part = snapshot(&mut *store, 1);
    assert!(
        part.segments.len() > 4,
        "the map spans {} files",
        part.segments.len()
    );

    maps.clear(&mut *store, &large).expect("cleared");
    maps.put(&mut *store, &large, &30_000, &1).expect("put");
    for id in 2..40 {
        // Other keys change, so that there is always something to merge.
        let other = maps.key(&(id as u32 + 100)).expect("a key");
        for sub_key in 0..50 {
            maps.put(&mut *store, &other, &sub_key, &id).expect("put");
        }
        let part = snapshot(&mut *store, id);
        let mut restored = open(&storage, Some(part));
        let found = maps.entries(&mut *restored, &large).wait().expect("read");
        assert_eq!(found, [(30_000, 1)], "after snapshot {id}");
        let count = restored.entry_count(maps.id()).wait().expect("counted");
        assert_eq!(count, 1 + 50 * (id - 1), "after snapshot {id}");
    }
    // Merges run behind snapshots; sooner or later they have been through every file.
    let other = maps.key(&99_u32).expect("a key");
    let is_gone = (40..1_000).any(|id| {
        maps.put(&mut *store, &other, &0, &id).expect("put");
        let part = snapshot(&mut *store, id);
        let bytes: u64 = part.segments.iter().map(|segment| segment.meta.bytes).sum();
        bytes < 200_000
    });
    assert!(is_gone, "what was cleared still lies in the chain");
}

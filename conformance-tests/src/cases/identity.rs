//! What belongs to another job, task or state.

use std::sync::Arc;

use backend_core::segment::{SegmentLocation, SegmentMeta, SegmentRef};
use backend_core::{
    CodecId, Digest, Error, ErrorKind, HashId, KeyHasher, KeyedStore, Result, SchemaVersion,
    StateDescriptor, SubKeyRange, TaskPart, TaskRestore, TaskScope, owner_of,
};
use bytes::Bytes;
use futures::executor::block_on;

use crate::backend::BackendUnderTest;
use crate::contents::noise;
use crate::job::{Job, Spec};
use crate::snapshot::Snapshot;
use crate::task::{Task, descriptors};

fn open(
    snapshot: &Snapshot<'_>,
    scope: TaskScope,
    restore: TaskRestore,
) -> Result<Box<dyn KeyedStore>> {
    let backend = snapshot.under_test();
    let backend = backend.backend(snapshot.spec.medium.storage(), snapshot.spec.environment());
    block_on(backend.open(scope, Some(restore)))
}

/// The error with which an open is refused.
fn refusal(snapshot: &Snapshot<'_>, scope: TaskScope, restore: TaskRestore) -> Error {
    match open(snapshot, scope, restore) {
        Err(error) => error,
        Ok(_) => panic!("a store opened that is of another identity"),
    }
}

fn assert_mismatch(error: &Error, expected: &str, got: &str) {
    assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
    let text = error.to_string();
    assert!(
        text.contains(expected) && text.contains(got),
        "an error says what was expected and found: {error}"
    );
}

fn some_snapshot(backend: &dyn BackendUnderTest) -> Snapshot<'_> {
    let mut job = Job::new(backend);
    for i in 0..100u8 {
        let key = job.key([i]);
        job.put(&key, noise(u64::from(i), 300));
    }
    job.incremental()
}

/// X10: keys that were stored by another codec are not restored.
pub fn x10_another_key_codec_is_refused(backend: &dyn BackendUnderTest) {
    let snapshot = some_snapshot(backend);
    let mut scope = snapshot.spec.scope(0, 1);
    scope.key_codec = CodecId::new("another-codec");
    let restore = snapshot.task_restore(scope.range);
    let error = refusal(&snapshot, scope, restore);
    assert_mismatch(&error, "bytes", "another-codec");
}

/// X18: keys that were hashed by another function are not restored.
pub fn x18_another_hash_function_is_refused(backend: &dyn BackendUnderTest) {
    let snapshot = some_snapshot(backend);
    let other = KeyHasher::custom(HashId(4_711), |key| !KeyHasher::XXH3_64.hash(key));
    let scope = snapshot.spec.scope(0, 1).with_hasher(other);
    let restore = snapshot.task_restore(scope.range);
    let error = refusal(&snapshot, scope, restore);
    assert_mismatch(&error, "xxh3-64", "4711");
}

/// X18: a job's own hash function decides who owns a key, before and after a restore.
pub fn x18_a_custom_hash_function_is_used(backend: &dyn BackendUnderTest) {
    let spec = Spec {
        hasher: KeyHasher::custom(HashId(4_711), |key| !KeyHasher::XXH3_64.hash(key)),
        ..Spec::new(backend)
    };
    let mut job = Job::of(spec, 3);
    for i in 0..200u8 {
        job.put(&job.key([i]), [i]);
    }
    let expected = job.contents();
    assert_eq!(expected.values.len(), 200);
    assert_eq!(job.incremental().contents(5), expected);
}

/// X18: a key that another task owns is refused by every call.
pub fn x18_a_key_of_another_task_is_refused(backend: &dyn BackendUnderTest) {
    let mut job = Job::of(Spec::new(backend), 2);
    let mut keys = (0..u8::MAX).map(|i| job.key([i]));
    let of_the_other = keys.find(|key| owner_of(key.hash(), 2) == 1);
    let key = of_the_other.expect("half of the keys are of the other task");
    let keys = [key.clone()];
    let Task {
        store,
        value,
        list,
        map,
    } = &mut job.tasks[0];
    let mut batch = backend_core::EntryBatch::default();
    let mut values = backend_core::ValueBatch::new();
    let refusals = [
        store.get(*value, &key).wait().err(),
        store.put(*value, &key, b"v").err(),
        store.clear(*value, &key).err(),
        store
            .try_update(*value, &key, &mut |_, edit| edit.put(b"v"))
            .and_then(Result::err),
        store.get_many(*value, &keys, &mut values).wait().err(),
        store.list_append(*list, &key, b"v").err(),
        store
            .list_replace(*list, &key, &mut std::iter::once(&b"v"[..]))
            .err(),
        store.map_get(*map, &key, b"s").wait().err(),
        store.map_put(*map, &key, b"s", b"v").err(),
        store.map_remove(*map, &key, b"s").err(),
        store
            .scan(*map, &key, &SubKeyRange::ALL, &mut batch)
            .wait()
            .err(),
    ];
    for (index, refusal) in refusals.into_iter().enumerate() {
        let refusal = refusal.unwrap_or_else(|| panic!("call {index} took a foreign key"));
        assert_eq!(
            refusal.kind(),
            ErrorKind::Invalid,
            "call {index}: {refusal}"
        );
    }
    assert_eq!(job.contents(), crate::contents::Contents::default());
}

/// X10: a part whose segment is not a segment at all is refused, not believed and no panic.
pub fn x10_foreign_bytes_are_refused(backend: &dyn BackendUnderTest) {
    let snapshot = some_snapshot(backend);
    let scope = snapshot.spec.scope(0, 1);
    let known = snapshot.task_restore(scope.range);
    let model = &known.parts[0].segments[0];
    let foreign = [
        Bytes::new(),
        Bytes::from_static(b"\x7fELF"),
        Bytes::from(vec![0; 5_000]),
        Bytes::from(vec![0xff; 5_000]),
        Bytes::from(noise(10, 5_000)),
    ];
    for bytes in foreign {
        let meta = SegmentMeta {
            location: SegmentLocation::Inline(bytes.clone()),
            bytes: bytes.len() as u64,
            digest: Digest::of(&bytes),
            ..(*model.meta).clone()
        };
        let part = TaskPart {
            segments: vec![SegmentRef {
                meta: Arc::new(meta),
                ..model.clone()
            }],
            ..(*known.parts[0]).clone()
        };
        let restore = TaskRestore {
            parts: vec![Arc::new(part)],
            ..known.clone()
        };
        let read = open(&snapshot, scope.clone(), restore)
            .and_then(Task::new)
            .and_then(|mut task| task.contents());
        // No bytes at all may be no entries, to a format without a header.
        match read {
            Ok(found) => assert!(
                bytes.is_empty() && found == crate::contents::Contents::default(),
                "foreign bytes were read: {found:?}"
            ),
            Err(e) => assert!(
                [
                    ErrorKind::Corrupt,
                    ErrorKind::Unsupported,
                    ErrorKind::Mismatch,
                    ErrorKind::Limit
                ]
                .contains(&e.kind()),
                "{e}"
            ),
        }
    }
}

/// M12: a state is not registered again under another kind, codec or schema, before or after a
/// restore; the error says what differs.
pub fn m12_another_kind_or_codec_is_refused(backend: &dyn BackendUnderTest) {
    let bytes = || CodecId::new("bytes");
    let other = || CodecId::new("other-codec");
    let [value, list, map] = descriptors();
    let wrong = [
        StateDescriptor::list("value", bytes()).with_namespace(bytes()),
        StateDescriptor::value("value", other()).with_namespace(bytes()),
        StateDescriptor::value("value", bytes()).with_namespace(other()),
        StateDescriptor::value("value", bytes()),
        value.clone().with_schema(SchemaVersion(9)),
        StateDescriptor::map("list", bytes(), bytes()).with_namespace(bytes()),
        StateDescriptor::list("list", other()).with_namespace(bytes()),
        StateDescriptor::map("map", other(), bytes()).with_namespace(bytes()),
        StateDescriptor::map("map", bytes(), other()).with_namespace(bytes()),
    ];
    let mut job = Job::new(backend);
    let key = job.key("k");
    job.put(&key, "v");
    let mut restored = job.incremental().restore(1);
    for job in [&mut job, &mut restored] {
        let task = job.only();
        for descriptor in &wrong {
            let refused = task.store.register(descriptor).expect_err("it differs");
            assert_eq!(refused.kind(), ErrorKind::Mismatch, "{refused}");
            assert!(refused.fact("expected").is_some(), "{refused}");
            assert!(refused.fact("got").is_some(), "{refused}");
        }
        assert_eq!(
            task.store.register(&value).expect("it is known"),
            task.value
        );
        assert_eq!(task.store.register(&list).expect("it is known"), task.list);
        assert_eq!(task.store.register(&map).expect("it is known"), task.map);
        assert_eq!(task.get(&key).as_deref(), Some(&b"v"[..]));
    }
}

/// The contract: a call for another kind of state is refused.
pub fn contract_calls_of_another_kind_are_refused(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let Task {
        store,
        value,
        list,
        map,
    } = job.only();
    let refusals = [
        store.get(*map, &key).wait().err(),
        store.put(*list, &key, b"v").err(),
        store
            .try_update(*map, &key, &mut |_, edit| edit.put(b"v"))
            .and_then(Result::err),
        store.list_append(*value, &key, b"v").err(),
        store
            .list_replace(*map, &key, &mut std::iter::once(&b"v"[..]))
            .err(),
        store.map_get(*value, &key, b"s").wait().err(),
        store.map_put(*list, &key, b"s", b"v").err(),
        store.map_remove(*value, &key, b"s").err(),
    ];
    for (index, refusal) in refusals.into_iter().enumerate() {
        let refusal = refusal.unwrap_or_else(|| panic!("call {index} was taken"));
        assert_eq!(
            refusal.kind(),
            ErrorKind::Mismatch,
            "call {index}: {refusal}"
        );
    }
    assert_eq!(job.contents(), crate::contents::Contents::default());
}

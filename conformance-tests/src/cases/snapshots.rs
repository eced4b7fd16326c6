//! Snapshots that succeed.

use std::thread;

use backend_core::segment::SegmentLocation;
use backend_core::{ErrorKind, SnapshotMode, TaskRestore};
use futures::executor::block_on;

use crate::backend::BackendUnderTest;
use crate::contents::{Contents, noise};
use crate::job::{Job, Spec};
use crate::task::{Task, descriptors};

const MODES: [SnapshotMode; 3] = [
    SnapshotMode::Full,
    SnapshotMode::Incremental,
    SnapshotMode::Savepoint,
];

/// Writes more than a manifest takes inline, under keys that begin with `tag`.
pub(super) fn write_much(job: &mut Job<'_>, expected: &mut Contents, tag: u8) {
    for i in 0..100u8 {
        let key = job.key([tag, i]);
        let value = noise(u64::from(tag) * 256 + u64::from(i), 300);
        job.put(&key, &value);
        expected.put(&key, &value);
        job.append(&key, &value[..50]);
        expected.append(&key, &value[..50]);
        job.map_put(&key, [tag], &value[..50]);
        expected.map_put(&key, &[tag], &value[..50]);
    }
}

/// S1: each snapshot shows the state as it was when it was taken, in every mode and kind.
pub fn s1_a_snapshot_shows_its_moment(backend: &dyn BackendUnderTest) {
    for (first, second) in (0..9).map(|i| (MODES[i / 3], MODES[i % 3])) {
        let mut job = Job::new(backend);
        let mut a = Contents::default();
        let keys: Vec<_> = (0..20u8).map(|i| job.key([i])).collect();
        for key in &keys {
            job.put(key, "a");
            a.put(key, b"a");
            job.append(key, "a");
            a.append(key, b"a");
            for sub_key in ["x", "y"] {
                job.map_put(key, sub_key, "a");
                a.map_put(key, sub_key.as_bytes(), b"a");
            }
        }
        let snapshot_a = job.snapshot(first);
        let mut b = a.clone();
        for key in &keys[..10] {
            job.put(key, "b");
            b.put(key, b"b");
            job.append(key, "b");
            b.append(key, b"b");
            job.map_remove(key, "x");
            b.map_remove(key, b"x");
        }
        job.clear_value(&keys[11]);
        b.values.remove(&(vec![11], vec![]));
        job.clear_list(&keys[12]);
        b.lists.remove(&(vec![12], vec![]));
        job.clear_map(&keys[13]);
        b.maps.remove(&(vec![13], vec![]));
        let snapshot_b = job.snapshot(second);
        job.put(&keys[0], "c");
        let mut live = b.clone();
        live.put(&keys[0], b"c");
        assert_eq!(snapshot_a.contents(1), a, "{first:?} before {second:?}");
        assert_eq!(snapshot_b.contents(1), b, "{second:?} after {first:?}");
        assert_eq!(job.contents(), live);
    }
}

/// S2: what is written while a snapshot is on its way shows in the live state only.
pub fn s2_writes_during_a_snapshot_stay_out_of_it(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let mut before = Contents::default();
    write_much(&mut job, &mut before, 1);
    let frozen = job.freeze(SnapshotMode::Incremental);
    let id = frozen.id();
    job.spec.medium.hold(id);
    // Some writes before the write begins, some while it is held.
    let mut after = before.clone();
    let early = job.key([1, 0]);
    job.put(&early, "early");
    after.put(&early, b"early");
    thread::scope(|scope| {
        let writer = scope.spawn(|| frozen.write());
        job.spec.medium.wait_until_held(id);
        write_much(&mut job, &mut after, 2);
        for i in 1..50u8 {
            let key = job.key([1, i]);
            job.put(&key, "late");
            after.put(&key, b"late");
            job.append(&key, "late");
            after.append(&key, b"late");
            job.clear_map(&key);
            after.maps.remove(&(vec![1, i], vec![]));
        }
        job.spec.medium.release(id);
        let snapshot = writer.join().expect("it does not panic");
        let snapshot = snapshot.expect("a snapshot is written");
        assert_eq!(snapshot.contents(1), before);
        job.confirm(id);
    });
    assert_eq!(job.contents(), after);
    assert_eq!(job.incremental().contents(1), after);
}

/// S3: a snapshot whose uploads are held up holds up no later one, and ends when it can.
pub fn s3_a_later_snapshot_overtakes_a_blocked_one(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let mut first = Contents::default();
    write_much(&mut job, &mut first, 1);
    let frozen = job.freeze(SnapshotMode::Incremental);
    let id = frozen.id();
    job.spec.medium.hold(id);
    thread::scope(|scope| {
        let writer = scope.spawn(|| frozen.write());
        job.spec.medium.wait_until_held(id);
        let mut second = first.clone();
        write_much(&mut job, &mut second, 2);
        let overtaking = job.freeze(SnapshotMode::Incremental).write();
        let overtaking = overtaking.expect("a snapshot is written");
        assert_eq!(overtaking.contents(1), second);
        job.spec.medium.release(id);
        let blocked = writer.join().expect("it does not panic");
        let blocked = blocked.expect("a snapshot is written");
        assert_eq!(blocked.contents(1), first);
        assert_eq!(job.incremental().contents(1), second);
    });
}

/// S4: without state a snapshot has no segments, and a job starts from it.
pub fn s4_no_state_is_an_empty_snapshot(backend: &dyn BackendUnderTest) {
    for mode in MODES {
        let mut job = Job::new(backend);
        let snapshot = job.snapshot(mode);
        assert!(snapshot.parts[0].segments.is_empty(), "{mode:?}");
        assert!(job.spec.medium.objects().is_empty(), "{mode:?}");
        for parallelism in [1, 3] {
            assert_eq!(snapshot.contents(parallelism), Contents::default());
        }
        let mut restored = snapshot.restore(2);
        let key = restored.key("k");
        restored.put(&key, "v");
        assert_eq!(
            restored.incremental().restore(1).get(&key),
            Some(b"v".to_vec())
        );
    }
}

/// S4: nothing is registered, and nothing is there to restore.
pub fn s4_no_registered_state_is_an_empty_snapshot(backend: &dyn BackendUnderTest) {
    let spec = Spec::new(backend);
    let opened = spec
        .under_test
        .backend(spec.medium.storage(), spec.environment());
    let store = block_on(opened.open(spec.scope(0, 1), None));
    let mut store = store.expect("an empty store opens");
    assert!(store.states().is_empty());
    let trigger = Job::of(spec.clone(), 1).next_trigger(SnapshotMode::Full);
    let pending = store.snapshot(&trigger).expect("a store freezes");
    let snapshot = block_on(pending.write()).expect("a snapshot is written");
    assert!(snapshot.part.segments.is_empty() && snapshot.part.states.is_empty());
}

/// S5: state that was restored and never touched is in the next snapshot, of any mode.
pub fn s5_untouched_state_is_in_the_next_snapshot(backend: &dyn BackendUnderTest) {
    for (parallelism, mode) in [1, 3].into_iter().flat_map(|p| MODES.map(|m| (p, m))) {
        let mut job = Job::of(Spec::new(backend), 2);
        let mut expected = Contents::default();
        write_much(&mut job, &mut expected, 1);
        job.incremental();
        write_much(&mut job, &mut expected, 2);
        let first = job.incremental();
        // It is not even registered: its descriptors come out of the snapshot.
        let opened = backend.backend(first.spec.medium.storage(), first.spec.environment());
        let scope = first.spec.scope(0, 1);
        let restore = first.task_restore(scope.range);
        let store = block_on(opened.open(scope, Some(restore))).expect("a snapshot restores");
        let mut names: Vec<_> = store.states().into_iter().map(|s| s.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["list", "map", "value"]);
        let second = first.restore(parallelism).snapshot(mode);
        assert_eq!(second.contents(1), expected);
        let third = second.restore(2).snapshot(mode);
        assert_eq!(third.contents(3), expected);
    }
}

/// S10: ten rounds of a new state and a snapshot; all are written in the end, none fails.
pub fn s10_states_are_registered_between_snapshots(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let [value, ..] = descriptors();
    let named = |round: usize| {
        let mut descriptor = value.clone();
        descriptor.name = format!("state {round}");
        descriptor
    };
    let mut frozen = Vec::new();
    for round in 0..10 {
        let store = &mut job.only().store;
        let state = store.register(&named(round)).expect("registers");
        store.put(state, &key, &[round as u8]).expect("writes");
        frozen.push(job.freeze(SnapshotMode::Incremental));
    }
    let writers: Vec<_> = thread::scope(|scope| {
        let writers: Vec<_> = frozen
            .into_iter()
            .map(|f| scope.spawn(|| f.write()))
            .collect();
        let joined = writers
            .into_iter()
            .map(|w| w.join().expect("it does not panic"));
        joined.collect()
    });
    for (round, snapshot) in writers.into_iter().enumerate() {
        let snapshot = snapshot.expect("a snapshot is written");
        let mut restored = snapshot.restore(1);
        let store = &mut restored.only().store;
        for other in 0..10 {
            let is_known = store.states().iter().any(|s| s.name == named(other).name);
            assert_eq!(is_known, other <= round, "state {other} in round {round}");
        }
        let state = store.register(&named(round)).expect("registers");
        let found = store.get(state, &key).wait().expect("reads");
        assert_eq!(found.as_deref(), Some(&[round as u8][..]));
    }
}

/// S12: once it has been read, restored state outlives the snapshot's objects; or its absence is
/// an error, in a backend that says so.
pub fn s12_restored_state_outlives_its_snapshot(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let mut expected = Contents::default();
    write_much(&mut job, &mut expected, 1);
    let snapshot = job.incremental();
    let mut restored = snapshot.restore(1);
    assert_eq!(restored.contents(), expected);
    for object in job.spec.medium.objects() {
        job.spec.medium.delete(&object);
    }
    let found = restored.try_contents();
    if backend.capabilities().outlives_restored_objects {
        assert_eq!(found.expect("it needs no object"), expected);
        return;
    }
    match found {
        Ok(found) => assert_eq!(found, expected),
        Err(e) => assert!(e.fact("object").is_some(), "an error names the object: {e}"),
    }
}

/// S14: a snapshot that has something has a size, and says what it consists of.
pub fn s14_a_snapshot_reports_its_size_and_range(backend: &dyn BackendUnderTest) {
    let mut job = Job::of(Spec::new(backend), 3);
    let mut expected = Contents::default();
    write_much(&mut job, &mut expected, 1);
    let first = job.incremental();
    write_much(&mut job, &mut expected, 2);
    let second = job.incremental();
    for (snapshot, is_first) in [(&first, true), (&second, false)] {
        for (part, stats) in snapshot.parts.iter().zip(&snapshot.stats) {
            assert_eq!(part.states.len(), 3);
            let sizes = part.segments.iter().map(|s| s.meta.bytes);
            assert_eq!(sizes.sum::<u64>(), stats.bytes_new + stats.bytes_referenced);
            assert!(stats.bytes_new > 0 && stats.entries_new > 0);
            assert_eq!(stats.bytes_referenced == 0, stats.is_full);
            assert!(
                !is_first || stats.is_full,
                "the first one has nothing to refer to"
            );
            for segment in &part.segments {
                let meta = &segment.meta;
                assert!(meta.bytes > 0 && meta.entries() > 0);
                assert!(meta.generations.0 <= meta.generations.1);
                assert!(meta.generations.1 <= part.generation_max);
                assert!(meta.shards.0 <= meta.shards.1);
                if let SegmentLocation::Object(_) = meta.location {
                    let name = meta.location.object().expect("an object");
                    let bytes = job.spec.medium.read(&name.to_string().into());
                    assert_eq!(bytes.len() as u64, meta.bytes, "{name}");
                    assert_eq!(backend_core::Digest::of(&bytes), meta.digest, "{name}");
                }
            }
        }
    }
}

/// The contract: a trigger whose id is not above earlier ones is refused.
pub fn contract_trigger_ids_grow(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let early = job.next_trigger(SnapshotMode::Full);
    let first = job.next_trigger(SnapshotMode::Full);
    job.put(&key, "v");
    let store = &mut job.only().store;
    block_on(store.snapshot(&first).expect("a store freezes").write()).expect("writes");
    for trigger in [first, early] {
        let refused = store.snapshot(&trigger).expect_err("the id is used up");
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    }
    assert_eq!(job.incremental().restore(1).get(&key), Some(b"v".to_vec()));
}

/// R4: a part that has nothing in a task's range is restored as nothing, and none at all is no
/// error.
pub fn r4_no_parts_in_range_restore_as_nothing(backend: &dyn BackendUnderTest) {
    let mut job = Job::of(Spec::new(backend), 2);
    let key = job.key("k");
    job.put(&key, noise(1, 20_000));
    let snapshot = job.incremental();
    let spec = snapshot.spec.clone();
    let with = snapshot.parts.iter().filter(|p| !p.segments.is_empty());
    assert_eq!(with.count(), 1, "one key lies in one task");
    let opened = backend.backend(spec.medium.storage(), spec.environment());
    let nothing = TaskRestore {
        parts: Vec::new(),
        ..snapshot.task_restore(spec.scope(0, 1).range)
    };
    let store = block_on(opened.open(spec.scope(0, 1), Some(nothing)));
    let mut task = Task::new(store.expect("nothing restores")).expect("registers");
    assert_eq!(task.contents().expect("reads"), Contents::default());
    let owners = snapshot
        .restore(64)
        .tasks
        .into_iter()
        .filter_map(|mut task| {
            let found = task.contents().expect("reads");
            (found != Contents::default()).then(|| task.store.scope().range)
        });
    let owners: Vec<_> = owners.collect();
    assert_eq!(owners.len(), 1);
    assert!(owners[0].contains(key.hash()));
}

//! Other parallelisms.

use backend_core::{HashRange, OperatorId, owner_of};

use crate::backend::BackendUnderTest;
use crate::contents::{Contents, noise};
use crate::job::{Job, Spec};
use crate::task::descriptors;

/// Takes a job with `keys` keys from one parallelism to the next, changing some of it each time.
/// Enumeration checks that each key lives in its owner alone.
fn walk(backend: &dyn BackendUnderTest, keys: u32, parallelisms: &[u32]) {
    let mut job = Job::of(Spec::new(backend), parallelisms[0]);
    let mut expected = Contents::default();
    for i in 0..keys {
        let key = job.key(i.to_be_bytes());
        job.put(&key, "old");
        expected.put(&key, b"old");
        job.append(&key, i.to_be_bytes());
        expected.append(&key, &i.to_be_bytes());
        job.map_put(&key, "sub", "old");
        expected.map_put(&key, b"sub", b"old");
    }
    job.incremental();
    for (round, parallelism) in (1u32..).zip(&parallelisms[1..]) {
        for i in (round..keys).step_by(3) {
            let key = job.key(i.to_be_bytes());
            job.put(&key, round.to_be_bytes());
            expected.put(&key, &round.to_be_bytes());
            job.append(&key, "more");
            expected.append(&key, b"more");
            job.map_remove(&key, "sub");
            expected.map_remove(&key, b"sub");
        }
        job = job.incremental().restore(*parallelism);
        assert_eq!(job.contents(), expected, "at {parallelism}");
        for i in (0..keys).step_by(7) {
            let key = job.key(i.to_be_bytes());
            let name = (i.to_be_bytes().to_vec(), Vec::new());
            assert_eq!(job.get(&key).as_ref(), expected.values.get(&name));
            assert_eq!(job.list(&key), expected.lists[&name]);
        }
    }
}

/// R1: 4 to 2 tasks.
pub fn r1_four_tasks_become_two(backend: &dyn BackendUnderTest) {
    walk(backend, 500, &[4, 2, 2, 2]);
}

/// R1: 2 to 4 tasks.
pub fn r1_two_tasks_become_four(backend: &dyn BackendUnderTest) {
    walk(backend, 500, &[2, 4, 4, 2, 4]);
}

/// R1: tasks that registered different states are joined and split; each state is whole.
pub fn r1_tasks_registered_different_states(backend: &dyn BackendUnderTest) {
    let mut job = Job::of(Spec::new(backend), 4);
    let [value, ..] = descriptors();
    let named = |task: u32| {
        let mut descriptor = value.clone();
        descriptor.name = format!("state of {task}");
        descriptor
    };
    let keys: Vec<_> = (0..200u32).map(|i| job.key(i.to_be_bytes())).collect();
    for key in &keys {
        let owner = owner_of(key.hash(), 4);
        let store = &mut job.task(key).store;
        let state = store.register(&named(owner)).expect("registers");
        store.put(state, key, &owner.to_be_bytes()).expect("writes");
    }
    for parallelism in [2, 4, 3, 1] {
        job = job.incremental().restore(parallelism);
        for key in &keys {
            let owner = owner_of(key.hash(), 4);
            let store = &mut job.task(key).store;
            for state in 0..4 {
                let id = store.register(&named(state)).expect("registers");
                let found = store.get(id, key).wait().expect("reads");
                let found = found.as_deref().map(<[u8]>::to_vec);
                let expected = (state == owner).then(|| owner.to_be_bytes().to_vec());
                assert_eq!(found, expected, "{key:?} in state {state} at {parallelism}");
            }
        }
    }
}

/// R2: 15 to 77 tasks and back.
pub fn r2_fifteen_tasks_become_seventy_seven_and_back(backend: &dyn BackendUnderTest) {
    walk(backend, 2_000, &[15, 77, 15]);
}

/// R2: 3 to 1,000 tasks and back.
pub fn r2_three_tasks_become_a_thousand_and_back(backend: &dyn BackendUnderTest) {
    walk(backend, 2_000, &[3, 1_000, 3]);
}

/// R3: for every parallelism up to 5,000 the ranges are a fair split of the space, and agree
/// with the owner of a hash.
pub fn r3_ranges_are_a_fair_split(_backend: &dyn BackendUnderTest) {
    for parallelism in 1..=5_000u32 {
        let mut next = Some(0u64);
        let (mut least, mut most) = (u64::MAX, 0);
        for task in 0..parallelism {
            let range = HashRange::of_task(task, parallelism);
            assert_eq!(Some(range.first()), next, "{task} of {parallelism}");
            next = range.last().checked_add(1);
            let size = range.last() - range.first();
            (least, most) = (least.min(size), most.max(size));
            assert_eq!(owner_of(range.first(), parallelism), task);
            assert_eq!(owner_of(range.last(), parallelism), task);
        }
        assert_eq!(next, None, "{parallelism} tasks cover the space");
        assert!(most - least <= 1, "{parallelism} tasks are of one size");
    }
}

/// R4: a task is handed only segments that touch its range, clipped to it.
pub fn r4_only_segments_in_range_are_handed_over(backend: &dyn BackendUnderTest) {
    let mut job = Job::of(Spec::new(backend), 8);
    for i in 0..400u32 {
        let key = job.key(i.to_be_bytes());
        job.put(&key, noise(u64::from(i), 200));
    }
    job.incremental();
    let key = job.key(7u32.to_be_bytes());
    job.put(&key, noise(1, 20_000));
    let snapshot = job.incremental();
    for task in 0..8 {
        let restore = snapshot.task_restore(HashRange::of_task(task, 8));
        assert_eq!(restore.parts.len(), 1, "ranges are as they were");
        assert_eq!(restore.parts[0], snapshot.parts[task as usize]);
    }
    for task in 0..64 {
        let range = HashRange::of_task(task, 64);
        let restore = snapshot.task_restore(range);
        assert_eq!(restore.parts.len(), 1);
        for segment in &restore.parts[0].segments {
            assert!(range.covers(segment.clip));
        }
    }
    assert_eq!(snapshot.restore(64).get(&key), Some(noise(1, 20_000)));
}

/// R10: at the same parallelism, ten operators of a hundred tasks each get their own state back.
pub fn r10_each_task_gets_its_own_state_back(backend: &dyn BackendUnderTest) {
    let common = Spec::new(backend);
    let mut snapshots = Vec::new();
    for operator in 0..10u32 {
        let name = format!("operator {operator}");
        let spec = Spec {
            operator: OperatorId::new(name).expect("a name"),
            ledger: std::sync::Arc::default(),
            ..common.clone()
        };
        let mut job = Job::of(spec, 100);
        let mut expected = Contents::default();
        for i in 0..300u32 {
            let key = job.key(i.to_be_bytes());
            let value = [operator.to_be_bytes(), i.to_be_bytes()].concat();
            job.put(&key, &value);
            expected.put(&key, &value);
        }
        snapshots.push((job.incremental(), expected));
    }
    for (snapshot, expected) in snapshots {
        let mut restored = snapshot.restore(100);
        for (part, task) in snapshot.parts.iter().zip(&restored.tasks) {
            assert_eq!(part.range, task.store.scope().range);
        }
        assert_eq!(restored.contents(), expected);
    }
}

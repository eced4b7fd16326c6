//! Lists.

use backend_core::{ListState, SnapshotMode};

use crate::backend::BackendUnderTest;
use crate::job::Job;

fn owned<const N: usize>(elements: [&str; N]) -> Vec<Vec<u8>> {
    elements.map(|e| e.as_bytes().to_vec()).to_vec()
}

/// P10: a fresh key has no list and is not listed.
pub fn p10_a_fresh_key_has_no_list(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    assert_eq!(job.list(&key), owned([]));
    let task = job.only();
    assert!(task.keys(task.list, None).expect("keys").is_empty());
}

/// P11: duplicates are kept, and so is the order.
pub fn p11_a_list_keeps_duplicates_and_order(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    for element in ["a", "b", "a"] {
        job.append(&key, element);
    }
    assert_eq!(job.list(&key), owned(["a", "b", "a"]));
    assert_eq!(
        job.incremental().restore(1).list(&key),
        owned(["a", "b", "a"])
    );
    // Many more than a byte, a chunk or a batch counts.
    let long = job.key("long");
    let expected: Vec<_> = (0..3_000u32)
        .map(|i| (i % 7).to_be_bytes().to_vec())
        .collect();
    for element in &expected {
        job.append(&long, element);
    }
    assert_eq!(job.list(&long), expected);
    assert_eq!(job.incremental().restore(1).list(&long), expected);
}

/// P12: an update replaces all, and by nothing it clears.
pub fn p12_an_update_replaces_the_list(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    job.append(&key, "old");
    job.replace(&key, &owned(["x", "y"]));
    assert_eq!(job.list(&key), owned(["x", "y"]));
    job.replace(&key, &[]);
    assert_eq!(job.list(&key), owned([]));
    assert!(job.contents().lists.is_empty(), "no key is left behind");
    job.replace(&key, &owned(["z"]));
    job.append(&key, "w");
    assert_eq!(job.list(&key), owned(["z", "w"]));
}

/// P13: adding nothing changes nothing.
pub fn p13_adding_nothing_changes_nothing(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let store = &mut *job.only().store;
    let lists = ListState::<u64>::register(store, "typed").expect("registers");
    lists.add_all(store, &key, [0; 0]).expect("adds nothing");
    assert!(lists.is_empty(store, &key).wait().expect("reads"));
    let keys = store.keys(lists.id(), None).expect("keys");
    drop(keys);
    assert_eq!(store.entry_count(lists.id()).wait().expect("counts"), 0);
    lists.add_all(store, &key, [1, 2]).expect("adds");
    lists.add_all(store, &key, [0; 0]).expect("adds nothing");
    assert_eq!(lists.get(store, &key).wait().expect("reads"), [1, 2]);
}

/// P16: reading a list does not change it.
pub fn p16_a_list_reads_the_same_twice(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    for i in 0..100u8 {
        job.append(&key, [i]);
    }
    let first = job.list(&key);
    assert_eq!(first.len(), 100);
    assert_eq!(job.list(&key), first);
    job.incremental();
    assert_eq!(job.list(&key), first);
    job.append(&key, "more");
    assert_eq!(job.list(&key)[..100], first);
}

/// X13: what is appended after restores and scale-ins stands behind what was there, once.
pub fn x13_appends_after_a_restore_come_last_and_once(backend: &dyn BackendUnderTest) {
    let mut job = Job::of(crate::job::Spec::new(backend), 4);
    let keys: Vec<_> = (0..40u8).map(|i| job.key([i])).collect();
    let mut expected: Vec<Vec<Vec<u8>>> = vec![Vec::new(); keys.len()];
    let parallelisms = [2, 1, 3, 3, 1, 4];
    for (round, parallelism) in (0u8..).zip(parallelisms) {
        // Tasks that have frozen a different number of times have different generations.
        for _ in 0..=round % 3 {
            for (i, (key, list)) in keys.iter().zip(&mut expected).enumerate() {
                for n in 0..=(i % 3) as u8 {
                    job.append(key, [round, n]);
                    list.push(vec![round, n]);
                }
            }
            job.incremental();
        }
        let mode = [SnapshotMode::Incremental, SnapshotMode::Full][usize::from(round % 2)];
        job = job.snapshot(mode).restore(parallelism);
        for (key, list) in keys.iter().zip(&expected) {
            assert_eq!(job.list(key), *list, "{key:?} after round {round}");
        }
    }
}

/// X13: lists of tasks whose generations differ are appended to after a scale-in.
pub fn x13_a_scale_in_joins_tasks_of_unequal_age(backend: &dyn BackendUnderTest) {
    let mut job = Job::of(crate::job::Spec::new(backend), 2);
    let keys: Vec<_> = (0..16u8).map(|i| job.key([i])).collect();
    for key in &keys {
        job.append(key, "1");
    }
    // The second life begins at the generation that the first ended with.
    let mut job = job.incremental().restore(1);
    for key in &keys {
        job.append(key, "2");
        job.append(key, "3");
    }
    let snapshot = job.incremental();
    let mut job = snapshot.restore(2);
    for key in &keys {
        job.append(key, "4");
    }
    let mut job = job.incremental().restore(1);
    for key in &keys {
        assert_eq!(job.list(key), owned(["1", "2", "3", "4"]));
    }
}

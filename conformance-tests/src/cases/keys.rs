//! Listing keys.

use std::collections::BTreeSet;

use backend_core::KeyBatch;

use crate::backend::BackendUnderTest;
use crate::contents::Contents;
use crate::job::Job;

/// P28: 1,000 keys in one namespace and 1,000 others in another: each lists its own.
pub fn p28_a_namespace_lists_its_own_keys(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    for i in 0..2_000u32 {
        let namespace = if i < 1_000 { "ns1" } else { "ns2" };
        job.put(&job.key_in(i.to_be_bytes(), namespace), "v");
    }
    job.put(&job.key("none"), "v");
    let mut restored = job.incremental().restore(1);
    for job in [&mut job, &mut restored] {
        for (namespace, numbers) in [("ns1", 0..1_000), ("ns2", 1_000..2_000u32)] {
            let task = job.only();
            let listed = task
                .keys(task.value, Some(namespace.as_bytes()))
                .expect("keys");
            let names = numbers.map(|i| (i.to_be_bytes().to_vec(), namespace.as_bytes().to_vec()));
            assert_eq!(listed.len(), 1_000);
            assert_eq!(
                listed.into_iter().collect::<BTreeSet<_>>(),
                names.collect::<BTreeSet<_>>()
            );
        }
        let task = job.only();
        let listed = task.keys(task.value, Some(b"")).expect("keys");
        assert_eq!(listed, [(b"none".to_vec(), Vec::new())]);
        assert!(
            task.keys(task.value, Some(b"ns3"))
                .expect("keys")
                .is_empty()
        );
    }
}

/// P29: a key with several entries is listed once.
pub fn p29_a_key_with_many_entries_is_listed_once(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let mut expected = BTreeSet::new();
    for i in 0..300u32 {
        let key = job.key(i.to_be_bytes());
        for sub_key in ["a", "b"] {
            job.map_put(&key, sub_key, "v");
            job.append(&key, sub_key);
        }
        expected.insert((i.to_be_bytes().to_vec(), Vec::new()));
    }
    job.incremental();
    for i in 0..150u32 {
        let key = job.key(i.to_be_bytes());
        job.map_put(&key, "c", "in another generation");
        job.append(&key, "c");
    }
    let mut restored = job.incremental().restore(1);
    for job in [&mut job, &mut restored] {
        let task = job.only();
        for state in [task.map, task.list] {
            let listed = task.keys(state, None).expect("keys");
            assert_eq!(listed.len(), 300);
            assert_eq!(BTreeSet::from_iter(listed), expected);
        }
    }
}

/// P30: the same keys in two namespaces are listed once for each, and nothing else is.
pub fn p30_keys_in_two_namespaces_are_listed_for_each(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let mut expected = BTreeSet::new();
    for i in 0..300u32 {
        for namespace in ["ns1", "ns2"] {
            job.put(&job.key_in(i.to_be_bytes(), namespace), namespace);
            expected.insert((i.to_be_bytes().to_vec(), namespace.as_bytes().to_vec()));
        }
    }
    // Another state of the same task is no stranger's business.
    job.append(&job.key_in("list", "ns1"), "v");
    let mut restored = job.incremental().restore(1);
    for job in [&mut job, &mut restored] {
        let task = job.only();
        let listed = task.keys(task.value, None).expect("keys");
        assert_eq!(listed.len(), 600);
        assert_eq!(BTreeSet::from_iter(listed), expected);
    }
}

/// P31: keys are cleared, or cleared and written again, while they are listed; the listing shows
/// what was there at the call.
pub fn p31_keys_are_changed_while_they_are_listed(backend: &dyn BackendUnderTest) {
    for then_adds in [false, true] {
        let mut job = Job::new(backend);
        for i in 0..100u8 {
            job.append(&job.key([i]), "old");
        }
        let mut expected = Contents::default();
        let task = job.only();
        let mut cursor = task.store.keys(task.list, None).expect("keys");
        let mut batch = KeyBatch::new(3);
        let mut listed = Vec::new();
        loop {
            batch.clear();
            cursor.next_batch(&mut batch).wait().expect("keys");
            if batch.is_empty() {
                break;
            }
            for (name, _) in batch.iter() {
                let key = job.key(name);
                if then_adds {
                    job.append(&key, "added");
                }
                job.clear_list(&key);
                if then_adds {
                    job.append(&key, "last");
                    expected.append(&key, b"last");
                }
                listed.push(name.to_vec());
                // A key that was not there at the call is not listed.
                let stranger = job.key([200, listed.len() as u8]);
                job.append(&stranger, "stranger");
                expected.append(&stranger, b"stranger");
            }
        }
        listed.sort_unstable();
        assert_eq!(listed, (0..100).map(|i| vec![i]).collect::<Vec<_>>());
        assert_eq!(job.contents(), expected);
        assert_eq!(job.incremental().contents(1), expected);
    }
}

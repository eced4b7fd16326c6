//! Maps.

use std::ops::Bound;

use backend_core::{ErrorKind, KeyedStore, MapState, SubKeyRange};
use bytes::Bytes;

use crate::backend::BackendUnderTest;
use crate::contents::{Contents, Entries, noise};
use crate::job::Job;

type Numbers = MapState<u64, u64>;

/// P22: put, put-all, contains and remove agree; keys, values and entries are as many.
pub fn p22_map_calls_agree(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let store = &mut *job.only().store;
    let map = Numbers::register(store, "typed").expect("registers");
    assert_eq!(map.get(store, &key, &1).wait().expect("reads"), None);
    map.put(store, &key, &3, &30).expect("writes");
    map.put_all(store, &key, [(1, 10), (2, 20), (3, 31)])
        .expect("writes");
    assert_eq!(map.get(store, &key, &3).wait().expect("reads"), Some(31));
    assert!(map.contains(store, &key, &2).wait().expect("reads"));
    map.remove(store, &key, &2).expect("removes");
    map.remove(store, &key, &99).expect("removes nothing");
    assert!(!map.contains(store, &key, &2).wait().expect("reads"));
    assert_eq!(map.take(store, &key, &2).wait().expect("reads"), None);
    let keys = map.keys(store, &key).wait().expect("reads");
    let values = map.values(store, &key).wait().expect("reads");
    let entries = map.entries(store, &key).wait().expect("reads");
    assert_eq!((keys, values), (vec![1, 3], vec![10, 31]));
    assert_eq!(entries, [(1, 10), (3, 31)]);
    assert_eq!(map.take(store, &key, &3).wait().expect("reads"), Some(31));
    assert_eq!(map.keys(store, &key).wait().expect("reads"), [1]);
}

/// P22: a scan keeps to its bounds, of either kind.
pub fn p22_a_scan_keeps_to_its_bounds(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    for i in 0..200u8 {
        job.map_put(&key, [i], [i]);
    }
    let mut restored = job.incremental().restore(1);
    let bound = |kind: u8, at: u8| match kind {
        0 => Bound::Unbounded,
        1 => Bound::Included(Bytes::copy_from_slice(&[at])),
        _ => Bound::Excluded(Bytes::copy_from_slice(&[at])),
    };
    for (start_kind, end_kind) in (0..9).map(|i| (i / 3, i % 3)) {
        let range = SubKeyRange {
            start: bound(start_kind, 50),
            end: bound(end_kind, 90),
        };
        let expected: Vec<u8> = (0..200).filter(|i| range.contains(&[*i])).collect();
        for job in [&mut job, &mut restored] {
            let task = job.only();
            let found = task.scan(task.map, &key, &range).expect("a scan answers");
            let found: Vec<u8> = found.iter().map(|(k, _)| k[0]).collect();
            assert_eq!(found, expected, "{range:?}");
        }
    }
}

/// P23: a map that is empty, or was cleared, is walked over without an entry.
pub fn p23_an_empty_map_is_walked(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let store = &mut *job.only().store;
    let map = Numbers::register(store, "typed").expect("registers");
    let walk = |store: &mut dyn KeyedStore| {
        let mut cursor = map.cursor(store, &key);
        cursor.next().wait().expect("reads")
    };
    assert_eq!(walk(store), None);
    map.put(store, &key, &1, &1).expect("writes");
    assert_eq!(walk(store), Some((1, 1)));
    map.clear(store, &key).expect("clears");
    assert_eq!(walk(store), None);
}

/// P24: a map is empty exactly before its first put and after its last removal.
pub fn p24_a_map_is_empty_after_its_last_removal(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let store = &mut *job.only().store;
    let map = Numbers::register(store, "typed").expect("registers");
    let is_empty = |store: &mut dyn KeyedStore| map.is_empty(store, &key).wait().expect("reads");
    assert!(is_empty(store));
    for i in 0..1_024 {
        map.put(store, &key, &i, &i).expect("writes");
    }
    for i in 0..1_024 {
        assert!(!is_empty(store), "{} are left", 1_024 - i);
        map.remove(store, &key, &((i * 7) % 1_024))
            .expect("removes");
    }
    assert!(is_empty(store));
    let left = store.keys(map.id(), None).expect("keys");
    let left = crate::task::all_keys(&mut *{ left }).expect("keys");
    assert!(left.is_empty(), "an emptied map has no key");
}

/// P25: what a cursor removes and sets, later reads see.
pub fn p25_writes_through_a_cursor_show(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let store = &mut *job.only().store;
    let map = Numbers::register(store, "typed").expect("registers");
    map.put_all(store, &key, (0..100).map(|i| (i, i)))
        .expect("writes");
    let mut cursor = map.cursor(store, &key);
    while let Some((k, v)) = cursor.next().wait().expect("reads") {
        if k % 3 == 0 {
            cursor.remove().expect("removes");
        } else {
            cursor.set(&(v + 1_000)).expect("sets");
        }
    }
    drop(cursor);
    let expected: Vec<_> = (0..100)
        .filter(|k| k % 3 != 0)
        .map(|k| (k, k + 1_000))
        .collect();
    assert_eq!(map.entries(store, &key).wait().expect("reads"), expected);
}

/// P26: a walk over 4,096 entries that removes some meets each once; a second removal is refused.
pub fn p26_a_walk_that_removes_meets_each_entry_once(backend: &dyn BackendUnderTest) {
    const COUNT: u64 = 4_096;
    let mut job = Job::new(backend);
    let key = job.key("k");
    let store = &mut *job.only().store;
    let map = Numbers::register(store, "typed").expect("registers");
    map.put_all(store, &key, (0..COUNT).map(|i| (i, i)))
        .expect("writes");
    let choices = noise(26, COUNT as usize);
    let mut cursor = map.cursor(store, &key);
    assert_eq!(
        cursor.remove().expect_err("on no entry").kind(),
        ErrorKind::Invalid
    );
    let (mut met, mut kept) = (Vec::new(), Vec::new());
    while let Some((k, _)) = cursor.next().wait().expect("reads") {
        met.push(k);
        if choices[k as usize].is_multiple_of(3) {
            kept.push(k);
        } else {
            cursor.remove().expect("removes");
            let again = cursor.remove().expect_err("it is removed already");
            assert_eq!(again.kind(), ErrorKind::Invalid);
        }
    }
    drop(cursor);
    assert_eq!(met, (0..COUNT).collect::<Vec<_>>());
    assert_eq!(map.keys(store, &key).wait().expect("reads"), kept);
}

/// P27: keys whose bytes begin alike, or run into their namespace, do not share entries.
pub fn p27_keys_with_a_common_prefix_stay_apart(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let names = [
        ("1", ""),
        ("11", ""),
        ("1", "1"),
        ("", "11"),
        ("", ""),
        ("1", "11"),
        ("111", ""),
        ("11", "1"),
    ];
    let mut expected = Contents::default();
    for (i, (key, namespace)) in (0u8..).zip(names) {
        let key = job.key_in(key, namespace);
        for sub_key in ["", "1", "11"] {
            job.map_put(&key, sub_key, [i]);
            expected.map_put(&key, sub_key.as_bytes(), &[i]);
        }
        job.put(&key, [i]);
        expected.put(&key, &[i]);
    }
    assert_eq!(job.contents(), expected);
    assert_eq!(job.incremental().contents(1), expected);
    let cleared = job.key("1");
    job.clear_map(&cleared);
    expected.maps.remove(&(b"1".to_vec(), Vec::new()));
    assert_eq!(job.contents(), expected);
    assert_eq!(job.incremental().contents(1), expected);
}

/// X11: a map of a million entries under one key is written, read, changed, snapshotted in
/// proportion to its changes, and restored.
pub fn x11_a_map_of_a_million_entries(backend: &dyn BackendUnderTest) {
    const COUNT: u32 = 1_000_000;
    let mut job = Job::new(backend);
    let key = job.key("huge");
    for i in 0..COUNT {
        job.map_put(
            &key,
            i.to_be_bytes(),
            i.wrapping_mul(0x9e37_79b9).to_le_bytes(),
        );
    }
    let full_bytes = job.incremental().bytes_new();
    for i in 0..10u32 {
        job.map_put(&key, (i * 99_991).to_be_bytes(), "changed");
        job.map_remove(&key, (i * 99_991 + 1).to_be_bytes());
    }
    let snapshot = job.incremental();
    let changed_bytes = snapshot.bytes_new();
    assert!(
        changed_bytes < full_bytes / 100,
        "20 changes took {changed_bytes} bytes, all took {full_bytes}"
    );
    let mut restored = snapshot.restore(1);
    for job in [&mut job, &mut restored] {
        let task = job.only();
        assert_eq!(task.count(task.map), u64::from(COUNT) - 10);
        assert_eq!(
            task.map_get(&key, &0u32.to_be_bytes()).as_deref(),
            Some(&b"changed"[..])
        );
        assert_eq!(task.map_get(&key, &1u32.to_be_bytes()), None);
        let range = SubKeyRange {
            start: Bound::Included(Bytes::copy_from_slice(&500_000u32.to_be_bytes())),
            end: Bound::Excluded(Bytes::copy_from_slice(&500_100u32.to_be_bytes())),
        };
        let found = task.scan(task.map, &key, &range).expect("a scan answers");
        let found: Entries = found.into_iter().collect();
        let expected = (500_000..500_100u32).map(|i| {
            (
                i.to_be_bytes().to_vec(),
                i.wrapping_mul(0x9e37_79b9).to_le_bytes().to_vec(),
            )
        });
        let mut expected: Entries = expected.collect();
        expected.retain(|k, _| task_keeps(k));
        assert_eq!(found, expected);
    }
}

fn task_keeps(sub_key: &[u8]) -> bool {
    let number = u32::from_be_bytes(sub_key.try_into().expect("four bytes"));
    !number.is_multiple_of(99_991) && number % 99_991 != 1
}

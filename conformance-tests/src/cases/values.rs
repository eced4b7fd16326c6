//! Values, and what all kinds have in common.

use std::sync::mpsc;
use std::thread;

use backend_core::codec::Codec;
use backend_core::{ErrorKind, KeyedStore, Native, StateKey, ValueBatch, ValueEdit, ValueState};

use crate::backend::BackendUnderTest;
use crate::contents::Contents;
use crate::job::Job;
use crate::task::{Task, all_keys};

/// P1: nothing is there before it is written.
pub fn p1_a_fresh_key_is_absent(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("fresh");
    assert_eq!(job.get(&key), None);
    assert_eq!(job.list(&key), Vec::<Vec<u8>>::new());
    assert!(job.map(&key).is_empty());
    assert_eq!(job.map_get(&key, "sub"), None);
    job.put(&job.key("other"), "x");
    assert_eq!(job.get(&key), None);
    let mut seen = None;
    job.update(&key, |old, _| seen = Some(old.map(<[u8]>::to_vec)));
    assert_eq!(seen, Some(None), "an update of a fresh key sees no value");
}

/// P2: a value goes from its default to what was written and back.
pub fn p2_a_value_goes_default_written_default(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let store = &mut *job.only().store;
    let state = ValueState::<u64>::register(store, "typed").expect("registers");
    let read = |store: &mut dyn KeyedStore| state.get_or(store, &key, 7).wait().expect("reads");
    assert_eq!(read(store), 7);
    state.put(store, &key, &9).expect("writes");
    assert_eq!(read(store), 9);
    state.put(store, &key, &7).expect("writes");
    assert_eq!(state.get(store, &key).wait().expect("reads"), Some(7));
    state.clear(store, &key).expect("clears");
    assert_eq!(read(store), 7);
    assert_eq!(state.get(store, &key).wait().expect("reads"), None);
}

/// P4: what one key's reader does to a default does not show to another.
pub fn p4_defaults_are_not_shared(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let (a, b) = (job.key("a"), job.key("b"));
    let store = &mut *job.only().store;
    let state = ValueState::<Vec<u8>>::register(store, "typed").expect("registers");
    let default = vec![1];
    let mut of_a = state
        .get_or(store, &a, default.clone())
        .wait()
        .expect("reads");
    of_a.push(2);
    state.put(store, &a, &of_a).expect("writes");
    let of_b = state
        .get_or(store, &b, default.clone())
        .wait()
        .expect("reads");
    assert_eq!(of_b, default);
}

/// P6: a write to one key shows at no other, in every kind.
pub fn p6_keys_do_not_touch_each_other(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let (one, two) = (job.key("one"), job.key("two"));
    let mut expected = Contents::default();
    for (key, text) in [(&one, "1"), (&two, "2")] {
        job.put(key, text);
        job.append(key, text);
        job.map_put(key, "sub", text);
        expected.put(key, text.as_bytes());
        expected.append(key, text.as_bytes());
        expected.map_put(key, b"sub", text.as_bytes());
    }
    assert_eq!(job.contents(), expected);
    job.put(&one, "x");
    job.replace(&one, &[b"x".to_vec()]);
    job.map_put(&one, "sub", "x");
    assert_eq!(job.get(&two).as_deref(), Some(&b"2"[..]));
    assert_eq!(job.list(&two), [b"2"]);
    assert_eq!(job.map_get(&two, "sub").as_deref(), Some(&b"2"[..]));
    job.clear_value(&one);
    job.clear_list(&one);
    job.clear_map(&one);
    expected.values.retain(|name, _| name.0 == b"two");
    expected.lists.retain(|name, _| name.0 == b"two");
    expected.maps.retain(|name, _| name.0 == b"two");
    assert_eq!(job.contents(), expected);
}

/// P7: two states of different types under one key live side by side, through a snapshot, too.
pub fn p7_two_states_under_one_key_are_both_restored(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let store = &mut *job.only().store;
    let number = ValueState::<u64>::register(store, "number").expect("registers");
    let text = ValueState::<String>::register(store, "text").expect("registers");
    number.put(store, &key, &42).expect("writes");
    text.put(store, &key, &"forty-two".into()).expect("writes");
    let mut restored = job.incremental().restore(1);
    let store = &mut *restored.only().store;
    // Registered in another order: states find their entries by name, not by number.
    let text = ValueState::<String>::register(store, "text").expect("registers");
    let number = ValueState::<u64>::register(store, "number").expect("registers");
    assert_eq!(number.get(store, &key).wait().expect("reads"), Some(42));
    let found = text.get(store, &key).wait().expect("reads");
    assert_eq!(found.as_deref(), Some("forty-two"));
}

/// P8: a view shows one moment to readers on other threads while the owner goes on.
pub fn p8_a_view_is_read_elsewhere_while_the_owner_writes(backend: &dyn BackendUnderTest) {
    const KEYS: u32 = 2_000;
    let mut job = Job::new(backend);
    let keys: Vec<StateKey> = (0..KEYS).map(|i| job.key(i.to_be_bytes())).collect();
    for key in &keys {
        job.put(key, "old");
        job.map_put(key, "sub", "old");
    }
    let task = job.only();
    let view = task.store.view().expect("a view opens");
    let (value, map) = (task.value, task.map);
    let (started, start) = mpsc::channel();
    let of_reader = keys.clone();
    let reader = thread::spawn(move || {
        for (i, key) in of_reader.iter().enumerate() {
            if i == 1 {
                started.send(()).expect("the owner waits");
            }
            let found = view.get(value, key).wait().expect("a view reads");
            assert_eq!(found.as_deref(), Some(&b"old"[..]));
            let found = view.map_get(map, key, b"sub").wait().expect("a view reads");
            assert_eq!(found.as_deref(), Some(&b"old"[..]));
        }
        let mut cursor = view.keys(value, None).expect("a view lists");
        all_keys(&mut *cursor).expect("a view lists").len()
    });
    start.recv().expect("the reader starts");
    for (i, key) in keys.iter().enumerate() {
        if i % 2 == 0 {
            job.put(key, "new");
        } else {
            job.clear_value(key);
        }
        job.map_put(key, "sub", "new");
        job.put(&job.key(format!("new {i}")), "new");
    }
    assert_eq!(reader.join().expect("the reader ends"), keys.len());
    assert_eq!(job.get(&keys[0]).as_deref(), Some(&b"new"[..]));
    assert_eq!(job.get(&keys[1]), None);
    assert_eq!(job.map_get(&keys[1], "sub").as_deref(), Some(&b"new"[..]));
}

/// P9: entries are counted exactly, whatever was overwritten or cleared.
pub fn p9_entries_are_counted_exactly(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let keys: Vec<StateKey> = (0..500u32).map(|i| job.key(i.to_be_bytes())).collect();
    let counts = |task: &mut Task| [task.value, task.list, task.map].map(|s| task.count(s));
    assert_eq!(counts(job.only()), [0, 0, 0]);
    for round in 0..2 {
        for key in &keys {
            job.put(key, [round]);
            job.append(key, [round]);
            job.map_put(key, "a", [round]);
            job.map_put(key, [b'b', round], [round]);
        }
    }
    assert_eq!(counts(job.only()), [500, 1_000, 1_500]);
    job.incremental();
    for key in &keys[..100] {
        job.put(key, "again");
        job.map_remove(key, "a");
        job.map_remove(key, "never there");
        job.replace(key, &[b"only".to_vec()]);
    }
    assert_eq!(counts(job.only()), [500, 900, 1_400]);
    let mut restored = job.incremental().restore(1);
    assert_eq!(counts(restored.only()), [500, 900, 1_400]);
    for job in [&mut job, &mut restored] {
        for key in &keys {
            job.clear_value(key);
            job.clear_list(key);
            job.clear_map(key);
        }
        assert_eq!(counts(job.only()), [0, 0, 0]);
    }
}

/// A codec that has no form for odd numbers.
struct EvenOnly;

impl Codec<u64> for EvenOnly {
    fn id() -> backend_core::CodecId {
        backend_core::CodecId::new("even")
    }

    fn encode<S: backend_core::ByteSink>(value: &u64, out: &mut S) -> backend_core::Result<()> {
        if value % 2 == 1 {
            return Err(backend_core::Error::new(ErrorKind::Invalid, "odd"));
        }
        Native::encode(value, out)
    }

    fn decode(bytes: &[u8]) -> backend_core::Result<u64> {
        Native::decode(bytes)
    }
}

/// S13: a value that cannot be encoded fails at the write, once; nothing has changed, and the
/// next snapshot is whole.
pub fn s13_a_failing_codec_fails_at_the_write(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let store = &mut *job.only().store;
    let values = ValueState::<u64, EvenOnly>::register(store, "even").expect("registers");
    let lists = backend_core::ListState::<u64, EvenOnly>::register(store, "evens");
    let lists = lists.expect("registers");
    values.put(store, &key, &2).expect("writes");
    lists.add_all(store, &key, [2, 4]).expect("writes");
    let failed = values.put(store, &key, &3).expect_err("it is odd");
    assert_eq!(failed.kind(), ErrorKind::Invalid);
    let failed = values.update(store, &key, |old| old.map(|n| n + 1)).wait();
    assert_eq!(failed.expect_err("it is odd").kind(), ErrorKind::Invalid);
    lists.add_all(store, &key, [6, 7]).expect_err("one is odd");
    lists.update(store, &key, [8, 9]).expect_err("one is odd");
    let check = |store: &mut dyn KeyedStore| {
        assert_eq!(values.get(store, &key).wait().expect("reads"), Some(2));
        assert_eq!(lists.get(store, &key).wait().expect("reads"), [2, 4]);
    };
    check(store);
    let mut restored = job.incremental().restore(1);
    let store = &mut *restored.only().store;
    let values = ValueState::<u64, EvenOnly>::register(store, "even").expect("registers");
    assert_eq!(values.get(store, &key).wait().expect("reads"), Some(2));
}

/// The contract: batch forms do what the single calls do, in the order of the keys.
pub fn contract_batches_agree_with_single_calls(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let keys: Vec<StateKey> = ["a", "b", "c", "b"].map(|k| job.key(k)).to_vec();
    job.put(&keys[0], "1");
    job.put(&keys[2], "");
    let task = job.only();
    let (state, store) = (task.value, &mut *task.store);
    let mut values = ValueBatch::new();
    values.push(Some(b"before"));
    let fetch = store.get_many(state, &keys, &mut values);
    fetch.wait().expect("reads");
    let found: Vec<_> = values.iter().collect();
    let (one, empty) = (Some(&b"1"[..]), Some(&b""[..]));
    assert_eq!(found, [Some(&b"before"[..]), one, None, empty, None]);

    let mut seen = Vec::new();
    let mut edit = |index: usize, old: Option<&[u8]>, value: &mut ValueEdit| {
        seen.push((index, old.map(<[u8]>::to_vec)));
        match index {
            0 => value.clear(),
            2 => value.keep(),
            _ => value.put(&[old.unwrap_or_default(), b"x"].concat()),
        }
    };
    while store.try_update_many(state, &keys, &mut edit).is_none() {
        let prefetch = store.prefetch(state, &keys);
        prefetch.wait().expect("a prefetch ends");
    }
    let expected = [Some(&b"1"[..]), None, Some(b""), Some(b"x")];
    let expected: Vec<_> = (0..)
        .zip(expected.map(|old| old.map(<[u8]>::to_vec)))
        .collect();
    assert_eq!(
        seen, expected,
        "each key is edited once per place, in order"
    );
    let after = [None, Some(b"xx".to_vec()), Some(Vec::new())];
    assert_eq!([0, 1, 2].map(|i| job.get(&keys[i])), after);
}

/// The contract: a single update keeps, puts and clears.
pub fn contract_an_update_keeps_puts_and_clears(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    job.update(&key, |_, edit| edit.put(b"1"));
    assert_eq!(job.get(&key).as_deref(), Some(&b"1"[..]));
    job.incremental();
    job.update(&key, |old, edit| {
        assert_eq!(old, Some(&b"1"[..]));
        edit.put(b"discarded");
        edit.keep();
    });
    assert_eq!(job.get(&key).as_deref(), Some(&b"1"[..]));
    job.update(&key, |_, edit| edit.buffer().extend_from_slice(b"22"));
    assert_eq!(job.incremental().restore(1).get(&key), Some(b"22".to_vec()));
    job.update(&key, |_, edit| edit.clear());
    assert_eq!(job.get(&key), None);
    assert_eq!(job.contents(), Contents::default());
    assert_eq!(job.incremental().contents(1), Contents::default());
}

/// The contract: a prefetch and a read that are dropped change nothing.
pub fn contract_dropped_reads_change_nothing(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    job.put(&key, "v");
    job.append(&key, "e");
    let mut restored = job.full().restore(1);
    for job in [&mut job, &mut restored] {
        let task = job.only();
        drop(task.store.get(task.value, &key));
        drop(task.store.prefetch(task.value, std::slice::from_ref(&key)));
        drop(task.store.entry_count(task.list));
        drop(task.store.maintain());
        assert_eq!(task.get(&key).as_deref(), Some(&b"v"[..]));
        assert_eq!(task.list(&key), [b"e"]);
    }
}

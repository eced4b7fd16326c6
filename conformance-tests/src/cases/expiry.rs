//! Time to live: what is seen, and what is physically there.

use backend_core::{ErrorKind, ListState, StateOptions, TimeToLive, ValueState};

use crate::backend::BackendUnderTest;
use crate::job::Job;
use crate::timed::{TTL_MS, Timed, after_writes};

/// T1, T2: what was never written, or was cleared, is not there, and takes nothing.
pub fn t1_t2_nothing_is_there_before_a_write_and_after_a_clear(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, Some(after_writes()));
    let key = timed.key("k");
    assert!(!timed.reads(&key));
    timed.write(&key, "a");
    assert!(timed.reads(&key));
    for state in [timed.value, timed.list, timed.map] {
        timed.task(&key).clear(state, &key);
    }
    assert!(!timed.reads(&key));
    assert_eq!(timed.stored(), [0, 0, 0]);
}

/// T3: a write gives life for the time to live, to the millisecond, and a read gives none.
pub fn t3_a_write_gives_life_and_a_read_does_not(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, Some(after_writes()));
    let key = timed.key("k");
    timed.write(&key, "a");
    assert!(timed.at(20).reads(&key));
    assert!(timed.at(TTL_MS - 1).reads(&key));
    assert!(!timed.at(TTL_MS).reads(&key));
    assert!(!timed.at(101).reads(&key));
}

/// T4: another write begins the time anew; of a list and a map only what is written does.
pub fn t4_another_write_begins_anew(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, Some(after_writes()));
    let key = timed.key("k");
    timed.write(&key, "a");
    timed.at(50).write(&key, "a");
    timed.map_put(&key, "b", "b");
    timed.at(120);
    assert_eq!(timed.get(&key).as_deref(), Some("a"));
    assert_eq!(timed.list(&key), ["a"], "the first element is older");
    assert_eq!(timed.map(&key).len(), 2);
    assert!(!timed.at(150).reads(&key));
    timed.at(160).write(&key, "c");
    assert!(timed.at(259).reads(&key));
}

/// T5: a read that meets what has expired removes it, and nothing beside it.
pub fn t5_a_read_removes_what_has_expired(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, Some(after_writes()));
    let key = timed.key("k");
    timed.at(170).write(&key, "a");
    timed.at(200);
    timed.append(&key, "b");
    timed.map_put(&key, "b", "b");
    assert!(timed.at(220).reads(&key));
    assert_eq!(timed.stored(), [1, 2, 2]);
    timed.at(280);
    assert_eq!(timed.stored(), [1, 2, 2], "nobody has looked");
    assert_eq!(timed.get(&key), None);
    assert_eq!(timed.list(&key), ["b"]);
    assert_eq!(timed.map_get(&key, "a"), None);
    assert_eq!(timed.stored(), [0, 1, 1]);
    assert!(!timed.at(300).reads(&key));
    assert_eq!(timed.stored(), [0, 0, 0]);
    // One that is met by an update that changes nothing goes, too.
    timed.put(&key, "c");
    let state = timed.value;
    timed.at(400);
    let mut seen = Some(Vec::new());
    let store = &mut timed.task(&key).store;
    let edited = store.try_update(state, &key, &mut |old, _| seen = old.map(<[u8]>::to_vec));
    edited.expect("it is at hand").expect("it is applied");
    assert_eq!((seen, timed.stored()), (None, [0, 0, 0]));
}

/// T6: T3 to T5 with a snapshot and a restore between all steps: times are kept, not set anew.
pub fn t6_times_survive_restores(backend: &dyn BackendUnderTest) {
    let ttl = Some(after_writes());
    let mut timed = Timed::new(backend, ttl);
    let (key, other) = (timed.key("k"), timed.key("other"));
    timed.write(&key, "a");
    timed.at(20);
    timed = timed.through(ttl);
    assert!(timed.reads(&key));
    timed.at(50).write(&other, "b");
    timed = timed.through(ttl);
    timed.at(99);
    timed = timed.through(ttl);
    assert!(timed.reads(&key) && timed.reads(&other));
    timed.at(101);
    assert!(!timed.reads(&key));
    timed = timed.through(ttl);
    assert!(!timed.reads(&key));
    assert!(timed.at(149).reads(&other));
    timed = timed.through(ttl);
    assert!(!timed.at(150).reads(&other));
    assert_eq!(timed.stored(), [0, 0, 0]);
}

/// T7: what may be shown until it is removed is shown once, by the read that removes it.
pub fn t7_what_has_expired_may_be_shown_once(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, Some(after_writes().shown_until_removed()));
    let key = timed.key("k");
    timed.write(&key, "a");
    assert!(timed.at(120).reads(&key));
    assert_eq!(timed.stored(), [0, 0, 0]);
    assert!(!timed.reads(&key));
}

/// T8: reads refresh, if they are to, all kinds.
pub fn t8_reads_refresh(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, Some(after_writes().refreshed_by_reads(0)));
    let key = timed.key("k");
    timed.write(&key, "a");
    assert!(timed.at(50).reads(&key));
    assert!(timed.at(120).reads(&key));
    assert!(!timed.at(250).reads(&key));
    assert_eq!(timed.stored(), [0, 0, 0]);
    // Single entries of a map, and updates that change nothing, refresh like any read.
    timed.map_put(&key, "a", "a");
    timed.put(&key, "a");
    let state = timed.value;
    for ms in [300, 380, 460] {
        timed.at(ms);
        assert_eq!(timed.map_get(&key, "a").as_deref(), Some("a"));
        let edited = timed
            .task(&key)
            .store
            .try_update(state, &key, &mut |_, _| {});
        edited.expect("it is at hand").expect("it is applied");
    }
    assert_eq!(timed.at(559).get(&key).as_deref(), Some("a"));
}

/// Reads that would move the expiry by little do not write.
pub fn t8_a_refresh_has_a_granularity(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, Some(after_writes().refreshed_by_reads(30)));
    let key = timed.key("k");
    timed.write(&key, "a");
    assert!(timed.at(29).reads(&key));
    assert!(!timed.at(100).reads(&key));
    timed.write(&key, "b");
    assert!(timed.at(130).reads(&key));
    assert!(timed.at(229).reads(&key));
}

/// T9: both: a read within the time refreshes, one after it shows what was there, once.
pub fn t9_refreshed_and_shown_until_removed(backend: &dyn BackendUnderTest) {
    let ttl = after_writes().refreshed_by_reads(0).shown_until_removed();
    let mut timed = Timed::new(backend, Some(ttl));
    let key = timed.key("k");
    timed.write(&key, "a");
    assert!(timed.at(50).reads(&key));
    assert!(timed.at(170).reads(&key));
    assert!(!timed.reads(&key));
}

/// T10: the longest time to live does not overflow.
pub fn t10_the_longest_time_to_live_is_for_ever(backend: &dyn BackendUnderTest) {
    let longest = TimeToLive::after_write_ms(u64::MAX).expect("above 0");
    let mut timed = Timed::new(backend, Some(longest));
    let key = timed.key("k");
    timed.write(&key, "a");
    timed.at(u64::MAX / 2);
    timed = timed.through(Some(longest));
    assert!(timed.reads(&key));
    assert_eq!(timed.stored(), [1, 1, 1]);
}

/// T11: what has expired does not take part when namespaces are merged.
pub fn t11_merging_leaves_out_what_has_expired(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let in_namespace = |name: &str| key.namespaced(name).expect("it is short");
    let (target, old, new) = (in_namespace("t"), in_namespace("old"), in_namespace("new"));
    let clock = job.spec.clock.clone();
    let options = StateOptions::new()
        .with_namespace::<String>()
        .with_ttl(after_writes());
    let store = &mut *job.only().store;
    let lists = ListState::<u64>::register_with(store, "merged", &options).expect("registers");
    lists.add(store, &old, &1).expect("adds");
    clock.set_ms(crate::job::NOON_MS + 60);
    lists.add(store, &new, &2).expect("adds");
    clock.set_ms(crate::job::NOON_MS + 120);
    let merged = lists.merge(store, &target, &[old, new]).wait();
    merged.expect("merges");
    assert_eq!(lists.get(store, &target).wait().expect("reads"), [2]);
    let left = store.entry_count(lists.id()).wait().expect("counts");
    assert_eq!(left, 1);
}

/// T12, T13: keys and namespaces expire on their own.
pub fn t12_t13_keys_and_namespaces_expire_on_their_own(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, Some(after_writes()));
    let keys = [
        timed.key("a"),
        timed.key("b"),
        timed.job.key_in("a", "one"),
        timed.job.key_in("a", "two"),
    ];
    for (number, key) in (0..).zip(&keys) {
        timed.at(number * 10).write(key, "x");
    }
    for (number, key) in (0..).zip(&keys) {
        assert!(timed.at(99 + number * 10).reads(key));
        assert!(!timed.at(100 + number * 10).reads(key));
    }
}

/// T14: what had expired when a snapshot was taken is not in it, even if the clock is set back.
pub fn t14_a_snapshot_holds_nothing_that_had_expired(backend: &dyn BackendUnderTest) {
    let ttl = Some(after_writes());
    let mut timed = Timed::new(backend, ttl);
    let (gone, live) = (timed.key("gone"), timed.key("live"));
    timed.write(&gone, "a");
    timed.at(50).write(&live, "b");
    timed.job.incremental();
    timed.at(120);
    let full = timed.job.full();
    assert_eq!(full.stats[0].entries_new, 3, "only what lives is written");
    let increment = timed.job.incremental();
    for snapshot in [full, increment] {
        let mut restored = Timed::restored(&snapshot, ttl, 1);
        assert_eq!(restored.stored(), [1, 1, 1]);
        restored.at(10);
        assert!(!restored.reads(&gone) && restored.reads(&live));
        restored.at(120);
    }
}

/// T15: a restore brings back values and their times as they were.
pub fn t15_a_restore_takes_later_times_back(backend: &dyn BackendUnderTest) {
    let ttl = Some(after_writes());
    let mut timed = Timed::new(backend, ttl);
    let (early, late) = (timed.key("early"), timed.key("late"));
    timed.at(50).write(&early, "a");
    timed.at(100).write(&late, "a");
    let snapshot = timed.job.incremental();
    timed.at(140).write(&early, "b");
    timed.write(&late, "b");
    let mut restored = Timed::restored(&snapshot, ttl, 1);
    restored.at(149);
    assert_eq!(restored.get(&early).as_deref(), Some("a"));
    assert!(!restored.at(180).reads(&early));
    assert_eq!(restored.get(&late).as_deref(), Some("a"));
}

/// T23: asking for an entry and looking for it agree at every moment.
pub fn t23_contains_agrees_with_get(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, Some(after_writes()));
    let key = timed.key("k");
    timed.map_put(&key, "a", "x");
    timed.at(40).map_put(&key, "b", "y");
    for ms in [0, 50, 99, 100, 101, 139, 140, 500] {
        timed.at(ms.max(40));
        for sub_key in ["a", "b"] {
            let found = timed.map_get(&key, sub_key);
            let is_listed = timed.map(&key).contains_key(sub_key.as_bytes());
            assert_eq!(found.is_some(), is_listed, "{sub_key} at {ms}");
        }
    }
}

/// T25: what has expired is absent, whatever a reader takes for absent; no time to live is 0.
pub fn t25_what_has_expired_is_absent_and_0_is_no_time(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    let clock = job.spec.clock.clone();
    let store = &mut *job.only().store;
    let options = StateOptions::new().with_ttl(after_writes());
    let counts = ValueState::<u64>::register_with(store, "counts", &options).expect("registers");
    counts.put(store, &key, &9).expect("puts");
    clock.set_ms(crate::job::NOON_MS + 100);
    assert_eq!(counts.get(store, &key).wait().expect("reads"), None);
    let refused = TimeToLive::after_write_ms(0).expect_err("it is no time");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}

/// A view shows what lives at the time of its reads.
pub fn t3_a_view_hides_what_has_expired(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, Some(after_writes()));
    let key = timed.key("k");
    timed.write(&key, "a");
    timed.at(50).append(&key, "b");
    let (value, list, map) = (timed.value, timed.list, timed.map);
    let view = timed.task(&key).store.view().expect("a view");
    timed.at(120).write(&key, "later");
    assert!(view.get(value, &key).wait().expect("reads").is_none());
    assert!(
        view.map_get(map, &key, b"a")
            .wait()
            .expect("reads")
            .is_none()
    );
    let mut batch = backend_core::EntryBatch::default();
    let scanned = view.scan(list, &key, &backend_core::SubKeyRange::ALL, &mut batch);
    scanned.wait().expect("scans");
    let elements: Vec<_> = batch.iter().map(|(_, element)| element.to_vec()).collect();
    assert_eq!(elements, [b"b"]);
    timed.at(10);
    let value = view.get(value, &key).wait().expect("reads");
    assert_eq!(value.as_deref(), Some(&b"a"[..]));
}

/// Batches agree with single calls.
pub fn t5_batches_remove_and_refresh_like_single_calls(backend: &dyn BackendUnderTest) {
    for refreshes in [false, true] {
        let ttl = after_writes();
        let ttl = if refreshes {
            ttl.refreshed_by_reads(0)
        } else {
            ttl
        };
        let mut timed = Timed::new(backend, Some(ttl));
        let keys: Vec<_> = (0..4).map(|n| timed.key(&format!("k{n}"))).collect();
        for (number, key) in (0..).zip(&keys[..3]) {
            timed.at(number * 40).put(key, "x");
        }
        timed.at(110);
        let state = timed.value;
        let mut values = backend_core::ValueBatch::new();
        let store = &mut timed.job.only().store;
        let read = store.get_many(state, &keys, &mut values);
        read.wait().expect("reads");
        let seen: Vec<_> = values.iter().map(|value| value.is_some()).collect();
        assert_eq!(seen, [false, true, true, false]);
        assert_eq!(timed.stored()[0], 2);
        timed.at(150);
        let mut seen = Vec::new();
        let store = &mut timed.job.only().store;
        let edited = store.try_update_many(state, &keys, &mut |_, old, _| {
            seen.push(old.is_some());
        });
        edited.expect("they are at hand").expect("applied");
        assert_eq!(seen, [false, refreshes, true, false]);
    }
}

//! Time to live: sweeps, and what changes when a state is registered with another one.

use std::collections::BTreeSet;

use backend_core::{ErrorKind, SnapshotMode, TimeToLive};

use crate::backend::BackendUnderTest;
use crate::timed::{TTL_MS, Timed, after_writes};

/// T16: a sweep removes all that has expired without any read, in all kinds.
pub fn t16_a_sweep_removes_all_that_has_expired(backend: &dyn BackendUnderTest) {
    for ttl in [after_writes(), after_writes().shown_until_removed()] {
        let mut timed = Timed::of(backend, Some(ttl), 2);
        for number in 0..500 {
            let key = timed.key(&format!("k{number}"));
            timed.write(&key, "a");
            timed.append(&key, "b");
        }
        let large = timed.key("large");
        for number in 0..10_000 {
            timed.map_put(&large, &format!("{number}"), "x");
        }
        timed.at(50);
        let live = timed.key("live");
        timed.write(&live, "a");
        timed.at(99).sweep();
        assert_eq!(timed.stored(), [501, 1_001, 10_501]);
        timed.at(TTL_MS).sweep();
        assert_eq!(timed.stored(), [1, 1, 1]);
        assert!(timed.reads(&live));
    }
}

/// T17, T18: sweeps beside snapshots, writes and removals take nothing that lives.
pub fn t17_t18_a_sweep_beside_everything_takes_nothing_that_lives(backend: &dyn BackendUnderTest) {
    let ttl = Some(after_writes());
    let mut timed = Timed::new(backend, ttl);
    let keys: Vec<_> = (0..3_000).map(|n| timed.key(&format!("k{n}"))).collect();
    for key in &keys {
        timed.put(key, "old");
    }
    timed.at(60);
    for key in keys.iter().step_by(3) {
        timed.put(key, "new");
    }
    let frozen = timed.job.freeze(SnapshotMode::Incremental);
    timed.at(TTL_MS);
    let state = timed.value;
    for (number, key) in keys.iter().enumerate() {
        if number % 100 == 0 {
            timed.job.only().store.maintain().wait().expect("it sweeps");
        }
        match number % 6 {
            0 => timed.task(key).clear(state, key),
            1 => timed.put(key, "later"),
            _ => {}
        }
    }
    let snapshot = frozen.write().expect("a snapshot is written");
    timed.sweep();
    assert_eq!(timed.stored()[0], 500 + 500);
    for (number, key) in keys.iter().enumerate() {
        let expected = match number % 6 {
            1 => Some("later"),
            3 => Some("new"),
            _ => None,
        };
        assert_eq!(timed.get(key).as_deref(), expected, "k{number}");
    }
    let mut restored = Timed::restored(&snapshot, ttl, 2);
    for (number, key) in keys.iter().enumerate() {
        let expected = (number % 3 == 0).then_some("new");
        assert_eq!(restored.get(key).as_deref(), expected, "k{number}");
    }
}

/// T22, X16: times hold at another parallelism, with the clock set back, and whatever the state is
/// registered with; nothing that had expired comes back.
pub fn x16_nothing_that_had_expired_comes_back(backend: &dyn BackendUnderTest) {
    let of_ms = |ms| TimeToLive::after_write_ms(ms).expect("above 0");
    let mut timed = Timed::of(backend, Some(after_writes()), 2);
    let keys: Vec<_> = (0..40).map(|n| timed.key(&format!("k{n}"))).collect();
    for key in &keys[..20] {
        timed.write(key, "a");
    }
    timed.job.incremental();
    timed.at(50);
    for key in &keys[20..] {
        timed.write(key, "b");
    }
    timed.at(110);
    let snapshot = timed.job.incremental();
    for ttl in [Some(of_ms(100)), Some(of_ms(1)), Some(of_ms(10_000)), None] {
        for (clock_ms, parallelism) in [(110, 2), (110, 4), (0, 1)] {
            timed.at(clock_ms);
            let mut restored = Timed::restored(&snapshot, ttl, parallelism);
            assert_eq!(restored.stored(), [20, 20, 20], "{ttl:?}");
            let seen: BTreeSet<_> = (0..40).filter(|n| restored.reads(&keys[*n])).collect();
            assert_eq!(seen, (20..40).collect(), "{ttl:?} at {clock_ms}");
            // A changed time to live holds from the next write on.
            let is_there = restored.at(149).reads(&keys[30]);
            assert!(is_there, "{ttl:?}");
            if ttl.is_some() {
                assert!(!restored.at(150).reads(&keys[31]), "{ttl:?}");
            }
        }
    }
}

/// T26: without a time to live entries are permanent, in every later snapshot, too.
pub fn t26_without_a_time_to_live_entries_are_permanent(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, Some(after_writes()));
    let (old, new) = (timed.key("old"), timed.key("new"));
    timed.write(&old, "a");
    timed.at(50);
    timed = timed.through(None);
    timed.at(5_000);
    assert!(timed.reads(&old));
    timed.write(&new, "b");
    let pending = timed.job.freeze(SnapshotMode::Incremental);
    let snapshot = pending.write().expect("a snapshot is written");
    timed.job.confirm(snapshot.id());
    timed.at(9_000);
    let later = timed.job.incremental();
    for snapshot in [snapshot, later] {
        let mut restored = Timed::restored(&snapshot, None, 2);
        assert!(restored.reads(&old) && restored.reads(&new));
        // And with one again they count as entries that never had one.
        let mut restored = Timed::restored(&snapshot, Some(after_writes()), 1);
        assert!(restored.at(50_000).reads(&old));
        restored.at(9_000);
    }
}

/// T27: entries without a time to live get one when they are written, or at once if so wished.
pub fn t27_a_time_to_live_begins_with_the_next_write_or_at_once(backend: &dyn BackendUnderTest) {
    let mut timed = Timed::new(backend, None);
    let (idle, written) = (timed.key("idle"), timed.key("written"));
    timed.write(&idle, "a");
    timed.write(&written, "a");
    let before = timed.job.incremental();
    timed.at(1_000);
    let mut later = Timed::restored(&before, Some(after_writes()), 1);
    later.job.incremental();
    later.write(&written, "b");
    later.at(1_100);
    assert!(later.reads(&idle));
    assert_eq!(later.get(&written), None);
    assert_eq!(
        later.list(&written),
        ["a"],
        "the old element was not written"
    );
    assert_eq!(later.map(&written).len(), 1);

    timed.at(2_000);
    let at_once = Some(after_writes().covering_old_entries());
    let mut at_once_job = Timed::restored(&before, at_once, 1);
    at_once_job.at(2_050);
    // The times that they were given are in the next snapshot.
    at_once_job = at_once_job.through(at_once);
    assert!(at_once_job.at(2_099).reads(&idle));
    assert!(!at_once_job.at(2_100).reads(&idle));
}

/// T28: a longer time to live is taken, and holds for what is written from then on.
pub fn t28_a_longer_time_to_live_is_taken(backend: &dyn BackendUnderTest) {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    let days = |days| Some(TimeToLive::after_write_ms(days * DAY_MS).expect("above 0"));
    let mut timed = Timed::new(backend, days(1));
    let (old, new) = (timed.key("old"), timed.key("new"));
    timed.write(&old, "a");
    timed.at(DAY_MS / 2);
    timed = timed.through(days(2));
    timed.write(&new, "b");
    assert!(timed.at(DAY_MS - 1).reads(&old));
    assert!(!timed.at(DAY_MS).reads(&old));
    assert!(timed.at(DAY_MS / 2 + 2 * DAY_MS - 1).reads(&new));
    assert!(!timed.at(DAY_MS / 2 + 2 * DAY_MS).reads(&new));
}

/// A time to live is switched on or off after a restore, not while the state is in use.
pub fn t26_t27_a_switch_in_use_is_refused(backend: &dyn BackendUnderTest) {
    for (first, second) in [(None, Some(after_writes())), (Some(after_writes()), None)] {
        let mut timed = Timed::new(backend, first);
        let key = timed.key("k");
        timed.write(&key, "a");
        let store = &mut timed.job.only().store;
        let refused = store.register(&Timed::value_descriptor(second));
        assert_eq!(refused.expect_err("in use").kind(), ErrorKind::Mismatch);
        assert!(timed.at(99).reads(&key));
        // Another length is no switch.
        if first.is_some() {
            let longer = TimeToLive::after_write_ms(500).expect("above 0");
            let store = &mut timed.job.only().store;
            let id = store.register(&Timed::value_descriptor(Some(longer)));
            assert_eq!(id.expect("it is taken"), timed.value);
            timed.put(&key, "b");
            assert!(timed.at(598).get(&key).is_some());
            assert!(timed.at(599).get(&key).is_none());
        }
    }
}

//! Timers: a set that is ordered by time.

use std::collections::BTreeSet;

use backend_core::{
    DueTimer, ErrorKind, HashRange, KeyedStore, SnapshotMode, StateDescriptor, StateKey,
    SubKeyRange, TimerBatch, TimerQueue, owner_of,
};

use crate::backend::BackendUnderTest;
use crate::job::{Job, Spec};
use crate::snapshot::Snapshot;
use crate::task::BYTES;

/// The keys of the suite are bytes, and so are the namespaces.
type Alarms = TimerQueue<Vec<u8>, Vec<u8>>;

/// Time, key, namespace.
type Plain = (i64, Vec<u8>, Vec<u8>);

/// A job and the timers of its tasks.
struct Timers<'b> {
    job: Job<'b>,
    alarms: Vec<Alarms>,
}

impl<'b> Timers<'b> {
    fn new(backend: &'b dyn BackendUnderTest, parallelism: u32) -> Self {
        Self::of(Job::of(Spec::new(backend), parallelism))
    }

    fn of(mut job: Job<'b>) -> Self {
        let register = |store: &mut dyn KeyedStore| {
            Alarms::register(store, "alarms").expect("the timers register")
        };
        let alarms = job.tasks.iter_mut().map(|task| register(&mut *task.store));
        let alarms = alarms.collect();
        Self { job, alarms }
    }

    fn restored(snapshot: &Snapshot<'b>, parallelism: u32) -> Self {
        Self::of(snapshot.restore(parallelism))
    }

    fn key(&self, key: &str, namespace: &str) -> StateKey {
        self.job.key_in(key, namespace)
    }

    fn owner(&self, key: &StateKey) -> usize {
        owner_of(key.hash(), self.alarms.len() as u32) as usize
    }

    /// Adds a timer, and says whether the head has changed.
    fn add(&mut self, key: &StateKey, time: i64) -> bool {
        let task = self.owner(key);
        let store = &mut *self.job.tasks[task].store;
        let added = self.alarms[task].add(store, key, time);
        let added = added.expect("a timer is added");
        self.job.tasks[task].settle(Ok(added.pressure));
        added.head_changed
    }

    fn remove(&mut self, key: &StateKey, time: i64) -> bool {
        let task = self.owner(key);
        let store = &mut *self.job.tasks[task].store;
        let removed = self.alarms[task].remove(store, key, time).wait();
        removed.expect("a removal answers")
    }

    /// Pops what is due in one task, by small batches.
    fn pop(&mut self, task: usize, until: i64) -> Vec<Plain> {
        let store = &mut *self.job.tasks[task].store;
        let mut popped = Vec::new();
        loop {
            let due = self.alarms[task].pop_until(store, until, 3).wait();
            let due = due.expect("timers are popped");
            if due.is_empty() {
                return popped;
            }
            popped.extend(due.into_iter().map(plain));
        }
    }

    fn next(&mut self, task: usize) -> Option<i64> {
        let store = &mut *self.job.tasks[task].store;
        let next = self.alarms[task].next_time(store).wait();
        next.expect("the next time is known")
    }

    fn in_range(&mut self, task: usize, range: HashRange) -> Vec<Plain> {
        let store = &mut *self.job.tasks[task].store;
        let mut seen = Vec::new();
        let visit = |timer| {
            seen.push(plain(timer));
            Ok(())
        };
        let walk = self.alarms[task].for_each_in(store, range, visit);
        walk.wait().expect("timers are visited");
        seen
    }

    /// All timers; each task's are in order, its own, and as many as it says.
    fn all(&mut self) -> BTreeSet<Plain> {
        let mut all = BTreeSet::new();
        for task in 0..self.alarms.len() {
            let timers = self.in_range(task, HashRange::ALL);
            assert!(timers.is_sorted_by(|a, b| order(a) < order(b)));
            let store = &mut *self.job.tasks[task].store;
            let count = self.alarms[task].count(store).wait().expect("counts");
            assert_eq!(count, timers.len() as u64);
            for timer in timers {
                let key = self.job.key(&timer.1);
                assert_eq!(self.owner(&key), task, "{timer:?} is in its task");
                assert!(all.insert(timer), "a timer is in one task");
            }
        }
        all
    }
}

fn plain(timer: DueTimer<Vec<u8>, Vec<u8>>) -> Plain {
    (timer.time, timer.key, timer.namespace)
}

/// The order that is promised.
fn order((time, key, namespace): &Plain) -> (i64, usize, &[u8], &[u8]) {
    (*time, key.len(), key, namespace)
}

fn numbered(timers: &Timers<'_>, number: u32) -> (StateKey, Plain) {
    let (key, namespace) = (format!("k{number}"), ["", "ns"][number as usize % 2]);
    let time = i64::from(number * 7 % 23) - 11;
    let plain = (time, key.clone().into(), namespace.into());
    (timers.key(&key, namespace), plain)
}

/// Q1: a timer that is there is not added again; the head is told if and only if it changes.
pub fn q1_a_timer_is_added_once_and_the_head_is_told(backend: &dyn BackendUnderTest) {
    let mut timers = Timers::new(backend, 1);
    let (a, b) = (timers.key("a", ""), timers.key("b", "ns"));
    assert_eq!(timers.next(0), None);
    assert!(timers.add(&a, 10), "the first one");
    assert!(!timers.add(&a, 10), "it is there");
    assert!(!timers.add(&b, 10), "at the same time");
    assert!(!timers.add(&a, 20), "later");
    assert!(timers.add(&b, -5), "earlier");
    assert_eq!(timers.next(0), Some(-5));
    assert_eq!(timers.all().len(), 4);
    // One of a key in two namespaces is two.
    assert!(!timers.add(&timers.key("b", ""), 10));
    assert_eq!(timers.all().len(), 5);
}

/// Q2: the order of adding does not matter, and a range of hashes has exactly its own.
pub fn q2_a_range_has_exactly_its_own_timers(backend: &dyn BackendUnderTest) {
    let mut forwards = Timers::new(backend, 1);
    let mut backwards = Timers::new(backend, 1);
    for number in 0..200 {
        let (key, timer) = numbered(&forwards, number);
        forwards.add(&key, timer.0);
        let (key, timer) = numbered(&backwards, 199 - number);
        backwards.add(&key, timer.0);
    }
    let all = forwards.in_range(0, HashRange::ALL);
    assert_eq!(backwards.in_range(0, HashRange::ALL), all);
    for task in 0..5 {
        let range = HashRange::of_task(task, 5);
        let is_own = |timer: &&Plain| range.contains(forwards.job.key(&timer.1).hash());
        let own: Vec<_> = all.iter().filter(is_own).cloned().collect();
        assert_eq!(forwards.in_range(0, range), own);
    }
    assert_eq!(backwards.pop(0, i64::MAX), all);
}

/// Q3: pops follow the order to its end; a removal says what it met, and shows the next one.
pub fn q3_pops_follow_the_order_and_removals_answer(backend: &dyn BackendUnderTest) {
    let mut timers = Timers::new(backend, 1);
    let mut expected = Vec::new();
    for number in 0..50 {
        let (key, timer) = numbered(&timers, number);
        timers.add(&key, timer.0);
        expected.push((key, timer));
    }
    expected.sort_by(|(_, a), (_, b)| order(a).cmp(&order(b)));
    let (head, (time, ..)) = expected.remove(0);
    assert!(!timers.remove(&head, time + 1_000), "there is none");
    assert!(timers.remove(&head, time));
    assert!(!timers.remove(&head, time), "it is gone");
    assert_eq!(timers.next(0), Some(expected[0].1.0));
    let expected: Vec<Plain> = expected.into_iter().map(|(_, timer)| timer).collect();
    let (due, later): (Vec<_>, Vec<_>) = expected.into_iter().partition(|timer| timer.0 <= 0);
    assert_eq!(timers.pop(0, 0), due);
    assert_eq!(timers.pop(0, 0), []);
    assert_eq!(timers.next(0), Some(later[0].0));
    assert_eq!(timers.in_range(0, HashRange::ALL), later);
    assert_eq!(timers.pop(0, i64::MAX), later);
    assert_eq!(timers.next(0), None);
    // The ends of time are times.
    for time in [i64::MAX, i64::MIN, 0, -1] {
        timers.add(&head, time);
    }
    let popped: Vec<_> = timers
        .pop(0, i64::MAX)
        .iter()
        .map(|timer| timer.0)
        .collect();
    assert_eq!(popped, [i64::MIN, -1, 0, i64::MAX]);
}

/// S1, S2 for timers: a snapshot holds those of its trigger, whatever is popped or added since.
pub fn s1_s2_a_snapshot_holds_the_timers_of_its_moment(backend: &dyn BackendUnderTest) {
    let mut timers = Timers::new(backend, 2);
    let mut moments = Vec::new();
    for round in 0..6_u32 {
        for number in round * 40..round * 40 + 60 {
            let (key, timer) = numbered(&timers, number);
            timers.add(&key, timer.0 + i64::from(round) * 5);
        }
        let mode = match round {
            2 => SnapshotMode::Savepoint,
            4 => SnapshotMode::Full,
            _ => SnapshotMode::Incremental,
        };
        let frozen = timers.job.freeze(mode);
        let then = timers.all();
        for task in 0..2 {
            timers.pop(task, i64::from(round) * 4 - 8);
        }
        let (key, timer) = numbered(&timers, round * 40 + 20);
        timers.remove(&key, timer.0 + i64::from(round) * 5);
        let snapshot = frozen.write().expect("a snapshot is written");
        timers.job.confirm(snapshot.id());
        moments.push((snapshot, then));
    }
    for (number, (snapshot, then)) in moments.iter().enumerate() {
        for parallelism in [2, 1] {
            let mut restored = Timers::restored(snapshot, parallelism);
            assert_eq!(&restored.all(), then, "snapshot {number}");
        }
    }
}

/// R1, R2 for timers: each is in the task that owns its key, at any parallelism.
pub fn r1_timers_go_where_their_keys_go(backend: &dyn BackendUnderTest) {
    let mut timers = Timers::new(backend, 1);
    for number in 0..300 {
        let (key, timer) = numbered(&timers, number);
        timers.add(&key, timer.0);
    }
    let mut expected = timers.all();
    for (round, parallelism) in (0..).zip([2, 3, 15, 77, 4, 1_u32]) {
        let snapshot = timers.job.incremental();
        timers = Timers::restored(&snapshot, parallelism);
        assert_eq!(timers.all(), expected, "at {parallelism}");
        for task in 0..parallelism as usize {
            for timer in timers.pop(task, i64::from(round) - 11) {
                assert!(expected.remove(&timer), "{timer:?} is popped once");
            }
        }
        let (key, timer) = numbered(&timers, 1_000 + round);
        timers.add(&key, timer.0);
        expected.insert(timer);
    }
    assert_eq!(timers.all(), expected);
}

/// X6 for timers: a freeze copies none of them.
pub fn x6_a_freeze_copies_no_timers(backend: &dyn BackendUnderTest) {
    let mut timers = Timers::new(backend, 1);
    for number in 0..2_000 {
        let (key, timer) = numbered(&timers, number);
        timers.add(&key, timer.0 + i64::from(number));
    }
    let before = timers.job.memory_bytes();
    let frozen = timers.job.freeze(SnapshotMode::Incremental);
    let after = timers.job.memory_bytes();
    assert!(
        after - before < before / 10,
        "from {before} to {after} bytes"
    );
    frozen.write().expect("a snapshot is written");
}

/// Calls for another kind, or another task's key, are refused, in both directions.
pub fn contract_timers_are_no_keyed_entries(backend: &dyn BackendUnderTest) {
    let mut timers = Timers::new(backend, 2);
    let key = timers.key("k", "");
    let own = timers.owner(&key);
    let (alarms, values) = (timers.alarms[own], timers.job.tasks[own].value);
    let other = &mut *timers.job.tasks[1 - own].store;
    let refused = alarms.add(other, &key, 1).expect_err("another task's key");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let store = &mut *timers.job.tasks[own].store;
    let mut batch = TimerBatch::default();
    let mut entries = backend_core::EntryBatch::default();
    let refusals = [
        store.timer_add(values, &key, 1).map(drop),
        store.timer_remove(values, &key, 1).wait().map(drop),
        store.timer_next(values).wait().map(drop),
        store.timers_pop(values, 1, &mut batch).wait(),
        store
            .timers_scan(values, HashRange::ALL, None, &mut batch)
            .wait(),
        store.get(alarms.id(), &key).wait().map(drop),
        store.put(alarms.id(), &key, b"x").map(drop),
        store.clear(alarms.id(), &key).map(drop),
        store.list_append(alarms.id(), &key, b"x").map(drop),
        store.map_put(alarms.id(), &key, b"x", b"x").map(drop),
        store
            .scan(alarms.id(), &key, &SubKeyRange::ALL, &mut entries)
            .wait(),
        store.keys(alarms.id(), None).map(drop),
    ];
    for (number, refusal) in refusals.into_iter().enumerate() {
        let kind = refusal.expect_err("another kind").kind();
        assert_eq!(kind, ErrorKind::Mismatch, "call {number}");
    }
    let bytes = || backend_core::CodecId::new(BYTES);
    let same_name = StateDescriptor::value("alarms", bytes()).with_namespace(bytes());
    let refused = store.register(&same_name).expect_err("the name is taken");
    assert_eq!(refused.kind(), ErrorKind::Mismatch);
    assert_eq!(store.entry_count(alarms.id()).wait().expect("counts"), 0);
}

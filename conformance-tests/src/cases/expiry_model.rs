//! Random operations on states with a time to live, under a clock that moves, against a model.

use std::collections::BTreeMap;

use backend_core::{SnapshotMode, StateKey, TimeToLive};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy};
use proptest::prop_oneof;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::backend::BackendUnderTest;
use crate::cases::model::{CASES, CASES_VARIABLE, SEED_VARIABLE, number_from};
use crate::snapshot::Snapshot;
use crate::timed::{TTL_MS, Timed};

const OPERATIONS_MAX: usize = 80;

const KEYS: u8 = 6;

#[derive(Clone, Debug)]
enum Operation {
    Put(u8),
    Append(u8),
    MapPut(u8, u8),
    Clear(u8),
    /// Compares one key by reads, which remove what has expired.
    Read(u8),
    Advance(u64),
    Sweep,
    Snapshot(SnapshotMode),
    /// Goes back to the last snapshot, under another time to live, or none.
    Restore {
        parallelism: u32,
        ttl_ms: Option<u64>,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = || 0..KEYS;
    let mode = prop_oneof![
        4 => Just(SnapshotMode::Incremental),
        1 => Just(SnapshotMode::Full),
        1 => Just(SnapshotMode::Savepoint),
    ];
    let ttl_ms = prop_oneof![
        3 => Just(Some(TTL_MS)),
        1 => Just(Some(TTL_MS / 4)),
        1 => Just(Some(TTL_MS * 3)),
        1 => Just(None),
    ];
    prop_oneof![
        5 => key().prop_map(Operation::Put),
        5 => key().prop_map(Operation::Append),
        5 => (key(), 0..3u8).prop_map(|(k, s)| Operation::MapPut(k, s)),
        1 => key().prop_map(Operation::Clear),
        4 => key().prop_map(Operation::Read),
        6 => (0..TTL_MS).prop_map(Operation::Advance),
        2 => Just(Operation::Sweep),
        4 => mode.prop_map(Operation::Snapshot),
        2 => (1..4u32, ttl_ms)
            .prop_map(|(parallelism, ttl_ms)| Operation::Restore { parallelism, ttl_ms }),
    ]
}

/// A text and the time at which it expires.
type Aging = (String, u64);

/// What a job holds, with what has expired.
#[derive(Clone, Debug, Default)]
struct Model {
    values: BTreeMap<u8, Aging>,
    lists: BTreeMap<u8, Vec<Aging>>,
    maps: BTreeMap<u8, BTreeMap<u8, Aging>>,
}

impl Model {
    /// Every time that it holds.
    fn times(&mut self) -> impl Iterator<Item = &mut u64> {
        let values = self.values.values_mut();
        let elements = self.lists.values_mut().flatten();
        let entries = self.maps.values_mut().flat_map(BTreeMap::values_mut);
        values.chain(elements).chain(entries).map(|(_, ms)| ms)
    }

    fn drop_expired(&mut self, now_ms: u64) {
        self.values.retain(|_, (_, ms)| *ms > now_ms);
        for list in self.lists.values_mut() {
            list.retain(|(_, ms)| *ms > now_ms);
        }
        for map in self.maps.values_mut() {
            map.retain(|_, (_, ms)| *ms > now_ms);
        }
    }

    fn counts(&self) -> [u64; 3] {
        let lists = self.lists.values().map(|list| list.len() as u64);
        let maps = self.maps.values().map(|map| map.len() as u64);
        [self.values.len() as u64, lists.sum(), maps.sum()]
    }
}

struct World<'b> {
    timed: Timed<'b>,
    model: Model,
    now_ms: u64,
    ttl_ms: Option<u64>,
    written: u64,
    last: Option<(Snapshot<'b>, Model, u64, Option<u64>)>,
}

impl<'b> World<'b> {
    fn new(backend: &'b dyn BackendUnderTest) -> Self {
        let ttl_ms = Some(TTL_MS);
        Self {
            timed: Timed::of(backend, time_to_live(ttl_ms), 2),
            model: Model::default(),
            now_ms: 0,
            ttl_ms,
            written: 0,
            last: None,
        }
    }

    fn key(&self, key: u8) -> StateKey {
        self.timed.key(&format!("k{key}"))
    }

    /// A text that was not written before, and when it expires.
    fn next(&mut self) -> Aging {
        self.written += 1;
        let expires_ms = self.ttl_ms.map_or(u64::MAX, |ttl_ms| self.now_ms + ttl_ms);
        (self.written.to_string(), expires_ms)
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Put(k) => {
                let (key, next) = (self.key(*k), self.next());
                self.timed.put(&key, &next.0);
                self.model.values.insert(*k, next);
            }
            Operation::Append(k) => {
                let (key, next) = (self.key(*k), self.next());
                self.timed.append(&key, &next.0);
                self.model.lists.entry(*k).or_default().push(next);
            }
            Operation::MapPut(k, sub_key) => {
                let (key, next) = (self.key(*k), self.next());
                self.timed.map_put(&key, &sub_key.to_string(), &next.0);
                self.model
                    .maps
                    .entry(*k)
                    .or_default()
                    .insert(*sub_key, next);
            }
            Operation::Clear(k) => {
                let key = self.key(*k);
                for state in [self.timed.value, self.timed.list, self.timed.map] {
                    self.timed.task(&key).clear(state, &key);
                }
                self.model.values.remove(k);
                self.model.lists.remove(k);
                self.model.maps.remove(k);
            }
            Operation::Read(k) => self.read(*k),
            Operation::Advance(ms) => {
                self.now_ms += ms;
                self.timed.at(self.now_ms);
            }
            Operation::Sweep => self.sweep(),
            Operation::Snapshot(mode) => {
                let snapshot = self.timed.job.snapshot(*mode);
                self.last = Some((snapshot, self.model.clone(), self.now_ms, self.ttl_ms));
            }
            Operation::Restore {
                parallelism,
                ttl_ms,
            } => self.restore(*parallelism, *ttl_ms),
        }
    }

    fn read(&mut self, k: u8) {
        let (key, now_ms) = (self.key(k), self.now_ms);
        let mut live = self.model.clone();
        live.drop_expired(now_ms);
        let value = live.values.get(&k).map(|(text, _)| text.clone());
        assert_eq!(self.timed.get(&key), value);
        let list = live.lists.get(&k).into_iter().flatten();
        let list: Vec<_> = list.map(|(text, _)| text.clone()).collect();
        assert_eq!(self.timed.list(&key), list);
        let map = live.maps.get(&k).into_iter().flatten();
        let map: Vec<_> = map
            .map(|(sub, (text, _))| (sub.to_string(), text))
            .collect();
        let found = self.timed.map(&key);
        let found: Vec<_> = found.iter().collect();
        assert_eq!(found.len(), map.len());
        for ((sub_key, value), (sub, text)) in found.into_iter().zip(map) {
            assert_eq!(
                (&sub_key[..], &value[..]),
                (sub.as_bytes(), text.as_bytes())
            );
        }
    }

    fn sweep(&mut self) {
        self.timed.sweep();
        self.model.drop_expired(self.now_ms);
        assert_eq!(self.timed.stored(), self.model.counts(), "after a sweep");
    }

    fn restore(&mut self, parallelism: u32, ttl_ms: Option<u64>) {
        let Some((snapshot, model, taken_ms, stored_ttl_ms)) = &self.last else {
            return;
        };
        self.timed = Timed::restored(snapshot, time_to_live(ttl_ms), parallelism);
        self.model = model.clone();
        self.model.drop_expired(*taken_ms);
        if stored_ttl_ms.is_some() && ttl_ms.is_none() {
            self.model.times().for_each(|ms| *ms = u64::MAX);
        }
        self.ttl_ms = ttl_ms;
        self.now_ms = (*taken_ms).max(self.now_ms);
        self.timed.at(self.now_ms);
        assert_eq!(self.timed.stored(), self.model.counts(), "restored");
    }

    fn finish(mut self) {
        let snapshot = self.timed.job.incremental();
        self.last = Some((snapshot, self.model.clone(), self.now_ms, self.ttl_ms));
        self.restore(3, self.ttl_ms);
        for k in 0..KEYS {
            self.read(k);
        }
        self.sweep();
    }
}

fn time_to_live(ttl_ms: Option<u64>) -> Option<TimeToLive> {
    ttl_ms.map(|ms| TimeToLive::after_write_ms(ms).expect("above 0"))
}

/// X2 for states with a time to live: after any sequence of writes, reads, sweeps, snapshots and
/// restores under other times to live, what is seen and what is stored is that of a model.
pub fn x2_any_sequence_with_a_moving_clock_agrees_with_a_model(backend: &dyn BackendUnderTest) {
    let seed = number_from(SEED_VARIABLE).unwrap_or(0x5eed);
    let cases = number_from(CASES_VARIABLE).map_or(CASES, |cases| {
        u32::try_from(cases).expect("a number of cases fits 32 bits")
    });
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let sequences = vec(operation(), 1..=OPERATIONS_MAX);
    let result = TestRunner::new(config).run(&sequences, |operations| {
        let mut world = World::new(backend);
        for operation in &operations {
            world.apply(operation);
        }
        world.finish();
        Ok(())
    });
    if let Err(failure) = result {
        panic!("with {SEED_VARIABLE}={seed}: {failure}");
    }
}

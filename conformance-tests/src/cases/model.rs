//! Random operations against a model.

use backend_core::{SnapshotMode, StateKey};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy};
use proptest::prop_oneof;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::backend::BackendUnderTest;
use crate::contents::{Contents, name_of};
use crate::job::{Job, Spec};
use crate::snapshot::{Frozen, Snapshot};

/// The number of random sequences, if the environment does not say another.
pub(crate) const CASES: u32 = 200;

/// The variable that says how many random sequences are run.
pub const CASES_VARIABLE: &str = "STATELINE_MODEL_CASES";

/// The variable that says which ones: a seed that a failure printed.
pub const SEED_VARIABLE: &str = "STATELINE_MODEL_SEED";

const OPERATIONS_MAX: usize = 60;

/// The most snapshots that are pending at a time.
const PENDING_MAX: usize = 4;

/// A key of the model: a few, so that operations meet.
#[derive(Clone, Copy, Debug)]
struct KeyIndex(u8);

impl KeyIndex {
    fn key(self, spec: &Spec<'_>) -> StateKey {
        let namespace = [&b""[..], b"ns"][usize::from(self.0 % 2)];
        spec.key_in([self.0 / 2], namespace)
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Put(KeyIndex, Vec<u8>),
    Update(KeyIndex, Vec<u8>),
    Clear(KeyIndex),
    Append(KeyIndex, Vec<u8>),
    Replace(KeyIndex, Vec<Vec<u8>>),
    ClearList(KeyIndex),
    MapPut(KeyIndex, u8, Vec<u8>),
    MapRemove(KeyIndex, u8),
    ClearMap(KeyIndex),
    /// Compares everything by enumeration.
    Enumerate,
    /// Freezes, and leaves the snapshot pending.
    Freeze(SnapshotMode),
    /// Writes one of the pending snapshots, and confirms it or not.
    Write {
        index: usize,
        confirms: bool,
    },
    /// Writes one of the pending snapshots to a medium that fails.
    Fail {
        index: usize,
    },
    /// Drops one of the pending snapshots.
    Abort {
        index: usize,
    },
    /// Drops everything and starts again from the last confirmed snapshot.
    Restore {
        parallelism: u32,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = || (0..12u8).prop_map(KeyIndex);
    let value = || {
        prop_oneof![
            4 => vec(0..4u8, 0..4),
            1 => (0..9u64).prop_map(|seed| crate::contents::noise(seed, 700)),
        ]
    };
    let mode = prop_oneof![
        4 => Just(SnapshotMode::Incremental),
        1 => Just(SnapshotMode::Full),
        1 => Just(SnapshotMode::Savepoint),
    ];
    let index = || 0..PENDING_MAX;
    prop_oneof![
        6 => (key(), value()).prop_map(|(k, v)| Operation::Put(k, v)),
        3 => (key(), value()).prop_map(|(k, v)| Operation::Update(k, v)),
        3 => key().prop_map(Operation::Clear),
        6 => (key(), value()).prop_map(|(k, v)| Operation::Append(k, v)),
        2 => (key(), vec(value(), 0..4)).prop_map(|(k, v)| Operation::Replace(k, v)),
        3 => key().prop_map(Operation::ClearList),
        6 => (key(), 0..5u8, value()).prop_map(|(k, s, v)| Operation::MapPut(k, s, v)),
        4 => (key(), 0..5u8).prop_map(|(k, s)| Operation::MapRemove(k, s)),
        2 => key().prop_map(Operation::ClearMap),
        1 => Just(Operation::Enumerate),
        5 => mode.prop_map(Operation::Freeze),
        6 => (index(), proptest::bool::weighted(0.8))
            .prop_map(|(index, confirms)| Operation::Write { index, confirms }),
        2 => index().prop_map(|index| Operation::Fail { index }),
        1 => index().prop_map(|index| Operation::Abort { index }),
        2 => (1..5u32).prop_map(|parallelism| Operation::Restore { parallelism }),
    ]
}

/// The job and what it must hold.
struct World<'b> {
    job: Job<'b>,
    model: Contents,
    pending: Vec<(Frozen<'b>, Contents)>,
    confirmed: Option<(Snapshot<'b>, Contents)>,
}

impl<'b> World<'b> {
    fn new(backend: &'b dyn BackendUnderTest) -> Self {
        Self {
            job: Job::of(Spec::new(backend), 2),
            model: Contents::default(),
            pending: Vec::new(),
            confirmed: None,
        }
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Enumerate => assert_eq!(self.job.contents(), self.model),
            Operation::Freeze(mode) => {
                if self.pending.len() < PENDING_MAX {
                    let frozen = self.job.freeze(*mode);
                    self.pending.push((frozen, self.model.clone()));
                }
            }
            Operation::Write { index, confirms } => self.write(*index, *confirms),
            Operation::Fail { index } => self.fail(*index),
            Operation::Abort { index } => {
                if let Some((frozen, _)) = self.take_pending(*index) {
                    self.job.abort(frozen.id());
                }
            }
            Operation::Restore { parallelism } => self.restore(*parallelism),
            other => self.change(other),
        }
    }

    /// Does one of the writes to a key, and reads it back.
    fn change(&mut self, operation: &Operation) {
        let Self { job, model, .. } = self;
        let spec = job.spec.clone();
        let key = match operation {
            Operation::Put(index, value) => {
                let key = index.key(&spec);
                job.put(&key, value);
                model.put(&key, value);
                key
            }
            Operation::Update(index, value) => {
                let key = index.key(&spec);
                let old = model.values.get(&name_of(&key)).cloned();
                job.update(&key, |found, edit| {
                    assert_eq!(found, old.as_deref());
                    if found == Some(value) {
                        edit.clear();
                    } else {
                        edit.put(value);
                    }
                });
                if old.as_ref() == Some(value) {
                    model.values.remove(&name_of(&key));
                } else {
                    model.put(&key, value);
                }
                key
            }
            Operation::Clear(index) => {
                let key = index.key(&spec);
                job.clear_value(&key);
                model.values.remove(&name_of(&key));
                key
            }
            Operation::MapPut(index, sub_key, value) => {
                let key = index.key(&spec);
                job.map_put(&key, [*sub_key], value);
                model.map_put(&key, &[*sub_key], value);
                key
            }
            Operation::MapRemove(index, sub_key) => {
                let key = index.key(&spec);
                job.map_remove(&key, [*sub_key]);
                model.map_remove(&key, &[*sub_key]);
                key
            }
            Operation::ClearMap(index) => {
                let key = index.key(&spec);
                job.clear_map(&key);
                model.maps.remove(&name_of(&key));
                key
            }
            other => self.change_list(other),
        };
        self.read_back(&key);
    }

    fn change_list(&mut self, operation: &Operation) -> StateKey {
        let Self { job, model, .. } = self;
        let spec = job.spec.clone();
        match operation {
            Operation::Append(index, element) => {
                let key = index.key(&spec);
                job.append(&key, element);
                model.append(&key, element);
                key
            }
            Operation::Replace(index, elements) => {
                let key = index.key(&spec);
                job.replace(&key, elements);
                model.replace(&key, elements);
                key
            }
            Operation::ClearList(index) => {
                let key = index.key(&spec);
                job.clear_list(&key);
                model.lists.remove(&name_of(&key));
                key
            }
            other => unreachable!("{other:?} is no write to a list"),
        }
    }

    /// Compares one key by point reads.
    fn read_back(&mut self, key: &StateKey) {
        let name = name_of(key);
        let model = &self.model;
        assert_eq!(self.job.get(key).as_ref(), model.values.get(&name));
        let list = model.lists.get(&name).cloned().unwrap_or_default();
        assert_eq!(self.job.list(key), list);
        let map = model.maps.get(&name).cloned().unwrap_or_default();
        assert_eq!(self.job.map(key), map);
        for sub_key in 0..5u8 {
            let found = self.job.map_get(key, [sub_key]);
            assert_eq!(found.as_ref(), map.get(&[sub_key][..]));
        }
    }

    fn take_pending(&mut self, index: usize) -> Option<(Frozen<'b>, Contents)> {
        (index < self.pending.len()).then(|| self.pending.remove(index))
    }

    fn write(&mut self, index: usize, confirms: bool) {
        let Some((frozen, contents)) = self.take_pending(index) else {
            return;
        };
        let id = frozen.id();
        // A coordinator drops what is older than a confirmed snapshot.
        let is_newest = self.confirmed.as_ref().is_none_or(|(s, _)| s.id() < id);
        let snapshot = frozen.write().expect("a snapshot is written");
        if confirms && is_newest {
            self.job.confirm(id);
            self.confirmed = Some((snapshot, contents));
        } else {
            assert_eq!(
                snapshot.contents(1),
                contents,
                "a snapshot that is not confirmed"
            );
            self.job.abort(id);
        }
    }

    fn fail(&mut self, index: usize) {
        let Some((frozen, contents)) = self.take_pending(index) else {
            return;
        };
        let id = frozen.id();
        self.job.spec.medium.fail(id);
        // It may have nothing to put.
        if let Ok(snapshot) = frozen.write() {
            assert_eq!(snapshot.contents(1), contents, "a snapshot without a put");
        }
        self.job.abort(id);
    }

    fn restore(&mut self, parallelism: u32) {
        self.pending.clear();
        if let Some((snapshot, contents)) = &self.confirmed {
            self.job = snapshot.restore(parallelism);
            self.model = contents.clone();
        } else {
            self.job = Job::of(self.job.spec.clone(), parallelism);
            self.model = Contents::default();
        }
        assert_eq!(self.job.contents(), self.model, "restored at {parallelism}");
    }

    fn finish(mut self) {
        assert_eq!(self.job.contents(), self.model, "in the end");
        let last = self.job.incremental();
        assert_eq!(last.contents(3), self.model, "restored in the end");
    }
}

pub(crate) fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is no number: {text:?}")))
}

/// X2: after any sequence of writes, snapshots, failures, aborts, restores and rescales the state
/// is that of a model.
///
/// `STATELINE_MODEL_CASES` says how many sequences are run, `STATELINE_MODEL_SEED` which ones; a
/// failure prints the seed and the shortest sequence that was found to fail.
pub fn x2_any_sequence_agrees_with_a_model(backend: &dyn BackendUnderTest) {
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

//! Long chains of increments, merged in the background while the job goes on.

use std::collections::BTreeMap;

use backend_core::clock::SystemEnvironment;
use backend_core::segment::{SegmentOptions, Tier};
use backend_core::storage::Storage;
use backend_core::{
    Coordinator, Generation, JobId, KeyCodec, KeyedStore, ListState, MapState, OperatorId,
    Snapshot, SnapshotMode, SnapshotStore, StateBackend, TaskScope, ValueState, owner_of,
};
use backend_memory::{MemoryBackend, MemoryOptions};
use bytes::Bytes;
use futures::executor::block_on;

/// What the job holds: values, lists and maps by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    values: BTreeMap<u32, u64>,
    lists: BTreeMap<u32, Vec<u64>>,
    maps: BTreeMap<u32, BTreeMap<u32, u64>>,
}

/// Numbers that are the same at every run: `SplitMix64`.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((((z ^ (z >> 31)) >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// The first keys in which two maps differ, with what each holds.
fn differing<V: PartialEq + std::fmt::Debug>(
    found: &BTreeMap<u32, V>,
    expected: &BTreeMap<u32, V>,
) -> Vec<String> {
    let keys: std::collections::BTreeSet<&u32> = found.keys().chain(expected.keys()).collect();
    let lines = keys
        .into_iter()
        .filter(|key| found.get(key) != expected.get(key));
    lines
        .take(3)
        .map(|key| {
            format!(
                "{key}: found {:?}, expected {:?}",
                found.get(key),
                expected.get(key)
            )
        })
        .collect()
}

#[track_caller]
fn assert_same(found: &Model, expected: &Model, what: &str) {
    let differences = [
        differing(&found.values, &expected.values),
        differing(&found.lists, &expected.lists),
        differing(&found.maps, &expected.maps),
    ];
    assert!(
        found == expected,
        "{what}: values, lists, maps: {differences:#?}"
    );
}

struct Task {
    store: Box<dyn KeyedStore>,
    values: ValueState<u64>,
    lists: ListState<u64>,
    maps: MapState<u32, u64>,
}

struct Job {
    backend: MemoryBackend,
    coordinator: Coordinator,
    tasks: Vec<Task>,
    runs_max: usize,
    runs_merged: bool,
    bases_merged: bool,
}

fn operator() -> OperatorId {
    OperatorId::new("job").expect("a name")
}

impl Job {
    fn start(storage: &Storage, tasks: u32, dead_percent_max: u32) -> Self {
        let environment = SystemEnvironment::shared();
        // Small segments, so that a base has several files and merges go file by file.
        let mut options = MemoryOptions::default();
        options.segment = SegmentOptions::default();
        options.segment.block_bytes_target = 1 << 10;
        options.segment.segment_bytes_target = 64 << 10;
        options.chain.fanout = 4;
        options.chain.runs_max = 8;
        options.chain.dead_percent_max = dead_percent_max;
        let store = SnapshotStore::open(
            storage.clone(),
            JobId::new("chains").expect("a name"),
            environment.clone(),
        );
        let coordinator = block_on(async { store.await?.claim().await }).expect("it is claimed");
        let backend = MemoryBackend::new(storage.clone(), environment, options).expect("it starts");
        let adopted = coordinator.adopted().clone();
        let mut job = Self {
            backend,
            coordinator,
            tasks: Vec::new(),
            runs_max: 0,
            runs_merged: false,
            bases_merged: false,
        };
        job.restore(&adopted, tasks);
        job
    }

    fn restore(&mut self, from: &Snapshot, tasks: u32) {
        let plan = from
            .restore_plan_or_new(&operator(), tasks)
            .expect("it can be planned");
        let mut plan = plan.unwrap_or_default().into_iter();
        self.tasks = (0..tasks)
            .map(|task| {
                let scope = TaskScope::new(operator(), task, tasks, u32::id());
                let mut store =
                    block_on(self.backend.open(scope, plan.next())).expect("it is restored");
                Task {
                    values: ValueState::register(&mut *store, "values").expect("registered"),
                    lists: ListState::register(&mut *store, "lists").expect("registered"),
                    maps: MapState::register(&mut *store, "maps").expect("registered"),
                    store,
                }
            })
            .collect();
    }

    /// One random write to the job and to the model.
    fn write(&mut self, numbers: &mut Numbers, model: &mut Model) {
        let key = numbers.below(3_000);
        let hash = backend_core::KeyHasher::XXH3_64.hash(&key.to_be_bytes());
        let owner = owner_of(hash, self.tasks.len() as u32) as usize;
        let Task {
            store,
            values,
            lists,
            maps,
        } = &mut self.tasks[owner];
        let store = &mut **store;
        let state_key = values.key(&key).expect("a key");
        let value = u64::from(numbers.below(1_000));
        match numbers.below(16) {
            0..5 => {
                values.put(store, &state_key, &value).expect("put");
                model.values.insert(key, value);
            }
            5 => {
                values.clear(store, &state_key).expect("cleared");
                model.values.remove(&key);
            }
            6..9 => {
                lists.add(store, &state_key, &value).expect("added");
                model.lists.entry(key).or_default().push(value);
            }
            9 => {
                lists.clear(store, &state_key).expect("cleared");
                model.lists.remove(&key);
            }
            10..14 => {
                let sub_key = numbers.below(20);
                maps.put(store, &state_key, &sub_key, &value).expect("put");
                model.maps.entry(key).or_default().insert(sub_key, value);
            }
            14 => {
                let sub_key = numbers.below(20);
                maps.remove(store, &state_key, &sub_key).expect("removed");
                if let Some(map) = model.maps.get_mut(&key) {
                    map.remove(&sub_key);
                }
                model.maps.retain(|_, map| !map.is_empty());
            }
            _ => {
                maps.clear(store, &state_key).expect("cleared");
                model.maps.remove(&key);
            }
        }
    }

    fn snapshot(&mut self) {
        let trigger = self
            .coordinator
            .trigger(SnapshotMode::Incremental)
            .expect("triggered");
        let mut acks = Vec::new();
        for task in &mut self.tasks {
            let pending = task.store.snapshot(&trigger).expect("frozen");
            let ack = block_on(pending.write()).expect("written");
            let mut runs: Vec<u32> = ack
                .part
                .segments
                .iter()
                .map(|segment| segment.run)
                .collect();
            runs.dedup();
            self.runs_max = self.runs_max.max(runs.len());
            for segment in &ack.part.segments {
                let is_base = segment.tier == Tier::BASE;
                self.bases_merged |= is_base
                    && segment.meta.generations.0 < Generation(3)
                    && segment.meta.generations.1 > Generation(3);
                self.runs_merged |= segment.tier > Tier(0) && !is_base;
            }
            acks.push(ack);
        }
        let confirmed = self.coordinator.commit(trigger.id, acks, Bytes::new());
        block_on(confirmed).expect("committed");
        for task in &mut self.tasks {
            task.store.confirm(trigger.id);
        }
    }

    fn contents(&mut self) -> Model {
        let mut found = Model::default();
        for Task {
            store,
            values,
            lists,
            maps,
        } in &mut self.tasks
        {
            let store = &mut **store;
            for (key, ()) in values
                .list_keys::<u32>(store)
                .and_then(|keys| keys.collect().wait())
                .expect("listed")
            {
                let state_key = values.key(&key).expect("a key");
                let value = values.get(store, &state_key).wait().expect("read");
                found.values.insert(key, value.expect("it was listed"));
            }
            for (key, ()) in lists
                .list_keys::<u32>(store)
                .and_then(|keys| keys.collect().wait())
                .expect("listed")
            {
                let state_key = lists.key(&key).expect("a key");
                found
                    .lists
                    .insert(key, lists.get(store, &state_key).wait().expect("read"));
            }
            for (key, ()) in maps
                .list_keys::<u32>(store)
                .and_then(|keys| keys.collect().wait())
                .expect("listed")
            {
                let state_key = maps.key(&key).expect("a key");
                let entries = maps.entries(store, &state_key).wait().expect("read");
                found.maps.insert(key, entries.into_iter().collect());
            }
        }
        found
    }
}

/// 400 increments with a restore after every 40th; whether runs and bases were merged meanwhile.
fn drive(dead_percent_max: u32) -> (bool, bool) {
    let storage = Storage::memory();
    let mut job = Job::start(&storage, 2, dead_percent_max);
    let mut numbers = Numbers(11);
    let mut model = Model::default();
    let (mut runs_merged, mut bases_merged) = (false, false);
    for round in 0..400 {
        for _ in 0..150 {
            job.write(&mut numbers, &mut model);
        }
        job.snapshot();
        runs_merged |= job.runs_merged;
        bases_merged |= job.bases_merged;
        // Eight, a fanout of four, and what begins during a merge; snapshots come every millisecond.
        assert!(job.runs_max <= 40, "a chain grew to {} runs", job.runs_max);
        if round % 40 == 39 {
            assert_same(
                &job.contents(),
                &model,
                &format!("the live state in round {round}"),
            );
            let parallelism = [1, 2, 3, 5][round / 40 % 4];
            if round % 80 == 79 {
                // Everything in memory is lost.
                drop(job);
                job = Job::start(&storage, parallelism, dead_percent_max);
            } else {
                job.coordinator.next_attempt().expect("a new attempt");
                let from = job.coordinator.confirmed().clone();
                job.restore(&from, parallelism);
            }
            let what = format!("restored after round {round} by {parallelism} tasks");
            assert_same(&job.contents(), &model, &what);
        }
    }
    (runs_merged, bases_merged)
}

#[test]
fn x5_chain_merged_into_its_base_restores_at_any_parallelism() {
    let (_, bases_merged) = drive(50);
    assert!(bases_merged);
}

#[test]
fn x5_chain_merged_by_tiers_restores_at_any_parallelism() {
    let (runs_merged, _) = drive(100_000);
    assert!(runs_merged);
}

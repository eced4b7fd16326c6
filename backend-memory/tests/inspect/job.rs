//! A job with values, lists and maps, what it is to hold, and hands on its objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use backend_core::clock::{ManualEnvironment, SharedEnvironment};
use backend_core::segment::SegmentOptions;
use backend_core::storage::Storage;
use backend_core::{
    Coordinator, JobId, KeyCodec, KeyHasher, KeyedStore, ListState, MapState, OperatorId, Position,
    Snapshot, SnapshotMode, SnapshotStore, StateBackend, TaskScope, ValueState, owner_of,
};
use backend_memory::{MemoryBackend, MemoryOptions};
use bytes::Bytes;
use futures::StreamExt;
use futures::executor::block_on;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

/// Values, lists and maps by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) values: BTreeMap<u32, u64>,
    pub(crate) lists: BTreeMap<u32, Vec<u64>>,
    pub(crate) maps: BTreeMap<u32, BTreeMap<u32, u64>>,
}

impl Model {
    /// The entries that a snapshot of it holds.
    pub(crate) fn entries(&self) -> u64 {
        let lists = self.lists.values().map(Vec::len).sum::<usize>();
        let maps = self.maps.values().map(BTreeMap::len).sum::<usize>();
        (self.values.len() + lists + maps) as u64
    }
}

/// Numbers that are the same at every run: `SplitMix64`.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((((z ^ (z >> 31)) >> 32) * u64::from(bound)) >> 32) as u32
    }
}

struct Task {
    store: Box<dyn KeyedStore>,
    values: ValueState<u64>,
    lists: ListState<u64>,
    maps: MapState<u32, u64>,
}

/// A job, its store, and what it is to hold.
pub(crate) struct Job {
    pub(crate) objects: Arc<InMemory>,
    pub(crate) storage: Storage,
    pub(crate) store: SnapshotStore,
    pub(crate) coordinator: Coordinator,
    pub(crate) model: Model,
    backend: MemoryBackend,
    tasks: Vec<Task>,
    numbers: Numbers,
}

pub(crate) fn operator() -> OperatorId {
    OperatorId::new("job").expect("a name")
}

pub(crate) fn environment(seed: u64) -> SharedEnvironment {
    Arc::new(ManualEnvironment::new(1_700_000_000_000, seed))
}

pub(crate) fn open(storage: &Storage, seed: u64) -> SnapshotStore {
    let job = JobId::new("inspected").expect("a name");
    block_on(SnapshotStore::open(storage.clone(), job, environment(seed))).expect("opened")
}

impl Job {
    /// A job of `tasks` tasks that holds nothing; random things follow `seed`.
    pub(crate) fn start(tasks: u32, seed: u64) -> Self {
        let objects = Arc::new(InMemory::new());
        let storage = Storage::new(objects.clone(), "");
        let store = open(&storage, seed);
        let coordinator = block_on(store.claim()).expect("claimed");
        // Small segments of small regions, so that a task has many of them.
        let mut options = MemoryOptions::default();
        options.segment = SegmentOptions::default();
        options.segment.block_bytes_target = 1 << 10;
        options.segment.region_blocks = 2;
        options.segment.segment_bytes_target = 64 << 10;
        options.chain.runs_max = 24;
        options.chain.dead_percent_max = 100_000;
        options.chain.full_bytes_max = 0;
        options.inline_bytes_max = 256;
        let backend =
            MemoryBackend::new(storage.clone(), environment(seed), options).expect("it starts");
        let adopted = coordinator.adopted().clone();
        let mut job = Self {
            objects,
            storage,
            store,
            coordinator,
            model: Model::default(),
            backend,
            tasks: Vec::new(),
            numbers: Numbers(seed),
        };
        job.restore(&adopted, tasks);
        job
    }

    /// Loses all memory, and restores `from` with another number of tasks.
    pub(crate) fn restore(&mut self, from: &Snapshot, tasks: u32) {
        let plan = from.restore_plan_or_new(&operator(), tasks);
        let mut plan = plan.expect("planned").unwrap_or_default().into_iter();
        self.tasks = (0..tasks)
            .map(|task| {
                let scope = TaskScope::new(operator(), task, tasks, u32::id());
                let opened = block_on(self.backend.open(scope, plan.next()));
                let mut store = opened.expect("restored");
                Task {
                    values: ValueState::register(&mut *store, "values").expect("registered"),
                    lists: ListState::register(&mut *store, "lists").expect("registered"),
                    maps: MapState::register(&mut *store, "maps").expect("registered"),
                    store,
                }
            })
            .collect();
    }

    /// A restart with another number of tasks from the last snapshot.
    pub(crate) fn rescale(&mut self, tasks: u32) {
        self.coordinator.next_attempt().expect("a new attempt");
        let from = self.coordinator.confirmed().clone();
        self.restore(&from, tasks);
    }

    /// `count` random writes to the job and to the model, then a snapshot.
    pub(crate) fn advance(&mut self, count: u32) -> Position {
        for _ in 0..count {
            self.write();
        }
        self.snapshot(SnapshotMode::Incremental)
    }

    fn write(&mut self) {
        let key = self.numbers.below(400);
        let hash = KeyHasher::XXH3_64.hash(&key.to_be_bytes());
        let owner = owner_of(hash, self.tasks.len() as u32) as usize;
        let Task {
            store,
            values,
            lists,
            maps,
        } = &mut self.tasks[owner];
        let (store, model) = (&mut **store, &mut self.model);
        let state_key = values.key(&key).expect("a key");
        let value = u64::from(self.numbers.below(1_000));
        let sub_key = self.numbers.below(20);
        match self.numbers.below(16) {
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
                let elements = [value, value + 1];
                lists.update(store, &state_key, elements).expect("replaced");
                model.lists.insert(key, elements.to_vec());
            }
            10 => {
                lists.clear(store, &state_key).expect("cleared");
                model.lists.remove(&key);
            }
            11..14 => {
                maps.put(store, &state_key, &sub_key, &value).expect("put");
                model.maps.entry(key).or_default().insert(sub_key, value);
            }
            14 => {
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

    pub(crate) fn snapshot(&mut self, mode: SnapshotMode) -> Position {
        let trigger = self.coordinator.trigger(mode).expect("triggered");
        let mut acks = Vec::new();
        for task in &mut self.tasks {
            let pending = task.store.snapshot(&trigger).expect("frozen");
            acks.push(block_on(pending.write()).expect("written"));
        }
        let engine = Bytes::from_static(b"offsets");
        let confirmed = block_on(self.coordinator.commit(trigger.id, acks, engine));
        for task in &mut self.tasks {
            task.store.confirm(trigger.id);
        }
        confirmed.expect("committed").snapshot.position()
    }

    /// What `from` restores to, with three tasks.
    pub(crate) fn restored(&mut self, from: &Snapshot) -> Model {
        let kept = std::mem::take(&mut self.tasks);
        self.restore(from, 3);
        let found = self.contents();
        self.tasks = kept;
        found
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
            let keys = values.list_keys::<u32>(store);
            for (key, ()) in keys.and_then(|keys| keys.collect().wait()).expect("listed") {
                let state_key = values.key(&key).expect("a key");
                let value = values.get(store, &state_key).wait().expect("read");
                found.values.insert(key, value.expect("it was listed"));
            }
            let keys = lists.list_keys::<u32>(store);
            for (key, ()) in keys.and_then(|keys| keys.collect().wait()).expect("listed") {
                let state_key = lists.key(&key).expect("a key");
                let elements = lists.get(store, &state_key).wait().expect("read");
                found.lists.insert(key, elements);
            }
            let keys = maps.list_keys::<u32>(store);
            for (key, ()) in keys.and_then(|keys| keys.collect().wait()).expect("listed") {
                let state_key = maps.key(&key).expect("a key");
                let entries = maps.entries(store, &state_key).wait().expect("read");
                found.maps.insert(key, entries.into_iter().collect());
            }
        }
        found
    }
}

/// What lies in a store, by name.
pub(crate) fn objects_of(objects: &InMemory) -> BTreeMap<String, Bytes> {
    block_on(async {
        let listed: Vec<_> = objects.list(None).collect().await;
        let mut all = BTreeMap::new();
        for found in listed {
            let path = found.expect("listed").location;
            let bytes = objects.get(&path).await.expect("there").bytes().await;
            all.insert(path.to_string(), bytes.expect("read"));
        }
        all
    })
}

/// Puts or replaces an object.
pub(crate) fn put(objects: &InMemory, name: &str, bytes: impl Into<Bytes>) {
    let payload = PutPayload::from_bytes(bytes.into());
    block_on(objects.put(&Path::from(name), payload)).expect("put");
}

/// Deletes an object.
pub(crate) fn delete(objects: &InMemory, name: &str) {
    block_on(objects.delete(&Path::from(name))).expect("deleted");
}

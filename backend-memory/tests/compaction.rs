//! Merges of segments drop what has expired, and nothing else, without any read.

use std::sync::Arc;

use backend_core::clock::ManualEnvironment;
use backend_core::storage::Storage;
use backend_core::{
    Attempt, Epoch, HashRange, KeyCodec, KeyedStore, ListState, OperatorId, SnapshotId,
    SnapshotMode, StateBackend, StateKey, StateOptions, TaskPart, TaskRestore, TaskScope,
    TimeToLive, Trigger, ValueState, owner_of,
};
use backend_memory::{MemoryBackend, MemoryOptions};
use futures::executor::block_on;

const BEGAN_MS: u64 = 1_700_000_000_000;
const TTL_MS: u64 = 100;
const KEYS: u32 = 600;
/// The first of the keys that are written to make a merge due.
const MORE: u32 = 1_000_000;

struct Task {
    store: Box<dyn KeyedStore>,
    values: ValueState<u64>,
    lists: ListState<u64>,
}

/// One operator on a chain that is merged often.
struct Job {
    backend: MemoryBackend,
    storage: Storage,
    clock: Arc<ManualEnvironment>,
    ttl: TimeToLive,
    tasks: Vec<Task>,
    snapshots: u64,
}

impl Job {
    fn start(ttl: TimeToLive) -> Self {
        let storage = Storage::memory();
        let clock = Arc::new(ManualEnvironment::new(BEGAN_MS, 1));
        let mut options = MemoryOptions::default();
        options.segment.block_bytes_target = 1 << 10;
        options.chain.fanout = 2;
        options.chain.runs_max = 4;
        options.chain.full_bytes_max = 0;
        let backend = MemoryBackend::new(storage.clone(), clock.clone(), options);
        let mut job = Self {
            backend: backend.expect("it starts"),
            storage,
            clock,
            ttl,
            tasks: Vec::new(),
            snapshots: 0,
        };
        job.open(1, &[]);
        job
    }

    fn scope(task: u32, tasks: u32) -> TaskScope {
        TaskScope::new(
            OperatorId::new("job").expect("a name"),
            task,
            tasks,
            u32::id(),
        )
    }

    fn open(&mut self, tasks: u32, parts: &[TaskPart]) {
        let options = StateOptions::new().with_ttl(self.ttl);
        let restore = |scope: &TaskScope| TaskRestore {
            snapshot: SnapshotId(self.snapshots),
            source: self.storage.clone(),
            range: scope.range,
            key_codec: scope.key_codec.clone(),
            hash: scope.hasher.id(),
            ttl_clock_ms: self.now_ms(),
            parts: parts.iter().cloned().map(Arc::new).collect(),
        };
        let open = |task| {
            let scope = Self::scope(task, tasks);
            let restored = (!parts.is_empty()).then(|| restore(&scope));
            let mut store = block_on(self.backend.open(scope, restored)).expect("it opens");
            Task {
                values: ValueState::register_with(&mut *store, "values", &options).expect("new"),
                lists: ListState::register_with(&mut *store, "lists", &options).expect("new"),
                store,
            }
        };
        let opened = (0..tasks).map(open).collect();
        self.tasks = opened;
    }

    fn now_ms(&self) -> u64 {
        backend_core::clock::Environment::now_ms(&*self.clock)
    }

    fn at(&mut self, ms: u64) {
        self.clock.set_ms(BEGAN_MS + ms);
    }

    fn write(&mut self, key: u32) {
        let hasher = Self::scope(0, 1).hasher;
        let hash = StateKey::encode(&hasher, &key).expect("a key").hash();
        let task = owner_of(hash, self.tasks.len() as u32);
        let Task {
            store,
            values,
            lists,
        } = &mut self.tasks[task as usize];
        let of_value = values.key(&key).expect("a key");
        values.put(&mut **store, &of_value, &7).expect("written");
        lists.add(&mut **store, &of_value, &7).expect("written");
    }

    /// An increment of all tasks, durable and confirmed.
    fn snapshot(&mut self) -> Vec<TaskPart> {
        self.snapshots += 1;
        let trigger = Trigger {
            epoch: Epoch(1),
            id: SnapshotId(self.snapshots),
            base: (self.snapshots > 1).then(|| SnapshotId(self.snapshots - 1)),
            attempt: Attempt(0),
            mode: SnapshotMode::Incremental,
        };
        let tasks = self.tasks.iter_mut();
        let parts = tasks.map(|task| {
            let pending = task.store.snapshot(&trigger).expect("frozen");
            let part = block_on(pending.write()).expect("written").part;
            task.store.confirm(trigger.id);
            part
        });
        parts.collect()
    }

    /// Writes as many keys again, which makes a merge into the base due, and takes increments
    /// until the parts hold at most `puts_max` puts of what was there before.
    fn merge_until(&mut self, puts_max: u64) -> Vec<TaskPart> {
        for key in 0..KEYS {
            self.write(MORE + key);
        }
        let puts_max = puts_max + 2 * u64::from(KEYS);
        for _ in 0..5_000 {
            let parts = self.snapshot();
            if puts(&parts) <= puts_max {
                return parts;
            }
            // Merges go on in the background.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("merges leave more than {puts_max} puts");
    }
}

/// The puts in all segments.
fn puts(parts: &[TaskPart]) -> u64 {
    let segments = parts.iter().flat_map(|part| &part.segments);
    segments.map(|segment| segment.meta.puts).sum()
}

fn ttl() -> TimeToLive {
    TimeToLive::after_write_ms(TTL_MS).expect("above 0")
}

/// Writes all keys, a part of them in each increment.
fn filled(ttl: TimeToLive) -> Job {
    let mut job = Job::start(ttl);
    for key in 0..KEYS {
        job.write(key);
        if key % 50 == 49 {
            job.snapshot();
        }
    }
    job
}

#[test]
fn t19_merges_before_the_expiry_drop_nothing() {
    let mut job = filled(ttl());
    job.at(TTL_MS - 1);
    for _ in 0..20 {
        let parts = job.snapshot();
        assert!(puts(&parts) >= u64::from(KEYS) * 2);
    }
    let parts = job.snapshot();
    assert!(parts[0].segments.len() < 12, "they were merged");
    job.open(1, &parts);
    let Task { store, values, .. } = &mut job.tasks[0];
    let counted = store.entry_count(values.id());
    assert_eq!(counted.wait().expect("counted"), u64::from(KEYS));
}

#[test]
fn t20_merges_after_the_expiry_drop_it_without_a_read() {
    for ttl in [ttl(), ttl().shown_until_removed()] {
        let mut job = filled(ttl);
        job.at(TTL_MS);
        job.merge_until(0);
    }
}

#[test]
fn t21_of_a_list_merges_drop_the_old_elements_only() {
    let mut job = filled(ttl());
    job.at(TTL_MS / 2);
    for key in 0..50 {
        job.write(key);
    }
    job.snapshot();
    job.at(TTL_MS);
    let parts = job.merge_until(100);
    job.open(1, &parts);
    let Task {
        store,
        values,
        lists,
    } = &mut job.tasks[0];
    for key in 0..50_u32 {
        let key = values.key(&key).expect("a key");
        assert_eq!(lists.get(&mut **store, &key).wait().expect("read"), [7]);
    }
}

#[test]
fn t22_after_a_restore_at_twice_the_parallelism_merges_do_the_same() {
    let mut job = filled(ttl());
    job.at(TTL_MS / 2);
    for key in 0..50 {
        job.write(key);
    }
    let parts = job.snapshot();
    job.open(2, &parts);
    job.at(TTL_MS - 1);
    let parts = job.snapshot();
    assert!(puts(&parts) >= u64::from(KEYS) * 2);
    job.at(TTL_MS);
    let parts = job.merge_until(100);
    job.open(4, &parts);
    let values = job.tasks.iter_mut().map(|task| {
        let counted = task.store.entry_count(task.values.id());
        counted.wait().expect("counted")
    });
    assert_eq!(values.sum::<u64>(), 50 + u64::from(KEYS));
}

#[test]
fn t27_switching_a_time_to_live_on_writes_nothing_anew() {
    let mut job = Job::start(ttl());
    let scope = Job::scope(0, 1);
    let mut store = block_on(job.backend.open(scope, None)).expect("it opens");
    let values = ValueState::<u64>::register(&mut *store, "values").expect("new");
    let lists = ListState::<u64>::register(&mut *store, "lists").expect("new");
    job.tasks = vec![Task {
        store,
        values,
        lists,
    }];
    for key in 0..KEYS {
        job.write(key);
    }
    let parts = job.snapshot();
    let written = puts(&parts);
    // A state that is switched on goes on with its increments.
    job.open(1, &parts);
    job.write(7);
    let parts = job.snapshot();
    assert!(
        puts(&parts) - written <= 3,
        "the new value and the new element"
    );
    assert!(
        parts[0].segments.iter().all(|s| s.clip == HashRange::ALL),
        "nothing is clipped"
    );
}

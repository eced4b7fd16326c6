//! A job whose states have a time to live, and a clock that a case moves.

use backend_core::{
    Result, SnapshotMode, StateDescriptor, StateId, StateKey, SubKeyRange, TimeToLive, owner_of,
};

use crate::backend::BackendUnderTest;
use crate::contents::Entries;
use crate::job::{Job, NOON_MS, Spec};
use crate::snapshot::Snapshot;
use crate::task::{SubEntry, Task, descriptors};

/// The time to live of most cases.
pub(crate) const TTL_MS: u64 = 100;

/// Entries live for [`TTL_MS`] after each write.
pub(crate) fn after_writes() -> TimeToLive {
    TimeToLive::after_write_ms(TTL_MS).expect("above 0")
}

/// A job with a value, a list and a map state that all have one time to live.
pub(crate) struct Timed<'b> {
    pub(crate) job: Job<'b>,
    pub(crate) value: StateId,
    pub(crate) list: StateId,
    pub(crate) map: StateId,
}

impl<'b> Timed<'b> {
    /// A new job of one task. Its clock stands at 0.
    pub(crate) fn new(under_test: &'b dyn BackendUnderTest, ttl: Option<TimeToLive>) -> Self {
        Self::of(under_test, ttl, 1)
    }

    /// A new job of `parallelism` tasks.
    pub(crate) fn of(
        under_test: &'b dyn BackendUnderTest,
        ttl: Option<TimeToLive>,
        parallelism: u32,
    ) -> Self {
        let job = Job::of(Spec::new(under_test), parallelism);
        Self::register(job, ttl).expect("registers")
    }

    /// The job of `snapshot`, its states registered with `ttl`.
    pub(crate) fn restored(
        snapshot: &Snapshot<'b>,
        ttl: Option<TimeToLive>,
        parallelism: u32,
    ) -> Self {
        Self::register(snapshot.restore(parallelism), ttl).expect("registers")
    }

    fn register(mut job: Job<'b>, ttl: Option<TimeToLive>) -> Result<Self> {
        let mut ids = Vec::new();
        for mut descriptor in descriptors() {
            descriptor.name = format!("timed {}", descriptor.name);
            descriptor.ttl = ttl;
            let of_task = |task: &mut Task| task.store.register(&descriptor);
            let of_tasks: Result<Vec<_>> = job.tasks.iter_mut().map(of_task).collect();
            let of_tasks = of_tasks?;
            assert!(of_tasks.iter().all(|id| *id == of_tasks[0]));
            ids.push(of_tasks[0]);
        }
        let (value, list, map) = (ids[0], ids[1], ids[2]);
        Ok(Self {
            job,
            value,
            list,
            map,
        })
    }

    /// The descriptor of the value state.
    pub(crate) fn value_descriptor(ttl: Option<TimeToLive>) -> StateDescriptor {
        let [mut value, ..] = descriptors();
        value.name = format!("timed {}", value.name);
        value.ttl = ttl;
        value
    }

    /// Moves the clock to `ms` after the beginning.
    pub(crate) fn at(&mut self, ms: u64) -> &mut Self {
        self.job.spec.clock.set_ms(NOON_MS + ms);
        self
    }

    pub(crate) fn key(&self, key: &str) -> StateKey {
        self.job.key(key)
    }

    pub(crate) fn task(&mut self, key: &StateKey) -> &mut Task {
        let parallelism = self.job.tasks.len() as u32;
        &mut self.job.tasks[owner_of(key.hash(), parallelism) as usize]
    }

    pub(crate) fn put(&mut self, key: &StateKey, value: &str) {
        let state = self.value;
        let task = self.task(key);
        let pressure = task.store.put(state, key, value.as_bytes());
        task.settle(pressure);
    }

    pub(crate) fn get(&mut self, key: &StateKey) -> Option<String> {
        let state = self.value;
        let found = self.task(key).store.get(state, key).wait();
        found.expect("a read answers").map(|value| text(&value))
    }

    pub(crate) fn append(&mut self, key: &StateKey, element: &str) {
        let state = self.list;
        let task = self.task(key);
        let pressure = task.store.list_append(state, key, element.as_bytes());
        task.settle(pressure);
    }

    pub(crate) fn list(&mut self, key: &StateKey) -> Vec<String> {
        let state = self.list;
        let entries = self.scan(state, key);
        entries.iter().map(|(_, element)| text(element)).collect()
    }

    pub(crate) fn map_put(&mut self, key: &StateKey, sub_key: &str, value: &str) {
        let state = self.map;
        let task = self.task(key);
        let pressure = task
            .store
            .map_put(state, key, sub_key.as_bytes(), value.as_bytes());
        task.settle(pressure);
    }

    pub(crate) fn map_get(&mut self, key: &StateKey, sub_key: &str) -> Option<String> {
        let state = self.map;
        let store = &mut self.task(key).store;
        let found = store.map_get(state, key, sub_key.as_bytes()).wait();
        found.expect("a read answers").map(|value| text(&value))
    }

    pub(crate) fn map(&mut self, key: &StateKey) -> Entries {
        let state = self.map;
        self.scan(state, key).into_iter().collect()
    }

    fn scan(&mut self, state: StateId, key: &StateKey) -> Vec<SubEntry> {
        let entries = self.task(key).scan(state, key, &SubKeyRange::ALL);
        entries.expect("a scan answers")
    }

    /// The entries that values, lists and maps take, expired ones that are still there included.
    pub(crate) fn stored(&mut self) -> [u64; 3] {
        [self.value, self.list, self.map].map(|state| {
            let counts = self.job.tasks.iter_mut().map(|task| task.count(state));
            counts.sum()
        })
    }

    /// Writes `text` as a value, an element and an entry of `key`.
    pub(crate) fn write(&mut self, key: &StateKey, text: &str) {
        self.put(key, text);
        self.append(key, text);
        self.map_put(key, text, text);
    }

    /// What a read of each kind shows, if all agree on whether there is something.
    pub(crate) fn reads(&mut self, key: &StateKey) -> bool {
        let seen = [
            self.get(key).is_some(),
            !self.list(key).is_empty(),
            !self.map(key).is_empty(),
        ];
        assert!(
            seen.iter().all(|there| *there == seen[0]),
            "value, list and map agree: {seen:?}"
        );
        seen[0]
    }

    /// Lets every store sweep until it has looked at everything.
    pub(crate) fn sweep(&mut self) {
        for task in &mut self.job.tasks {
            for _ in 0..64 {
                task.store.maintain().wait().expect("a store sweeps");
            }
        }
    }

    /// Takes an increment and restores it, as it was registered.
    pub(crate) fn through(self, ttl: Option<TimeToLive>) -> Self {
        let parallelism = self.job.tasks.len() as u32;
        let mut job = self.job;
        let snapshot = job.snapshot(SnapshotMode::Incremental);
        job.close();
        Self::restored(&snapshot, ttl, parallelism)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the cases write text")
}

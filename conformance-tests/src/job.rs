//! All tasks of one operator, without a coordinator: what the suite drives.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backend_core::clock::{Environment, ManualEnvironment, SharedEnvironment};
use backend_core::{
    Attempt, CodecId, Epoch, KeyHasher, OperatorId, Result, SnapshotId, SnapshotMode, StateBackend,
    StateId, StateKey, TaskScope, Trigger, ValueEdit, owner_of,
};
use futures::executor::block_on;
use parking_lot::Mutex;

use crate::backend::BackendUnderTest;
use crate::contents::{Contents, Entries};
use crate::medium::Medium;
use crate::snapshot::{Frozen, Ledger, Snapshot};
use crate::task::{BYTES, Task};

/// When a job begins, in milliseconds since 1970.
pub const NOON_MS: u64 = 1_700_000_000_000;

/// What stays the same when a job is restored.
#[derive(Clone)]
pub struct Spec<'b> {
    /// What is tested.
    pub under_test: &'b dyn BackendUnderTest,
    /// Where objects lie.
    pub medium: Medium,
    /// The operator's id.
    pub operator: OperatorId,
    /// How keys are encoded.
    pub key_codec: CodecId,
    /// How keys are hashed.
    pub hasher: KeyHasher,
    /// The snapshots of this medium.
    pub ledger: Arc<Ledger>,
    /// Time and chance of all backends.
    pub clock: Arc<ManualEnvironment>,
    pub(crate) ids: Arc<AtomicU64>,
}

impl<'b> Spec<'b> {
    /// An operator `operator` on a new medium, with keys of bytes.
    pub fn new(under_test: &'b dyn BackendUnderTest) -> Self {
        Self {
            under_test,
            medium: Medium::new(),
            operator: OperatorId::new("operator").expect("a name"),
            key_codec: CodecId::new(BYTES),
            hasher: KeyHasher::XXH3_64,
            ledger: Arc::default(),
            clock: Arc::new(ManualEnvironment::new(NOON_MS, 7)),
            ids: Arc::default(),
        }
    }

    /// [`Spec::clock`], as backends take it.
    pub fn environment(&self) -> SharedEnvironment {
        self.clock.clone()
    }

    /// The scope of one task.
    pub fn scope(&self, task: u32, parallelism: u32) -> TaskScope {
        TaskScope::new(
            self.operator.clone(),
            task,
            parallelism,
            self.key_codec.clone(),
        )
        .with_hasher(self.hasher)
    }

    /// A key of bytes.
    pub fn key(&self, key: impl AsRef<[u8]>) -> StateKey {
        StateKey::new(&self.hasher, key.as_ref()).expect("a key within limits")
    }

    /// A key of bytes in a namespace.
    pub fn key_in(&self, key: impl AsRef<[u8]>, namespace: impl AsRef<[u8]>) -> StateKey {
        let key = self.key(key).in_namespace(namespace.as_ref());
        key.expect("a namespace within limits")
    }
}

/// The tasks of one operator, each with its store.
pub struct Job<'b> {
    /// What stays the same when the job is restored.
    pub spec: Spec<'b>,
    /// The tasks in their order.
    pub tasks: Vec<Task>,
    backend: Arc<dyn StateBackend>,
    base: Option<SnapshotId>,
    /// Savepoints belong to the user: no later snapshot may refer to their segments, and the
    /// base passes over them.
    savepoints: Mutex<BTreeSet<SnapshotId>>,
    attempt: Attempt,
}

impl<'b> Job<'b> {
    /// A new job of one task.
    pub fn new(under_test: &'b dyn BackendUnderTest) -> Self {
        Self::of(Spec::new(under_test), 1)
    }

    /// A new job of `parallelism` tasks.
    pub fn of(spec: Spec<'b>, parallelism: u32) -> Self {
        Self::open(spec, parallelism, None).expect("an empty job opens")
    }

    /// The job as `snapshot` holds it, or an empty one, on a new backend.
    ///
    /// # Errors
    /// Those of [`StateBackend::open`].
    pub fn open(spec: Spec<'b>, parallelism: u32, snapshot: Option<&Snapshot<'b>>) -> Result<Self> {
        let backend = spec
            .under_test
            .backend(spec.medium.storage(), spec.environment());
        let mut tasks = Vec::new();
        for index in 0..parallelism {
            let scope = spec.scope(index, parallelism);
            let restore = snapshot.map(|s| s.task_restore(scope.range));
            tasks.push(Task::new(block_on(backend.open(scope, restore))?)?);
        }
        Ok(Self {
            spec,
            tasks,
            backend,
            base: snapshot.map(Snapshot::id),
            savepoints: Mutex::default(),
            attempt: Attempt(snapshot.map_or(1, |s| s.attempt().0 + 1)),
        })
    }

    /// A key of bytes.
    pub fn key(&self, key: impl AsRef<[u8]>) -> StateKey {
        self.spec.key(key)
    }

    /// A key of bytes in a namespace.
    pub fn key_in(&self, key: impl AsRef<[u8]>, namespace: impl AsRef<[u8]>) -> StateKey {
        self.spec.key_in(key, namespace)
    }

    /// The task that owns `key`.
    pub fn task(&mut self, key: &StateKey) -> &mut Task {
        let parallelism = self.tasks.len() as u32;
        &mut self.tasks[owner_of(key.hash(), parallelism) as usize]
    }

    /// The only task.
    pub fn only(&mut self) -> &mut Task {
        assert_eq!(self.tasks.len(), 1, "the job has one task");
        &mut self.tasks[0]
    }

    /// The value of `key`.
    pub fn get(&mut self, key: &StateKey) -> Option<Vec<u8>> {
        self.task(key).get(key)
    }

    /// Sets the value of `key`.
    pub fn put(&mut self, key: &StateKey, value: impl AsRef<[u8]>) {
        self.task(key).put(key, value.as_ref());
    }

    /// Edits the value of `key`.
    pub fn update(&mut self, key: &StateKey, edit: impl FnMut(Option<&[u8]>, &mut ValueEdit)) {
        self.task(key).update(key, edit);
    }

    /// Clears the value of `key`.
    pub fn clear_value(&mut self, key: &StateKey) {
        self.clear(key, |task| task.value);
    }

    /// Clears the list of `key`.
    pub fn clear_list(&mut self, key: &StateKey) {
        self.clear(key, |task| task.list);
    }

    /// Clears the map of `key`.
    pub fn clear_map(&mut self, key: &StateKey) {
        self.clear(key, |task| task.map);
    }

    fn clear(&mut self, key: &StateKey, state: impl Fn(&Task) -> StateId) {
        let task = self.task(key);
        let state = state(task);
        task.clear(state, key);
    }

    /// Appends to the list of `key`.
    pub fn append(&mut self, key: &StateKey, element: impl AsRef<[u8]>) {
        self.task(key).append(key, element.as_ref());
    }

    /// Replaces the list of `key`.
    pub fn replace(&mut self, key: &StateKey, elements: &[Vec<u8>]) {
        self.task(key).replace(key, elements);
    }

    /// The list of `key`.
    pub fn list(&mut self, key: &StateKey) -> Vec<Vec<u8>> {
        self.task(key).list(key)
    }

    /// Sets an entry of the map of `key`.
    pub fn map_put(&mut self, key: &StateKey, sub_key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.task(key)
            .map_put(key, sub_key.as_ref(), value.as_ref());
    }

    /// Removes an entry of the map of `key`.
    pub fn map_remove(&mut self, key: &StateKey, sub_key: impl AsRef<[u8]>) {
        self.task(key).map_remove(key, sub_key.as_ref());
    }

    /// An entry of the map of `key`.
    pub fn map_get(&mut self, key: &StateKey, sub_key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        self.task(key).map_get(key, sub_key.as_ref())
    }

    /// The map of `key`.
    pub fn map(&mut self, key: &StateKey) -> Entries {
        self.task(key).map(key)
    }

    /// Everything in all tasks, by enumeration; see [`Task::contents`].
    pub fn contents(&mut self) -> Contents {
        self.try_contents().expect("all of the state can be read")
    }

    /// [`Job::contents`], or the error of a read.
    ///
    /// # Errors
    /// Those of the stores' reads.
    pub fn try_contents(&mut self) -> Result<Contents> {
        let mut all = Contents::default();
        for task in &mut self.tasks {
            let mut part = task.contents()?;
            all.values.append(&mut part.values);
            all.lists.append(&mut part.lists);
            all.maps.append(&mut part.maps);
        }
        Ok(all)
    }

    /// The memory of all tasks, after the work that they have to do.
    pub fn memory_bytes(&mut self) -> u64 {
        let tasks = self.tasks.iter_mut();
        let bytes = tasks.map(|task| {
            task.store.maintain().wait().expect("a store drains");
            task.store.memory_bytes()
        });
        bytes.sum()
    }

    /// Freezes all tasks for the next snapshot.
    pub fn freeze(&mut self, mode: SnapshotMode) -> Frozen<'b> {
        let trigger = self.next_trigger(mode);
        let pending = self.tasks.iter_mut().map(|task| {
            let pending = task.store.snapshot(&trigger).expect("a store freezes");
            assert_eq!(pending.id(), trigger.id, "a pending snapshot has its id");
            pending
        });
        let pending = pending.collect();
        let now_ms = self.spec.clock.now_ms();
        Frozen::new(self.spec.clone(), trigger, now_ms, pending)
    }

    /// A trigger for the next snapshot, whose id is then used up.
    pub fn next_trigger(&self, mode: SnapshotMode) -> Trigger {
        let id = SnapshotId(self.spec.ids.fetch_add(1, Ordering::Relaxed) + 1);
        if mode == SnapshotMode::Savepoint {
            self.savepoints.lock().insert(id);
        }
        Trigger {
            epoch: Epoch(1),
            id,
            base: self.base,
            attempt: self.attempt,
            mode,
        }
    }

    /// Takes a snapshot, whole, and confirms it.
    pub fn snapshot(&mut self, mode: SnapshotMode) -> Snapshot<'b> {
        let snapshot = self.freeze(mode).write().expect("a snapshot is written");
        self.confirm(snapshot.id());
        snapshot
    }

    /// [`Job::snapshot`] of what changed.
    pub fn incremental(&mut self) -> Snapshot<'b> {
        self.snapshot(SnapshotMode::Incremental)
    }

    /// [`Job::snapshot`] of everything.
    pub fn full(&mut self) -> Snapshot<'b> {
        self.snapshot(SnapshotMode::Full)
    }

    /// Confirms a snapshot; later ones may refer to what it refers to.
    pub fn confirm(&mut self, id: SnapshotId) {
        for task in &mut self.tasks {
            task.store.confirm(id);
        }
        if !self.savepoints.lock().contains(&id) {
            self.base = self.base.max(Some(id));
        }
    }

    /// Says that a snapshot will not be confirmed.
    pub fn abort(&mut self, id: SnapshotId) {
        for task in &mut self.tasks {
            task.store.abort(id);
        }
    }

    /// Closes all stores and the backend.
    pub fn close(self) {
        drop(self.tasks);
        drop(self.backend);
    }
}

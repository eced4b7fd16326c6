//! State for stream engines: keyed values, lists and maps behind one contract, snapshots that
//! every backend writes and every backend restores at any parallelism.
//!
//! This crate is what an engine depends on: [`backend_core`]'s contract and store, and the
//! backends that are compiled in by feature. It is not an engine: it moves no records.
//!
//! ```
//! # use stateline::prelude::*;
//! # fn main() -> stateline::Result<()> {
//! # let directory = tempfile::tempdir().expect("a directory");
//! # let directory = directory.path();
//! # futures::executor::block_on(async {
//! // Once per job: where snapshots lie, and who may commit them.
//! let environment = SystemEnvironment::shared();
//! let storage = Storage::local(directory)?;
//! let job = JobId::new("visits")?;
//! let snapshots = SnapshotStore::open(storage.clone(), job, environment.clone()).await?;
//! let mut coordinator = snapshots.claim().await?;
//!
//! // Once per task: its share of the keys, as the last snapshot left it.
//! let backend = MemoryBackend::new(storage, environment, MemoryOptions::default())?;
//! let operator = OperatorId::new("count")?;
//! let plan = coordinator.adopted().restore_plan_or_new(&operator, 1)?;
//! let restore = plan.and_then(|mut tasks| tasks.pop());
//! let scope = TaskScope::new(operator, 0, 1, String::id());
//! let mut store = backend.open(scope, restore).await?;
//!
//! // Once per state; then per record: the key is encoded and hashed once for all states.
//! let visits = ValueState::<u64>::register(&mut *store, "visits")?;
//! let key = visits.key("ada")?;
//! let n = visits.get(&mut *store, &key).await?.unwrap_or(0); // or .wait()? in a synchronous engine
//! visits.put(&mut *store, &key, &(n + 1))?;
//!
//! // A snapshot: the freeze is the only pause, the write runs anywhere.
//! let trigger = coordinator.trigger(SnapshotMode::Incremental)?;
//! let pending = store.snapshot(&trigger)?;
//! let acknowledged = pending.write().await?;
//! let confirmed = coordinator.commit(trigger.id, vec![acknowledged], "position=1".into()).await?;
//! store.confirm(confirmed.snapshot.id());
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! Where to go: [`StateBackend`] and [`KeyedStore`] to write a backend, [`ValueState`],
//! [`ListState`] and [`MapState`] to use one, [`SnapshotStore`] to commit and recover,
//! [`codec`] to encode your own types.
//!
//! What always holds: a snapshot is whole or absent; damage is an error that names the object; a
//! write never waits for I/O; a task restores what its range of hashes holds, whatever the
//! parallelism was.

pub use backend_core::{
    Aggregate, AggregatingState, Attempt, ByteSink, Codec, CodecId, CommitPermit, Confirmed,
    Coordinator, Digest, EditAction, EntryBatch, Epoch, Error, ErrorKind, Fetch, Generation,
    HashId, HashRange, JobId, KeyBatch, KeyCodec, KeyCursor, KeyEncoder, KeyHasher, KeyStream,
    KeyedStore, ListCursor, ListState, Manifest, MapCursor, MapState, Native, OperatorId,
    PendingSnapshot, Position, Postcard, Pressure, ReducingState, Result, SchemaVersion, Snapshot,
    SnapshotId, SnapshotKind, SnapshotMode, SnapshotStats, SnapshotStore, SnapshotSummary,
    StateBackend, StateDescriptor, StateId, StateKey, StateKind, StateOptions, StateUid, StateView,
    StoreOptions, SubKeyRange, TaskIndex, TaskPart, TaskRestore, TaskScope, TaskSnapshot,
    TimeToLive, Trigger, UniqueId, ValueBatch, ValueEdit, ValueRef, ValueState, owner_of,
};
pub use backend_core::{
    clock, codec, contract, descriptor, handle, inspect, limits, manifest, names, segment, storage,
    store,
};
#[cfg(feature = "memory")]
pub use backend_memory as memory;

/// What an engine's source file wants in scope.
pub mod prelude {
    pub use backend_core::clock::SystemEnvironment;
    pub use backend_core::storage::Storage;
    pub use backend_core::{
        Coordinator, Fetch, HashRange, JobId, KeyCodec, KeyedStore, ListState, MapState,
        OperatorId, Snapshot, SnapshotMode, SnapshotStore, StateBackend, StateKey, TaskScope,
        ValueState,
    };
    #[cfg(feature = "memory")]
    pub use backend_memory::{MemoryBackend, MemoryOptions};
}

#![doc = include_str!("../README.md")]

pub use backend_core::{
    Attempt, ByteSink, Codec, CodecId, CommitPermit, Confirmed, Coordinator, Digest, EditAction,
    EntryBatch, Epoch, Error, ErrorKind, Fetch, Generation, HashId, HashRange, JobId, KeyBatch,
    KeyCodec, KeyCursor, KeyEncoder, KeyHasher, KeyStream, KeyedStore, ListCursor, ListState,
    Manifest, MapCursor, MapState, Native, OperatorId, PendingSnapshot, Position, Postcard,
    Pressure, Result, SchemaVersion, Snapshot, SnapshotId, SnapshotKind, SnapshotMode,
    SnapshotStats, SnapshotStore, SnapshotSummary, StateBackend, StateDescriptor, StateId,
    StateKey, StateKind, StateOptions, StateUid, StateView, StoreOptions, SubKeyRange, TaskIndex,
    TaskPart, TaskRestore, TaskScope, TaskSnapshot, TimeToLive, Trigger, UniqueId, ValueBatch,
    ValueEdit, ValueRef, ValueState, owner_of,
};
pub use backend_core::{
    clock, codec, contract, descriptor, handle, limits, manifest, names, segment, storage, store,
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

//! The contract, codecs, table, snapshot format and store protocol of Stateline.

pub mod chain;
pub mod clock;
pub mod codec;
pub mod compact;
pub mod contract;
pub mod descriptor;
pub mod entry;
pub mod error;
pub mod fetch;
pub mod generation;
pub mod handle;
pub mod hash;
pub mod ids;
pub mod inspect;
pub mod key;
pub mod limits;
pub mod lineage;
pub mod manifest;
pub mod names;
pub mod range;
pub mod runtime;
pub mod scan;
pub mod segment;
pub mod storage;
pub mod store;
pub mod table;
pub mod timer;
pub mod ttl;
pub mod upload;
pub mod value;
mod wire;

pub use codec::{ByteSink, Codec, KeyCodec, Native, Postcard};
pub use contract::{
    EditFn, EditManyFn, KeyedStore, PendingSnapshot, Pressure, SnapshotMode, SnapshotStats,
    StateBackend, StateView, TaskPart, TaskRestore, TaskScope, TaskSnapshot, TimerAdded, Trigger,
};
pub use descriptor::{
    CodecId, SchemaVersion, StateDescriptor, StateId, StateKind, StateUid, TimeToLive,
};
pub use error::{Error, ErrorKind, Result};
pub use fetch::Fetch;
pub use generation::{Generation, WriteContext};
pub use handle::{
    Aggregate, AggregatingState, DueTimer, KeyEncoder, KeyStream, ListCursor, ListState, MapCursor,
    MapState, ReducingState, StateOptions, TimerQueue, ValueState,
};
pub use hash::{HashId, KeyHasher};
pub use ids::{Attempt, Digest, Epoch, JobId, OperatorId, SnapshotId, TaskIndex, UniqueId};
pub use key::StateKey;
pub use manifest::{Manifest, Position, SnapshotKind};
pub use range::{HashRange, owner_of};
pub use scan::{EntryBatch, KeyBatch, KeyCursor, SubKeyRange};
pub use store::{
    CommitPermit, Confirmed, Coordinator, Snapshot, SnapshotStore, SnapshotSummary, StoreOptions,
};
pub use table::{FrozenTable, SortedMode, Table};
pub use timer::{Timer, TimerBatch};
pub use value::{EditAction, ValueBatch, ValueEdit, ValueRef};

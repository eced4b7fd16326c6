//! The contract, codecs, table, snapshot format and store protocol of Stateline.

pub mod clock;
pub mod contract;
pub mod descriptor;
pub mod entry;
pub mod error;
pub mod fetch;
pub mod generation;
pub mod hash;
pub mod ids;
pub mod key;
pub mod limits;
pub mod names;
pub mod range;
pub mod runtime;
pub mod scan;
pub mod segment;
pub mod storage;
pub mod table;
pub mod value;

pub use contract::{
    EditFn, EditManyFn, KeyedStore, PendingSnapshot, Pressure, SnapshotMode, SnapshotStats,
    StateBackend, StateView, TaskPart, TaskRestore, TaskScope, TaskSnapshot, Trigger,
};
pub use descriptor::{
    CodecId, SchemaVersion, StateDescriptor, StateId, StateKind, StateUid, TimeToLive,
};
pub use error::{Error, ErrorKind, Result};
pub use fetch::Fetch;
pub use generation::{Generation, WriteContext};
pub use hash::{HashId, KeyHasher};
pub use ids::{Attempt, Digest, Epoch, JobId, OperatorId, SnapshotId, TaskIndex, UniqueId};
pub use key::StateKey;
pub use range::{HashRange, owner_of};
pub use scan::{EntryBatch, KeyBatch, KeyCursor, SubKeyRange};
pub use table::{FrozenTable, SortedMode, Table};
pub use value::{EditAction, ValueBatch, ValueEdit, ValueRef};

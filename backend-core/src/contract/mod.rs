//! The contract between an engine and a backend.

mod backend;
mod snapshot;
mod store;
mod view;

pub use backend::{StateBackend, TaskRestore, TaskScope};
pub use snapshot::{PendingSnapshot, SnapshotMode, SnapshotStats, TaskPart, TaskSnapshot, Trigger};
pub use store::{EditFn, EditManyFn, KeyedStore, Pressure};
pub use view::StateView;

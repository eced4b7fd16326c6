//! The contract between an engine and a backend.

mod backend;
mod snapshot;
mod store;
mod task;
mod view;

pub use backend::StateBackend;
pub use snapshot::{PendingSnapshot, SnapshotMode, SnapshotStats, TaskPart, TaskSnapshot, Trigger};
pub use store::{EditFn, EditManyFn, KeyedStore, Pressure, TimerAdded};
pub use task::{TaskRestore, TaskScope};
pub use view::StateView;

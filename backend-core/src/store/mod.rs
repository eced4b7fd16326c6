//! The store of a job's snapshots: commit, fencing, restore.
//!
//! [`protocol`] decides and does no I/O; [`SnapshotStore`] and [`Coordinator`] carry out.
//!
//! What always holds:
//! - A snapshot exists once its manifest does, and a manifest is written once.
//! - A coordinator that was overtaken confirms nothing: it learns of it before it says so.
//! - A manifest that is there and cannot be read is an error, never a fresh start.
//! - No rule rests on a clock.

mod assemble;
mod collect;
mod collect_report;
mod coordinator;
mod known;
mod load;
mod operators;
mod options;
mod pinning;
mod pins;
mod planned;
mod prepared;
mod probe;
pub mod protocol;
mod publish;
mod remote;
mod restore;
mod snapshot;
mod snapshot_store;
mod summary;
mod sweeping;

#[cfg(test)]
mod tests;

pub use collect::Collection;
pub use collect_report::{CollectOptions, CollectReport};
pub use coordinator::{CommitPermit, Confirmed, Coordinator};
pub use options::StoreOptions;
pub use pins::Pinned;
pub(crate) use protocol::Adopt;
pub use protocol::{KeepReason, Retention};
pub(crate) use remote::{Remote, Tries};
pub use restore::PARALLELISM_MAX;
pub use snapshot::Snapshot;
pub use snapshot_store::SnapshotStore;
pub use summary::SnapshotSummary;

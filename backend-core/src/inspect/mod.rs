//! Looking into snapshots without restoring them.
//!
//! | to | use |
//! |---|---|
//! | know whether every byte of a job's snapshots is as it was written | [`verify`] |
//! | read single keys | [`SnapshotReader`], [`ValueReader`], [`ListReader`], [`MapReader`] |
//! | know what changed between two snapshots | [`diff()`] |
//! | turn a chain of increments into a full snapshot | [`flatten()`] |
//! | take a snapshot to another store | [`copy()`] |
//! | go on from the newest snapshot that is whole | [`claim_newest_whole()`] |
//!
//! Everything streams: memory holds a few regions of segments, about 1 MiB each, and what a
//! manifest says of its objects; a copy holds a few whole objects. None of it deletes
//! anything. Only [`claim_newest_whole()`] claims the job, and only [`flatten()`], which is given
//! a coordinator, commits a snapshot.
//!
//! What is read is what a restore would hold: clips, deletes and the time-to-live clock of the
//! snapshot are heeded. All futures can be polled by any executor.
//!
//! A job may collect old snapshots while they are looked into. Who reads one that is not the
//! newest pins it first (`SnapshotStore::pin`), or takes a missing object for what it is.

mod compare;
mod copy;
mod cursor;
mod diff;
mod difference;
mod entries;
mod fallback;
mod flatten;
mod hashers;
mod merged;
mod pump;
mod reader;
mod states;
mod stored;
#[cfg(test)]
mod tests;
mod transfer;
mod typed;
mod verify;

pub use copy::{CopyOptions, CopyReport, copy};
pub use diff::{Diff, DiffOptions, OneSided, Side, diff};
pub use difference::Difference;
pub use entries::{Entries, StoredEntry};
pub use fallback::{Fallback, LostSnapshot, claim_newest_whole};
pub use flatten::{FlattenOptions, flatten};
pub use reader::SnapshotReader;
pub use stored::StoredValue;
pub use typed::{ListReader, MapReader, ValueReader};
pub use verify::{
    EntryCounts, Fault, FaultKind, Orphan, Scope, SnapshotFigures, VerifyOptions, VerifyReport,
    verify,
};

//! Looking into snapshots without restoring them.
//!
//! | to | use |
//! |---|---|
//! | know whether every byte of a job's snapshots is as it was written | [`verify`] |
//!
//! Everything streams: memory holds a few regions of segments (about 1 MiB each) and what
//! manifests say of objects, never a whole state. Everything but [`verify`]'s own reading is
//! bounded by the snapshot at hand. Nothing here claims the job, and nothing is deleted.
//!
//! A job may collect old snapshots while they are looked into. Who reads one that is not the
//! newest keeps it with a pin first, or takes a missing object for what it is.

mod cursor;
mod merged;
mod states;
mod verify;

pub use verify::{
    EntryCounts, Fault, FaultKind, Orphan, Scope, SnapshotFigures, VerifyOptions, VerifyReport,
    verify,
};

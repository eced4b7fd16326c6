//! Whether every byte of a job's snapshots is as it was written.

mod catalog;
mod count;
mod driver;
mod fault;
mod findings;
mod object;
mod options;
mod report;
mod show;
mod survey;

pub use driver::verify;
pub use fault::{Fault, FaultKind};
pub use options::{Scope, VerifyOptions};
pub use report::{EntryCounts, Orphan, SnapshotFigures, VerifyReport};

//! The protocol as state machines: no I/O, no clock, no chance.
//!
//! Each machine says by `step()` what to do next; a driver does it and tells the outcome by an
//! `on_..` method. A step may be repeated as often as its outcome is not known.
//!
//! 1. [`Claiming`]: the highest epoch n is known, n + 1 is created, and a doubtful answer is
//!    settled by the unique id.
//! 2. [`choose_base`]: the newest manifest, not condemned, of the highest epoch that has one.
//! 3. [`Committing`]: create the manifest, then look for the next epoch.
//! 4. [`Ledger`]: ids, pending snapshots, bases and references.
//! 5. [`retain`] and [`Collecting`]: what stays, and in which order the rest goes.

mod adopt;
mod claiming;
mod collecting;
mod committing;
mod ledger;
mod retention;
mod settle;

#[cfg(test)]
mod tests;

pub(crate) use adopt::fenced;
pub use adopt::{Adopt, BaseChoice, choose_base, newest};
pub use claiming::{ClaimStep, Claiming};
pub use collecting::{CollectStep, Collecting, Sweep};
pub use committing::{CommitStep, Committing};
pub use ledger::{Holds, Ledger, ObjectSet, PENDING_MAX, Pending};
pub use retention::{Candidate, KeepReason, Others, Retention, is_passed_over, retain};
pub use settle::{CreateAnswer, Settle, SettleStep};

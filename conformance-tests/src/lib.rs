//! The behaviours that every Stateline backend shows, as one macro of named tests.
//!
//! A backend's whole test file is one line. It works the same outside of this workspace: depend
//! on `conformance-tests` as a dev-dependency, and write, in `tests/conformance.rs`:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use backend_core::StateBackend;
//! use backend_core::clock::SharedEnvironment;
//! use backend_core::storage::Storage;
//! # use conformance_tests::ReferenceBackend as MyBackend;
//!
//! fn mine(storage: Storage, environment: SharedEnvironment) -> Arc<dyn StateBackend> {
//!     Arc::new(MyBackend::new(storage, environment))
//! }
//!
//! conformance_tests::conformance!(mine);
//! # fn main() {}
//! ```
//!
//! Each case is a `#[test]` named after its behaviour in `docs/behaviours.md`. What a backend
//! says that it cannot do ([`Capabilities`]) is tested to fail clearly.
//!
//! The cases stand in [`cases`], and [`CASES`] lists them. They drive a [`job::Job`]: the tasks
//! of one operator, snapshots of all of them, and restores at any parallelism, over a
//! [`medium::Medium`] that fails, blocks and damages on demand. [`ReferenceBackend`] is a plain
//! backend that passes them all; with a [`Flaw`] it gets one thing wrong, and
//! `tests/wrong_backends.rs` names the case that tells.

pub mod backend;
pub mod cases;
pub mod contents;
pub mod job;
pub mod medium;
pub mod reference;
pub mod snapshot;
mod table;
pub mod task;
mod timed;

pub use backend::{BackendUnderTest, Capabilities};
pub use reference::{Flaw, ReferenceBackend};
pub use table::{CASES, Case};

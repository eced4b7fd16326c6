//! Keyed state in memory, behind the contract of [`backend_core`].
//!
//! [`MemoryBackend`] opens one store per task. The state lies in a table of small copy-on-write
//! pages; a snapshot freezes it in microseconds and is encoded and uploaded elsewhere, in full
//! or as an increment. What it is not: it keeps nothing on disk between snapshots, and a task's
//! state has to fit into memory.
//!
//! What always holds:
//! - every read is ready, and no write waits;
//! - one thread owns a store; frozen views are read and dropped on other threads;
//! - a snapshot that fails, is aborted or dropped leaves the store as if it had not been taken.

mod backend;
mod gauge;
mod options;
mod restore;
mod shared;
mod snapshot;
mod states;
mod store;
mod view;

pub use backend::MemoryBackend;
pub use options::MemoryOptions;

//! The behaviours that every Stateline backend shows, as one macro of named tests.

pub mod backend;
pub mod cases;
pub mod contents;
pub mod job;
pub mod medium;
pub mod reference;
pub mod snapshot;
mod table;
pub mod task;

pub use backend::{BackendUnderTest, Capabilities};
pub use reference::{Flaw, ReferenceBackend};
pub use table::{CASES, Case};

//! Whole jobs on a store that fails, stalls and crashes.
//!
//! [`simulate`] runs coordinators with their tasks, zombies among them, and readers, on one
//! thread and a clock that stands still. Every request to the store waits until the seed says
//! that it is next, and what becomes of it: it passes, fails before or after it took effect, or
//! is never answered and perhaps takes effect later. Processes are killed between any two
//! requests. What they read back is compared with plain maps, and what the store holds with what
//! was confirmed. The same seed gives the same run.

mod contents;
mod gate;
mod leader;
mod ledger;
mod numbers;
mod process;
mod reader;
mod simulation;
mod tasks;
mod world;

pub use ledger::Violation;
pub use simulation::{Failure, Summary, simulate, simulate_with_trace};

//! Looking into what a job in memory leaves behind.

mod copying;
mod diff;
mod failing;
mod fallback;
mod flatten;
mod job;
mod reading;
mod verify;

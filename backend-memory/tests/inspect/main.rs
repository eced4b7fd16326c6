//! Looking into what a job in memory leaves behind.

mod job;
mod verify;

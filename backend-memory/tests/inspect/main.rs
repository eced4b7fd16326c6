//! Looking into what a job in memory leaves behind.

mod job;
mod reading;
mod verify;

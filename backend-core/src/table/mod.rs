//! State in memory.

pub mod tree;

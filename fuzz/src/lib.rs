//! Fuzz targets: every decoder of bytes that somebody else may have written.
//!
//! A [`Target`] takes any bytes and panics if the decoder behind it does not keep its word. What
//! each one holds is in `docs/testing.md`. Three things drive the targets:
//! - the binary `fuzzer`, which is libFuzzer with coverage (`cargo xtask fuzz`);
//! - the test `tests/corpus.rs`, which replays every file below `corpus/`;
//! - the binary `fuzz`, which replays single files and writes the seeds of the corpus.
//!
//! Stored bytes are guarded by checksums, which random changes never get past. So
//! [`Target::mutate`] takes a file apart, changes a part, and assembles it with right checksums,
//! lengths and places. A file of the corpus is what would lie in a store, and nothing else.

mod cursor;
mod dice;
mod entries;
mod layout;
mod memory;
mod seeds;
mod targets;

pub use seeds::{Seed, seeds};
pub use targets::{Target, Verdict};

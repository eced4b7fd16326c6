//! The gate of the hot paths.

mod operations;
mod snapshots;

use backend_core::Result;

use crate::report::Report;

/// A part of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Single operations beside a hash map.
    Operations,
    /// Snapshots and restores.
    Snapshots,
}

/// Values lie below this.
const VALUES_BELOW: u64 = 1_000_000;

/// Measures everything at `entries` entries, and what depends on size at other sizes, too.
pub(crate) fn run(entries: u64, rounds: usize, only: Option<Part>) -> Result<Report> {
    let mut report = Report::default();
    println!("{entries} entries of 8-byte keys 0..n and 8-byte values below {VALUES_BELOW}");
    if only != Some(Part::Snapshots) {
        operations::measure(&mut report, entries, rounds)?;
    }
    if only != Some(Part::Operations) {
        snapshots::measure(&mut report, entries)?;
    }
    Ok(report)
}

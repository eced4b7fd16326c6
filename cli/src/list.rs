//! `stateline ls`: the snapshots of a job.

use std::path::Path;

use futures::executor::block_on;
use stateline::prelude::*;
use stateline::{Error, ErrorKind, Result};

/// Prints a line for each snapshot of `job` in `dir`, newest last.
pub(crate) fn run(dir: &Path, job: &str) -> Result<()> {
    if !dir.is_dir() {
        return Err(
            Error::new(ErrorKind::NotFound, "there is no such directory")
                .with("dir", dir.display()),
        );
    }
    let storage = Storage::local(dir)?;
    let environment = SystemEnvironment::shared();
    let store = block_on(SnapshotStore::open(storage, JobId::new(job)?, environment))?;
    let summaries = block_on(store.list())?;
    println!(
        "{:>6} {:>9} {:>6} {:>9} {:>12}  identity",
        "epoch", "snapshot", "tasks", "segments", "bytes"
    );
    for summary in &summaries {
        let snapshot = block_on(store.load(summary.position.epoch, summary.position.id))?;
        let parts = &snapshot.manifest().parts;
        let segments: usize = parts.iter().map(|part| part.task.segments.len()).sum();
        let bytes: u64 = parts
            .iter()
            .flat_map(|part| &part.task.segments)
            .map(|s| s.meta.bytes)
            .sum();
        println!(
            "{:>6} {:>9} {:>6} {segments:>9} {bytes:>12}  {}",
            snapshot.epoch(),
            snapshot.id(),
            parts.len(),
            snapshot.digest()
        );
    }
    println!("{} snapshots", summaries.len());
    Ok(())
}

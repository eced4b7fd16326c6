//! `stateline ls`: the snapshots of a job.

use std::path::Path;

use futures::executor::block_on;
use stateline::prelude::*;
use stateline::{Error, ErrorKind, Result};

use crate::print;
use crate::size::Size;

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
    print::line(format_args!(
        "{:>6} {:>9} {:>6} {:>9} {:>12}  identity",
        "epoch", "snapshot", "tasks", "segments", "bytes"
    ));
    for summary in &summaries {
        let snapshot = block_on(store.load(summary.position.epoch, summary.position.id))?;
        let Size { segments, bytes } = Size::of(snapshot.manifest());
        print::line(format_args!(
            "{:>6} {:>9} {:>6} {segments:>9} {bytes:>12}  {}",
            snapshot.epoch(),
            snapshot.id(),
            snapshot.manifest().parts.len(),
            snapshot.digest()
        ));
    }
    print::line(format_args!("{} snapshots", summaries.len()));
    Ok(())
}

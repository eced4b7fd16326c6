//! `stateline ls`: the snapshots of a job.

use futures::executor::block_on;
use stateline::Result;

use crate::job::JobArguments;
use crate::print;
use crate::size::Size;

/// Prints a line for each snapshot of the job, newest last.
pub(crate) fn run(job: &JobArguments) -> Result<()> {
    let store = job.open()?;
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

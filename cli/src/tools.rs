//! `stateline verify`, `gc`, `fallback` and `copy`.

use std::num::NonZeroU32;
use std::path::Path;

use futures::executor::block_on;
use stateline::inspect::{self, CopyOptions, Scope, VerifyOptions};
use stateline::prelude::*;
use stateline::store::{CollectOptions, Retention};
use stateline::{Error, ErrorKind, Position, Result};

use crate::job::JobArguments;
use crate::print;

/// How long a copy that was killed keeps its snapshot from being collected: a day.
const COPY_LEASE_MS: u64 = 86_400_000;

/// Reads every object; whether all are whole.
pub(crate) fn verify(job: &JobArguments, snapshot: Option<Position>) -> Result<bool> {
    let scope = snapshot.map_or(Scope::Store, Scope::Snapshot);
    let (store, options) = (job.open()?, VerifyOptions::default());
    let report = block_on(inspect::verify(&store, scope, &options))?;
    print::line(report.to_string().trim_end());
    Ok(report.is_whole())
}

/// Says what a collection would delete, or claims the job and deletes it.
pub(crate) fn gc(job: &JobArguments, last: NonZeroU32, applies: bool) -> Result<()> {
    let store = job.open()?;
    let retention = Retention::last(last);
    if applies {
        let mut coordinator = block_on(store.claim())?;
        let collection = coordinator.collection(&retention, CollectOptions::default());
        print::line(block_on(collection?.run())?);
        return Ok(());
    }
    match block_on(store.plan_collection(&retention))? {
        Some(plan) => print::line(plan),
        None => print::line("the job has no snapshot"),
    }
    print::line("nothing was changed; --apply deletes, and stops a job that runs");
    Ok(())
}

/// Says which snapshot is the newest whole one, or claims the job and goes on from it.
pub(crate) fn fallback(job: &JobArguments, applies: bool) -> Result<bool> {
    let store = job.open()?;
    let options = VerifyOptions::default();
    if !applies {
        let report = block_on(inspect::verify(&store, Scope::Store, &options))?;
        print::line(report.to_string().trim_end());
        print::line("nothing was changed; --apply goes on from the newest whole snapshot");
        return Ok(report.newest_whole.is_some());
    }
    let fallback = block_on(inspect::claim_newest_whole(&store, &options))?;
    for lost in &fallback.lost {
        let what = lost.faults.first().map(|fault| &*fault.object);
        print::line(format_args!(
            "given up: {} ({})",
            lost.position,
            what.unwrap_or("damaged")
        ));
    }
    match fallback.from {
        Some(from) => print::line(format_args!(
            "the job goes on from {from}, as {}",
            fallback.coordinator.adopted().position()
        )),
        None => print::line("the job has no snapshot"),
    }
    Ok(true)
}

/// Copies a snapshot, the newest if none is named, to another directory.
pub(crate) fn copy(job: &JobArguments, dest: &Path, snapshot: Option<Position>) -> Result<()> {
    let store = job.open()?;
    let position = match snapshot {
        Some(position) => position,
        None => block_on(store.latest())?
            .ok_or_else(|| Error::new(ErrorKind::NotFound, "the job has no snapshot"))?
            .position(),
    };
    let lease = Some(COPY_LEASE_MS);
    let pinned = block_on(store.pin(position, "stateline copy", lease))?;
    let dest_storage = Storage::local(dest)?;
    let options = CopyOptions::default();
    let copied = inspect::copy(pinned.snapshot(), &store, &dest_storage, &options);
    let copied = block_on(copied);
    block_on(pinned.release())?;
    let report = copied?;
    print::line(format_args!(
        "{position}: {} objects copied, {} bytes; {} were there already",
        report.objects_copied, report.bytes_copied, report.objects_present
    ));
    Ok(())
}

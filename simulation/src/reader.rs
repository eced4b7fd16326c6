//! A reader beside the job: pins a snapshot, reads all of it, and lets go.

use backend_core::{ErrorKind, SnapshotStore};

use crate::ledger::{Violation, label_of};
use crate::process::{End, Process};
use crate::tasks;

/// Reads a snapshot or two.
///
/// # Errors
/// Why it ended.
pub(crate) async fn read(mut process: Process) -> Result<(), End> {
    let store = process.open().await?;
    for _ in 0..=process.numbers.below(2) {
        one(&mut process, &store).await?;
    }
    Ok(())
}

async fn one(process: &mut Process, store: &SnapshotStore) -> Result<(), End> {
    let listed = store.list().await?;
    let choice = process.numbers.below(listed.len().max(1));
    let Some(position) = listed.get(choice).map(|summary| summary.position) else {
        return Ok(());
    };
    let lease_ms = process.numbers.happens(200).then_some(300);
    let pinned = match store.pin(position, "reader", lease_ms).await {
        Err(e) if e.kind() == ErrorKind::NotFound => return Err(End::Ordinary(e.to_string())),
        pinned => pinned?,
    };
    process.note(format_args!("reads {position}"));
    let backend = process.backend()?;
    let parallelism = 1 + process.numbers.below(3) as u32;
    // Long enough for a collection to come in between.
    process.world.ask(process.id, "read on".to_owned()).await;
    let snapshot = pinned.snapshot();
    let mut tasks = match tasks::restore(&backend, snapshot, parallelism).await {
        // A lease may end, into an error that says so.
        Err(e) if e.kind() == ErrorKind::NotFound && lease_ms.is_some() => {
            return Err(End::Ordinary(e.to_string()));
        }
        tasks => tasks?,
    };
    let expected = process.ledger.borrow().contents(&label_of(snapshot))?;
    let found = tasks::contents(&mut tasks)?;
    if let Some(difference) = found.difference(&expected) {
        return Err(Violation(format!("{position} read: {difference}")).into());
    }
    if process.numbers.happens(800) {
        pinned.release().await?;
    }
    Ok(())
}

//! A coordinator with its tasks: claims, restores, writes, snapshots, collects, until it is done,
//! killed, or fenced.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;

use backend_core::manifest::Position;
use backend_core::names::ObjectName;
use backend_core::store::{CollectOptions, Retention};
use backend_core::{
    Coordinator, Epoch, ErrorKind, PendingSnapshot, Snapshot, SnapshotMode, SnapshotStore, Trigger,
};
use backend_memory::MemoryBackend;
use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use tokio::task::JoinHandle;

use crate::contents::Contents;
use crate::ledger::{ROOT, Violation, label_of};
use crate::process::{End, Process};
use crate::tasks::{self, Task};

/// How often a commit in doubt is tried again before its process gives up, and ends.
const COMMIT_TRIES: u32 = 30;

/// A snapshot on its way.
struct Taken {
    trigger: Trigger,
    pending: Vec<PendingSnapshot>,
    contents: Rc<Contents>,
}

/// Leads the job.
///
/// # Errors
/// Why it ended.
pub(crate) async fn lead(mut process: Process) -> Result<(), End> {
    let store = process.open().await?;
    let mut coordinator = adopt(&mut process, &store).await?;
    let backend = process.backend()?;
    let attempts = 1 + process.numbers.below(3);
    for attempt in 0..attempts {
        if attempt > 0 {
            coordinator.next_attempt()?;
        }
        let from = coordinator.confirmed().clone();
        run(&mut process, &backend, &mut coordinator, &from).await?;
    }
    Ok(())
}

async fn adopt(process: &mut Process, store: &SnapshotStore) -> Result<Coordinator, End> {
    let wish = if process.numbers.happens(60) {
        let listed = store.list().await?;
        let choice = process.numbers.below(listed.len().max(1));
        listed.get(choice).map(|summary| summary.position)
    } else {
        None
    };
    if let Some(position) = wish {
        process.ledger.borrow_mut().wish(position);
    }
    let coordinator = match wish {
        Some(position) => match store.claim_at(position).await {
            // It was condemned meanwhile.
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(End::Ordinary(e.to_string()));
            }
            claimed => claimed?,
        },
        None => store.claim().await?,
    };
    let adopted = coordinator.adopted();
    process.note(format_args!(
        "adopts {:?} as {}, wish {wish:?}",
        adopted
            .manifest()
            .meta
            .parent
            .map(|p| p.position.to_string()),
        adopted.position(),
    ));
    process.ledger.borrow_mut().confirm(adopted)?;
    Ok(coordinator)
}

/// One attempt: restores, and goes on from there.
async fn run(
    process: &mut Process,
    backend: &MemoryBackend,
    coordinator: &mut Coordinator,
    from: &Snapshot,
) -> Result<(), End> {
    let parallelism = 1 + process.numbers.below(4) as u32;
    let mut tasks = match tasks::restore(backend, from, parallelism).await {
        // Whoever was overtaken may find nothing any more.
        Err(e) if e.kind() == ErrorKind::NotFound && is_overtaken(process, coordinator).await => {
            return Err(End::Ordinary(e.to_string()));
        }
        tasks => tasks?,
    };
    let expected = process.ledger.borrow().contents(&label_of(from))?;
    let found = tasks::contents(&mut tasks)?;
    if let Some(difference) = found.difference(&expected) {
        let what = format!(
            "{} restored by {parallelism}: {difference}",
            from.position()
        );
        return Err(Violation(what).into());
    }
    let mut contents = found;
    let mut collections = Vec::new();
    for _ in 0..=process.numbers.below(6) {
        let mut taken = Vec::new();
        for _ in 0..=process.numbers.below(2) {
            for _ in 0..process.numbers.below(30) {
                tasks::write(&mut tasks, &mut process.numbers, &mut contents)?;
            }
            taken.push(take(process, coordinator, &mut tasks, &contents)?);
        }
        if process.numbers.happens(200) {
            taken.reverse();
        }
        for snapshot in taken {
            finish(process, coordinator, &mut tasks, snapshot).await?;
        }
        if process.numbers.happens(400) {
            collections.extend(collect(process, coordinator)?);
        }
    }
    if process.numbers.happens(500) {
        for collection in collections {
            collection.await.expect("it does not panic");
        }
    }
    Ok(())
}

fn take(
    process: &mut Process,
    coordinator: &mut Coordinator,
    tasks: &mut [Task],
    contents: &Contents,
) -> Result<Taken, End> {
    let mode = match process.numbers.below(10) {
        0 => SnapshotMode::Savepoint,
        1 => SnapshotMode::Full,
        _ => SnapshotMode::Incremental,
    };
    let trigger = coordinator.trigger(mode)?;
    let mut pending = Vec::new();
    for task in tasks {
        pending.push(task.store.snapshot(&trigger)?);
    }
    Ok(Taken {
        trigger,
        pending,
        contents: Rc::new(contents.clone()),
    })
}

async fn finish(
    process: &mut Process,
    coordinator: &mut Coordinator,
    tasks: &mut [Task],
    taken: Taken,
) -> Result<(), End> {
    let id = taken.trigger.id;
    let mut acks = Vec::new();
    let mut failed = process.numbers.happens(50).then(|| "by chance".to_owned());
    for pending in taken.pending {
        match pending.write().await {
            Ok(ack) => acks.push(ack),
            Err(e) => failed = Some(e.to_string()),
        }
    }
    if id < coordinator.confirmed().id() {
        failed = Some("it is subsumed".to_owned());
    }
    if let Some(reason) = failed {
        process.note(format_args!("aborts {id}: {reason}"));
        coordinator.abort(id)?;
        for task in tasks {
            task.store.abort(id);
        }
        return Ok(());
    }
    let position = Position::new(coordinator.epoch(), id);
    let label = format!("{position} by process {}", process.id.0);
    let parent = coordinator.confirmed().position();
    let contents = taken.contents;
    process
        .ledger
        .borrow_mut()
        .attempt(position, parent, &label, contents);
    let mut acks = Some(acks);
    for _ in 0..COMMIT_TRIES {
        let engine = Bytes::from(label.clone());
        // What is asked again is not looked at again, once the commit has begun.
        let given = match coordinator.in_doubt() {
            Some(_) => Vec::new(),
            None => acks.take().unwrap_or_default(),
        };
        match coordinator.commit(id, given, engine).await {
            Ok(confirmed) => {
                process.note(format_args!("confirms {position}"));
                process.ledger.borrow_mut().confirm(&confirmed.snapshot)?;
                for task in tasks {
                    task.store.confirm(id);
                }
                return Ok(());
            }
            Err(e) if e.kind() == ErrorKind::InDoubt => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(End::Ordinary(format!("{position} stays in doubt")))
}

/// Begins a collection that runs beside all else.
fn collect(
    process: &mut Process,
    coordinator: &mut Coordinator,
) -> Result<Option<JoinHandle<()>>, End> {
    if coordinator.in_doubt().is_some() {
        return Ok(None);
    }
    let last = NonZeroU32::new(1 + process.numbers.below(3) as u32).expect("above 0");
    let mut retention = Retention::last(last);
    retention.age_ms = process.numbers.happens(100).then_some(500);
    let mut options = CollectOptions::default();
    options.deletes_max = process.numbers.happens(300).then_some(2);
    let mut collection = coordinator.collection(&retention, options)?;
    let now_ms = process.numbers.below(1_000) as u64 + 1_700_000_000_000;
    process.clock.set_ms(now_ms);
    process.note("collects");
    let world = Arc::clone(&process.world);
    Ok(Some(tokio::task::spawn_local(async move {
        for _ in 0..3 {
            let Err(e) = collection.run().await else {
                return;
            };
            if e.kind() == ErrorKind::Declined {
                // A later one has overtaken it.
                return;
            }
            // Fenced, or not answered: it is tried again, or not.
            if let End::Violation(Violation(what)) = End::from(e) {
                world.violate(what);
            }
        }
    })))
}

async fn is_overtaken(process: &Process, coordinator: &Coordinator) -> bool {
    let next = ObjectName::Epoch(Epoch(coordinator.epoch().0 + 1));
    let next = Path::from(format!("{ROOT}/{next}"));
    process.world.objects.head(&next).await.is_ok()
}

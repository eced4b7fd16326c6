//! The second phase of a snapshot: from frozen tables to a durable part.

use std::future::Future;
use std::time::Duration;

use backend_core::compact::Compactor;
use backend_core::descriptor::StateUid;
use backend_core::lineage::{Delta, FrozenGeneration, Lineage};
use backend_core::runtime::IoRuntime;
use backend_core::segment::Tier;
use backend_core::table::{FrozenTable, FrozenTimers, SortedMode, Table};
use backend_core::ttl::stored;
use backend_core::upload::{EntrySink, RunSpec, Uploaded, Uploader};
use backend_core::{
    Error, ErrorKind, Generation, Result, SnapshotStats, StateDescriptor, TaskPart, TaskScope,
    TaskSnapshot, Trigger,
};
use bytes::Bytes;
use tokio::sync::watch;

use crate::shared::Shared;
use crate::states::States;

/// The bytes that merges may read behind each snapshot, so that they keep up without taking the
/// disk or the network for themselves.
const MERGED_BYTES_PER_SNAPSHOT: u64 = 256 << 20;

/// What a snapshot knows about its task.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) shared: Shared,
    pub(crate) scope: TaskScope,
    pub(crate) trigger: Trigger,
    pub(crate) lineage: Lineage,
    pub(crate) pause: Duration,
}

impl Task {
    fn uploader(&self) -> Uploader {
        Uploader {
            storage: self.shared.storage.clone(),
            environment: self.shared.environment.clone(),
            runtime: self.shared.runtime.clone(),
            options: self.shared.options.segment.clone(),
        }
    }

    fn compactor(&self) -> Compactor {
        Compactor {
            uploader: self.uploader(),
            lineage: self.lineage.clone(),
            task: self.scope.task,
            range: self.scope.range,
            hasher: self.scope.hasher,
        }
    }

    /// Merges what the chain needs, behind the snapshot that has just become durable. A failure
    /// costs nothing but the merge, which is due again after the next snapshot.
    fn compact(&self, mut open: watch::Receiver<()>) {
        let compactor = self.compactor();
        let epoch = self.trigger.epoch;
        self.shared.runtime.spawn(async move {
            tokio::select! {
                biased;
                _ = open.changed() => {}
                _ = compactor.run(epoch, MERGED_BYTES_PER_SNAPSHOT, false) => {}
            }
        });
    }
}

/// The frozen tables of a store. Wherever it is dropped, the pages go on the backend's threads.
#[derive(Debug)]
pub(crate) struct Frozen {
    generation: FrozenGeneration,
    descriptors: Vec<StateDescriptor>,
    tables: Reaped,
}

#[derive(Debug)]
struct Reaped {
    tables: Vec<FrozenTable>,
    /// Those of the states that are timers.
    timers: Vec<(StateUid, FrozenTimers)>,
    /// What had expired when they were frozen is not stored.
    clock_ms: u64,
    reaper: IoRuntime,
}

impl Drop for Reaped {
    fn drop(&mut self) {
        let frozen = (
            std::mem::take(&mut self.tables),
            std::mem::take(&mut self.timers),
        );
        if !frozen.0.is_empty() {
            self.reaper.spawn(async move { drop(frozen) });
        }
    }
}

impl Frozen {
    /// Freezes all tables.
    pub(crate) fn new(
        states: &mut States,
        generation: FrozenGeneration,
        clock_ms: u64,
        reaper: &IoRuntime,
    ) -> Self {
        let newer_than = generation.newer_than();
        let freeze = |table: &mut Table| match newer_than {
            Some(stamp) => table.freeze_changes(stamp),
            None => table.freeze(),
        };
        let tables = states
            .iter_mut()
            .map(|state| freeze(&mut state.table))
            .collect();
        let timers = states.iter().filter_map(|state| {
            let timers = state.timers.as_ref()?;
            Some((state.descriptor.uid(), timers.freeze()))
        });
        let timers = timers.collect();
        let descriptors = states
            .iter()
            .map(|state| state.descriptor.clone())
            .collect();
        let tables = Reaped {
            tables,
            timers,
            clock_ms,
            reaper: reaper.clone(),
        };
        Self {
            generation,
            descriptors,
            tables,
        }
    }

    /// The generation that was frozen.
    pub(crate) fn generation(&self) -> Generation {
        self.generation.generation()
    }
}

/// Writes `frozen` on the backend's runtime, until `open` says that the store is gone.
pub(crate) fn write(
    task: Task,
    frozen: Frozen,
    mut open: watch::Receiver<()>,
) -> impl Future<Output = Result<TaskSnapshot>> + Send + 'static {
    let runtime = task.shared.runtime.clone();
    runtime.run(async move {
        let closed = open.clone();
        let written = tokio::select! {
            biased;
            _ = open.changed() => Err(Error::new(
                ErrorKind::Cancelled,
                "the store was closed before its snapshot was written",
            )
            .with("snapshot", task.trigger.id)),
            written = write_now(&task, frozen) => written,
        };
        if written.is_ok() {
            task.compact(closed);
        }
        written
    })
}

async fn write_now(task: &Task, frozen: Frozen) -> Result<TaskSnapshot> {
    let environment = &task.shared.environment;
    let started = environment.monotonic();
    let Frozen {
        generation,
        descriptors,
        tables,
    } = frozen;
    if task.lineage.is_overdue() {
        // Snapshots come faster than merges: this one waits, so that chains stay bounded. If the
        // merge fails, the snapshot only has one more run.
        let _ = task
            .compactor()
            .run(task.trigger.epoch, MERGED_BYTES_PER_SNAPSHOT, true)
            .await;
    }
    let delta = generation.start_write();
    let uploaded = upload(task, &descriptors, tables, &generation, &delta).await?;
    let stats = SnapshotStats {
        pause: task.pause,
        write: environment.monotonic().saturating_sub(started),
        entries_new: uploaded.entries(),
        bytes_new: uploaded.bytes(),
        bytes_referenced: (delta.base.iter().map(|segment| segment.meta.bytes))
            .fold(0, u64::saturating_add),
        segments: (delta.base.len() + uploaded.segments.len()) as u32,
        puts: uploaded.puts,
        is_full: delta.newer_than.is_none(),
    };
    let part = TaskPart {
        operator: task.scope.operator.clone(),
        task: task.scope.task,
        range: task.scope.range,
        key_codec: task.scope.key_codec.clone(),
        hash: task.scope.hasher.id(),
        generation_max: generation.generation(),
        states: descriptors,
        segments: delta
            .base
            .iter()
            .chain(&uploaded.segments)
            .cloned()
            .collect(),
        engine: Bytes::new(),
    };
    generation.complete(&delta, &uploaded.segments);
    Ok(TaskSnapshot {
        epoch: task.trigger.epoch,
        id: task.trigger.id,
        attempt: task.trigger.attempt,
        part,
        stats,
    })
}

async fn upload(
    task: &Task,
    descriptors: &[StateDescriptor],
    mut frozen: Reaped,
    generation: &FrozenGeneration,
    delta: &Delta,
) -> Result<Uploaded> {
    let is_full = delta.newer_than.is_none();
    let spec = RunSpec {
        epoch: task.trigger.epoch,
        snapshot: task.trigger.id,
        task: task.scope.task,
        clip: task.scope.range,
        generations: (
            delta.newer_than.unwrap_or_default().next(),
            generation.generation(),
        ),
        tier: if is_full { Tier::BASE } else { Tier::default() },
        run: delta.run,
        inline_bytes_max: if is_full {
            task.shared.options.inline_bytes_max
        } else {
            0
        },
    };
    let newer_than = delta.newer_than.unwrap_or_default();
    let mode = if is_full {
        SortedMode::Full
    } else {
        SortedMode::Changes
    };
    let states = descriptors.iter().map(|d| (d.uid(), d.ttl.is_some()));
    let states: Vec<_> = states.collect();
    let clock_ms = frozen.clock_ms;
    let produce = move |sink: &mut EntrySink<'_>| {
        let mut tables: Vec<_> = states.into_iter().zip(frozen.tables.drain(..)).collect();
        tables.sort_by_key(|((uid, _), _)| *uid);
        // Popped from the back in the order of the format, so that each table is freed when it
        // has been encoded.
        tables.reverse();
        while let Some(((uid, is_timed), table)) = tables.pop() {
            if !is_timed {
                table.into_sorted(uid, newer_than, mode, sink)?;
                continue;
            }
            table.into_sorted(uid, newer_than, mode, &mut |sealed, hidden| {
                let entry = stored(sealed, clock_ms);
                if entry.op == sealed.op {
                    sink(&entry, hidden)
                } else if is_full {
                    Ok(())
                } else {
                    sink(&entry, sealed.value.len() as u64)
                }
            })?;
        }
        // Their uids are above all others.
        let mut timers = std::mem::take(&mut frozen.timers);
        timers.sort_by_key(|(uid, _)| *uid);
        for (uid, timers) in timers {
            timers.into_sorted(uid, newer_than, mode, sink)?;
        }
        Ok(())
    };
    task.uploader().write_run(spec, produce).await
}

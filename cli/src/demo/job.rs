//! One run of the job between two failures: source, router, tasks, coordinator.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use stateline::prelude::*;
use stateline::{Error, ErrorKind, Result, SnapshotId, SnapshotStats, TaskSnapshot, owner_of};

use crate::demo::operators::{Operator, Results};
use crate::demo::report::{Recovery, Report};
use crate::demo::source::Source;
use crate::demo::task::{Acknowledgement, Message, Record, Restores, Tasks};

/// The job's name in its manifests.
pub(crate) const JOB: &str = "daily-active-aircraft";

/// Events that the router gathers before it hands them to the tasks.
const EVENTS_PER_BATCH: u64 = 500;

/// A running job. Dropping it loses all that is not in a confirmed snapshot.
#[derive(Debug)]
pub(crate) struct Job {
    storage: Storage,
    environment: stateline::clock::SharedEnvironment,
    backend: MemoryBackend,
    coordinator: Coordinator,
    tasks: Tasks,
    acknowledge: Sender<Acknowledgement>,
    acknowledged: Receiver<Acknowledgement>,
    pending: BTreeMap<SnapshotId, Pending>,
    position: u64,
}

/// A snapshot that waits for acknowledgements.
#[derive(Debug)]
struct Pending {
    position: u64,
    began: Duration,
    acks: Vec<TaskSnapshot>,
}

impl Job {
    /// Claims the job in `storage` and starts it where its last snapshot left it.
    pub(crate) fn start(storage: &Storage, tasks: u32) -> Result<(Self, Recovery)> {
        let environment = SystemEnvironment::shared();
        let job = JobId::new(JOB)?;
        let store = block_on(SnapshotStore::open(
            storage.clone(),
            job,
            environment.clone(),
        ))?;
        let coordinator = block_on(store.claim())?;
        let options = MemoryOptions::default();
        let backend = MemoryBackend::new(storage.clone(), environment.clone(), options)?;
        let (acknowledge, acknowledged) = channel();
        let from = coordinator.adopted().clone();
        let (tasks, recovery) =
            restore(&backend, &from, tasks, storage, &environment, &acknowledge)?;
        let job = Self {
            storage: storage.clone(),
            environment,
            backend,
            coordinator,
            tasks,
            acknowledge,
            acknowledged,
            pending: BTreeMap::new(),
            position: recovery.position,
        };
        Ok((job, recovery))
    }

    /// Processes events up to `until`, with a snapshot at every multiple of `snapshot_every`.
    pub(crate) fn run(
        &mut self,
        source: &Source,
        until: u64,
        snapshot_every: u64,
        report: &mut Report,
    ) -> Result<()> {
        while self.position < until {
            let next_snapshot = (self.position / snapshot_every + 1) * snapshot_every;
            let end = until
                .min(next_snapshot)
                .min(self.position + EVENTS_PER_BATCH);
            self.route(source, end)?;
            report.progress(end);
            if end == next_snapshot && end < until {
                self.trigger()?;
            }
            while let Ok(ack) = self.acknowledged.try_recv() {
                self.on_acknowledged(ack?, report)?;
            }
        }
        Ok(())
    }

    /// Takes a last snapshot and goes on from it with another number of tasks.
    pub(crate) fn rescale(&mut self, tasks: u32, report: &mut Report) -> Result<Recovery> {
        self.trigger()?;
        while !self.pending.is_empty() {
            let ack = self.acknowledged.recv().map_err(|_| {
                Error::new(
                    ErrorKind::Closed,
                    "the tasks ended before their last snapshot",
                )
            })?;
            self.on_acknowledged(ack?, report)?;
        }
        self.coordinator.next_attempt()?;
        let from = self.coordinator.confirmed().clone();
        let (tasks, recovery) = restore(
            &self.backend,
            &from,
            tasks,
            &self.storage,
            &self.environment,
            &self.acknowledge,
        )?;
        std::mem::replace(&mut self.tasks, tasks).kill();
        Ok(recovery)
    }

    /// Ends the input and gathers the results.
    pub(crate) fn finish(self) -> Result<Results> {
        self.tasks.finish()
    }

    /// Loses everything in memory: tasks, state, snapshots under way, and the coordinator.
    pub(crate) fn crash(self) {
        self.tasks.kill();
    }

    /// Sends the events up to `end` to the tasks that own their keys.
    fn route(&mut self, source: &Source, end: u64) -> Result<()> {
        let tasks = self.tasks.count();
        let mut batches: Vec<Vec<Record>> = (0..tasks).map(|_| Vec::new()).collect();
        for position in self.position..end {
            let flight = source.at(position).ok_or_else(|| {
                Error::new(ErrorKind::Invalid, "the source ends before the position")
                    .with("position", position)
            })?;
            for operator in Operator::ALL {
                if let Some(key) = operator.key(flight)? {
                    let owner = owner_of(key.hash(), tasks) as usize;
                    batches[owner].push(Record {
                        operator,
                        key,
                        flight: flight.clone(),
                    });
                }
            }
        }
        for (task, batch) in (0..tasks).zip(batches) {
            if !batch.is_empty() {
                self.tasks.send(task, Message::Records(batch))?;
            }
        }
        self.position = end;
        Ok(())
    }

    fn trigger(&mut self) -> Result<()> {
        let trigger = self.coordinator.trigger(SnapshotMode::Incremental)?;
        let began = self.environment.monotonic();
        let pending = Pending {
            position: self.position,
            began,
            acks: Vec::new(),
        };
        self.pending.insert(trigger.id, pending);
        self.tasks.broadcast(|| Message::Snapshot(trigger))
    }

    /// Commits a snapshot once every task has acknowledged it.
    fn on_acknowledged(&mut self, ack: TaskSnapshot, report: &mut Report) -> Result<()> {
        let id = ack.id;
        let wanted = self.tasks.count() as usize * Operator::ALL.len();
        let Some(pending) = self.pending.get_mut(&id) else {
            return Ok(());
        };
        pending.acks.push(ack);
        if pending.acks.len() < wanted {
            return Ok(());
        }
        let pending = self.pending.remove(&id).expect("it was found just now");
        let stats: Vec<SnapshotStats> = pending.acks.iter().map(|ack| ack.stats).collect();
        let position = Bytes::copy_from_slice(&pending.position.to_le_bytes());
        let confirmed = block_on(self.coordinator.commit(id, pending.acks, position))?;
        // Older snapshots that are still under way are subsumed by this one.
        self.pending.retain(|older, _| *older > id);
        let took = self.environment.monotonic().saturating_sub(pending.began);
        let all_bytes = stored_bytes(&confirmed.snapshot);
        report.snapshot(id, pending.position, &stats, all_bytes, took);
        self.tasks.broadcast(|| Message::Confirmed(id))
    }
}

/// The bytes of all segments of a snapshot; one that several tasks share counts once.
fn stored_bytes(snapshot: &Snapshot) -> u64 {
    let segments = snapshot
        .manifest()
        .parts
        .iter()
        .flat_map(|part| &part.task.segments);
    let mut objects = BTreeMap::new();
    let mut inline = 0;
    for segment in segments {
        match segment.meta.location.object() {
            Some(name) => {
                objects.insert(name, segment.meta.bytes);
            }
            None => inline += segment.meta.bytes,
        }
    }
    inline + objects.values().sum::<u64>()
}

/// Opens the state of `tasks` tasks as `from` holds it.
fn restore(
    backend: &MemoryBackend,
    from: &Snapshot,
    tasks: u32,
    storage: &Storage,
    environment: &stateline::clock::SharedEnvironment,
    acknowledge: &Sender<Acknowledgement>,
) -> Result<(Tasks, Recovery)> {
    let began = environment.monotonic();
    let reads = storage.requests().gets;
    let mut restores: Restores = Vec::new();
    for operator in Operator::ALL {
        let plan = from
            .restore_plan_or_new(&operator.id()?, tasks)?
            .unwrap_or_default();
        restores.push((operator, plan.into_iter().map(Some).collect()));
    }
    let segments = from
        .manifest()
        .parts
        .iter()
        .map(|part| part.task.segments.len());
    let segments = segments.sum::<usize>() as u64;
    let tasks = Tasks::start(backend, tasks, restores, acknowledge)?;
    let position = from
        .engine()
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let recovery = Recovery {
        snapshot: from.id().0,
        epoch: from.epoch().0,
        position,
        segments,
        bytes: stored_bytes(from),
        reads: storage.requests().gets - reads,
        took: environment.monotonic().saturating_sub(began),
    };
    Ok((tasks, recovery))
}

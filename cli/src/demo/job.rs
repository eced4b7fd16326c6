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
use crate::size::Size;

/// The job's name in its manifests.
pub(crate) const JOB: &str = "daily-active-aircraft";

/// Events that the router gathers before it hands them to the tasks.
const EVENTS_PER_BATCH: u64 = 500;

/// Snapshots under way at a time; the source waits before it begins another.
const PENDING_MAX: usize = 2;

/// How long the tasks may take to write a snapshot before the job gives up.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_mins(2);

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
            let routed = self.route(source, end);
            routed.map_err(|e| self.cause_of(e))?;
            report.progress(end);
            if end == next_snapshot && end < until {
                self.settle(PENDING_MAX - 1, report)?;
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
        self.settle(0, report)?;
        self.trigger()?;
        self.settle(0, report)?;
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
        // A snapshot that was declined leaves the one before: the source is rewound to it.
        self.position = recovery.position;
        Ok(recovery)
    }

    /// Waits until at most `pending_max` snapshots are under way.
    fn settle(&mut self, pending_max: usize, report: &mut Report) -> Result<()> {
        while self.pending.len() > pending_max {
            let ack = self
                .acknowledged
                .recv_timeout(ACKNOWLEDGED_WITHIN)
                .map_err(|_| {
                    Error::new(ErrorKind::Transient, "the tasks wrote no snapshot in time")
                        .with("seconds", ACKNOWLEDGED_WITHIN.as_secs())
                })?;
            self.on_acknowledged(ack?, report)?;
        }
        Ok(())
    }

    /// What a task said before it ended, if that is why nothing can be sent to it.
    fn cause_of(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::Closed {
            return error;
        }
        let said = self.acknowledged.try_iter().find_map(Result::err);
        said.unwrap_or(error)
    }

    /// Ends the input, lets the last snapshots end too, and gathers the results.
    pub(crate) fn finish(mut self, report: &mut Report) -> Result<Results> {
        self.settle(0, report)?;
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
        let confirmed = match block_on(self.coordinator.commit(id, pending.acks, position)) {
            Ok(confirmed) => confirmed,
            Err(e) if e.kind() == ErrorKind::Declined => {
                report.declined(id, &e);
                self.coordinator.abort(id)?;
                return self.tasks.broadcast(|| Message::Aborted(id));
            }
            Err(e) => return Err(e),
        };
        // Older snapshots that are still under way are subsumed by this one.
        self.pending.retain(|older, _| *older > id);
        let took = self.environment.monotonic().saturating_sub(pending.began);
        let size = Size::of(confirmed.snapshot.manifest());
        report.snapshot(id, pending.position, &stats, size, took);
        self.tasks.broadcast(|| Message::Confirmed(id))
    }
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
    let tasks = Tasks::start(backend, tasks, restores, acknowledge)?;
    let position = from
        .engine()
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let recovery = Recovery {
        snapshot: from.id().0,
        epoch: from.epoch().0,
        position,
        size: Size::of(from.manifest()),
        reads: storage.requests().gets - reads,
        took: environment.monotonic().saturating_sub(began),
    };
    Ok((tasks, recovery))
}

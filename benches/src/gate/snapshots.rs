//! Snapshots: the pause, the size, the time, and the way back.

use std::time::Duration;

use backend_core::clock::SystemEnvironment;
use backend_core::storage::Storage;
use backend_core::{
    Attempt, CodecId, Epoch, HashId, HashRange, KeyCodec, KeyedStore, OperatorId, Result,
    SnapshotId, SnapshotMode, StateBackend, TaskRestore, TaskScope, TaskSnapshot, Trigger,
    ValueState,
};
use backend_memory::{MemoryBackend, MemoryOptions};
use futures::executor::block_on;

use super::VALUES_BELOW;
use crate::measure::{Clock, Numbers, nanos_each};
use crate::report::{Report, Target};

/// Increments that the amortised figure covers.
const INCREMENTS: u64 = 13;

/// Measures snapshots at `entries`, and their pause at other sizes, too.
pub(super) fn measure(report: &mut Report, entries: u64) -> Result<()> {
    println!("\nsnapshots, local directory, one thread encodes");
    for size in [10_000, 100_000, 1_000_000, entries, 2 * entries] {
        let mut job = Job::filled(size)?;
        let mut pauses = Vec::new();
        for _ in 0..5 {
            // A write between two freezes, so that each has something to freeze.
            job.put(0, 1)?;
            let pending = job
                .store
                .snapshot(&job.next_trigger(SnapshotMode::Incremental))?;
            pauses.push(pending.pause().as_secs_f64() * 1e6);
        }
        let name = format!("pause at {size} entries");
        let worst = pauses.iter().copied().fold(0.0, f64::max);
        report.figure(
            &name,
            worst,
            Target::AtMost(100.0),
            "us",
            "the longest of 5".to_owned(),
        );
    }
    let mut job = Job::filled(entries)?;
    let (cpu, full) = Clock::ProcessCpu.time(|| job.write(SnapshotMode::Full));
    let full = full?;
    let size = full.stats.bytes_new as f64 / entries as f64;
    report.figure(
        "full snapshot: size",
        size,
        Target::AtMost(8.0),
        "B",
        "bytes an entry".to_owned(),
    );
    let cost = nanos_each(cpu, entries as usize);
    let note = "an entry: walk, sort, encode, checksum, put".to_owned();
    report.figure(
        "full snapshot: CPU",
        cost,
        Target::AtMost(150.0),
        "ns",
        note,
    );
    increments(report, &mut job, entries)?;
    restore(report, &mut job, entries)
}

fn increments(report: &mut Report, job: &mut Job, entries: u64) -> Result<()> {
    let mut numbers = Numbers(3);
    let (mut bytes, mut changed, mut cpu) = (0, 0, Duration::ZERO);
    for _ in 0..INCREMENTS {
        for _ in 0..entries / 100 {
            job.put(numbers.below(entries), numbers.below(VALUES_BELOW))?;
        }
        let (time, taken) = Clock::ProcessCpu.time(|| job.write(SnapshotMode::Incremental));
        cpu += time;
        let stats = taken?.stats;
        bytes += stats.bytes_new;
        changed += stats.entries_new;
    }
    let name = "incremental after 1 %, 13 in turn: size";
    let note = format!("bytes a changed entry, {changed} changed");
    report.figure(
        name,
        bytes as f64 / changed as f64,
        Target::AtMost(20.0),
        "B",
        note,
    );
    println!(
        "     (CPU {:.0} ns a changed entry)",
        nanos_each(cpu, changed as usize)
    );
    Ok(())
}

fn restore(report: &mut Report, job: &mut Job, entries: u64) -> Result<()> {
    let last = job.write(SnapshotMode::Incremental)?;
    let segments = last.part.segments.len();
    let restore = TaskRestore {
        snapshot: last.id,
        source: job.storage.clone(),
        range: HashRange::ALL,
        key_codec: codec(),
        hash: HashId::XXH3_64,
        ttl_clock_ms: 0,
        parts: vec![last.part.into()],
    };
    let scope = job.scope.clone();
    let (wall, store) = Clock::Wall.time(|| block_on(job.backend.open(scope, Some(restore))));
    let mut store = store?;
    let visits = ValueState::<u64>::register(&mut *store, "visits")?;
    let count = store.entry_count(visits.id()).wait()?;
    assert_eq!(count, entries, "the restored state is whole");
    let note = format!("wall, {segments} segments");
    report.figure(
        "restore",
        wall.as_secs_f64(),
        Target::AtMost(2.0),
        "s",
        note,
    );
    Ok(())
}

fn codec() -> CodecId {
    u64::id()
}

/// One task with its store, and a local directory for its snapshots.
struct Job {
    store: Box<dyn KeyedStore>,
    visits: ValueState<u64>,
    scope: TaskScope,
    backend: MemoryBackend,
    storage: Storage,
    last: std::cell::Cell<u64>,
    _dir: tempfile::TempDir,
}

impl Job {
    fn filled(entries: u64) -> Result<Self> {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let storage = Storage::local(dir.path())?;
        let environment = SystemEnvironment::shared();
        let backend = MemoryBackend::new(storage.clone(), environment, MemoryOptions::default())?;
        let scope = TaskScope::new(OperatorId::new("gate")?, 0, 1, codec());
        let mut store = block_on(backend.open(scope.clone(), None))?;
        let visits = ValueState::<u64>::register(&mut *store, "visits")?;
        let last = std::cell::Cell::new(0);
        let mut job = Self {
            store,
            visits,
            scope,
            backend,
            storage,
            last,
            _dir: dir,
        };
        let mut numbers = Numbers(2);
        for key in 0..entries {
            job.put(key, numbers.below(VALUES_BELOW))?;
        }
        Ok(job)
    }

    fn put(&mut self, key: u64, value: u64) -> Result<()> {
        let key = self.visits.key(&key)?;
        self.visits.put(&mut *self.store, &key, &value).map(|_| ())
    }

    fn next_trigger(&self, mode: SnapshotMode) -> Trigger {
        self.last.set(self.last.get() + 1);
        Trigger {
            epoch: Epoch(1),
            id: SnapshotId(self.last.get()),
            base: Some(SnapshotId(self.last.get() - 1)).filter(|id| id.0 > 0),
            attempt: Attempt(0),
            mode,
        }
    }

    fn write(&mut self, mode: SnapshotMode) -> Result<TaskSnapshot> {
        let trigger = self.next_trigger(mode);
        let taken = block_on(self.store.snapshot(&trigger)?.write())?;
        self.store.confirm(trigger.id);
        Ok(taken)
    }
}

//! Single operations beside hashbrown's typed map, and beside Flink's published figures.

use std::hint::black_box;
use std::time::Duration;

use backend_core::clock::SystemEnvironment;
use backend_core::generation::WriteContext;
use backend_core::storage::Storage;
use backend_core::table::Table;
use backend_core::{
    Generation, HashRange, KeyCodec, KeyHasher, KeyedStore, OperatorId, Result, StateBackend,
    StateKey, StateKind, TaskScope, ValueState,
};
use backend_memory::{MemoryBackend, MemoryOptions};
use hashbrown::HashMap;

use super::VALUES_BELOW;
use crate::measure::{Clock, Numbers, median, nanos_each, resident_bytes};
use crate::report::{Report, Target};

/// Operations of one round.
const OPERATIONS: usize = 1_000_000;

/// Keys in a batch.
const BATCH: usize = 64;

/// Entries of the small state, on which Flink was measured.
const SMALL: u64 = 500_000;

/// Flink 2.3's heap backend at 500,000 keys: nanoseconds of a get, and of a read-modify-write.
const FLINK_HEAP_NS: (f64, f64) = (1e6 / 4_400.0, 1e6 / 2_000.0);

const CONTEXT: WriteContext = WriteContext {
    generation: Generation(1),
    covered: Generation(0),
    anchor: Generation(0),
    incremental: true,
};

/// Measures single operations.
pub(super) fn measure(report: &mut Report, entries: u64, rounds: usize) -> Result<()> {
    at_size(report, entries, rounds, false)?;
    at_size(report, SMALL.min(entries), rounds, true)
}

fn at_size(report: &mut Report, entries: u64, rounds: usize, is_small: bool) -> Result<()> {
    println!("\noperations at {entries} entries, one thread, medians of {rounds} rounds");
    let before = resident_bytes();
    let mut table = Table::new(StateKind::Value, HashRange::ALL, KeyHasher::XXH3_64);
    let worst_batch = fill(&mut table, entries)?;
    let resident = (resident_bytes().saturating_sub(before)) as f64 / entries as f64;
    let mut peer: HashMap<u64, u64> = HashMap::new();
    let mut numbers = Numbers(1);
    for key in 0..entries {
        peer.insert(key, numbers.below(VALUES_BELOW));
    }
    let mut store = open_store()?;
    let visits = ValueState::<u64>::register(&mut *store, "visits")?;
    for (key, value) in &peer {
        visits.put(&mut *store, &visits.key(key)?, value)?;
    }

    let mut times = Times::default();
    for round in 0..rounds {
        let keys = random_keys(entries, round as u64);
        times.round(&keys, &peer, &table, &mut *store, visits)?;
        times.updates(&keys, &mut peer, &mut table, &mut *store, visits)?;
    }
    times.report(report, is_small);
    if !is_small {
        let worst_us = worst_batch.as_secs_f64() * 1e6;
        let note = "CPU of the slowest batch of 16 inserts".to_owned();
        report.figure(
            "slowest insert",
            worst_us,
            Target::AtMost(1_000.0),
            "us",
            note,
        );
        let note = "resident memory after the inserts".to_owned();
        report.figure("bytes an entry", resident, Target::AtMost(72.0), "B", note);
    }
    Ok(())
}

/// Inserts keys `0..entries` and answers the CPU time of the slowest batch.
fn fill(table: &mut Table, entries: u64) -> Result<Duration> {
    const INSERTS: u64 = 16;
    let mut numbers = Numbers(1);
    let mut worst = Duration::ZERO;
    for batch in (0..entries).step_by(INSERTS as usize) {
        let started = Clock::ThreadCpu.now();
        for key in batch..(batch + INSERTS).min(entries) {
            let value = numbers.below(VALUES_BELOW).to_le_bytes();
            table.put(&key_of(key)?, &value, &CONTEXT);
        }
        worst = worst.max(Clock::ThreadCpu.now().saturating_sub(started));
    }
    Ok(worst)
}

fn open_store() -> Result<Box<dyn KeyedStore>> {
    let storage = Storage::memory();
    let environment = SystemEnvironment::shared();
    let backend = MemoryBackend::new(storage, environment, MemoryOptions::default())?;
    let scope = TaskScope::new(OperatorId::new("gate")?, 0, 1, u64::id());
    futures::executor::block_on(backend.open(scope, None))
}

fn random_keys(entries: u64, seed: u64) -> Vec<u64> {
    let mut numbers = Numbers(seed.wrapping_mul(0x1234_5678_9abc_def1) + 7);
    (0..OPERATIONS).map(|_| numbers.below(entries)).collect()
}

#[inline]
fn key_of(key: u64) -> Result<StateKey> {
    StateKey::new(&KeyHasher::XXH3_64, &key.to_be_bytes())
}

/// Nanoseconds an operation, by round.
#[derive(Default)]
struct Times {
    peer_get: Vec<f64>,
    table_get: Vec<f64>,
    table_batch: Vec<f64>,
    store_get: Vec<f64>,
    peer_update: Vec<f64>,
    table_update: Vec<f64>,
    store_update: Vec<f64>,
    store_read_modify_write: Vec<f64>,
}

impl Times {
    fn round(
        &mut self,
        keys: &[u64],
        peer: &HashMap<u64, u64>,
        table: &Table,
        store: &mut dyn KeyedStore,
        visits: ValueState<u64>,
    ) -> Result<()> {
        let (time, sum) = Clock::Wall.time(|| keys.iter().map(|key| peer[key]).sum::<u64>());
        black_box(sum);
        self.peer_get.push(nanos_each(time, keys.len()));

        let (time, sum) = Clock::Wall.time(|| {
            keys.iter().try_fold(0, |sum, key| {
                Ok::<_, backend_core::Error>(sum + number(table.get(&key_of(*key)?)))
            })
        });
        black_box(sum?);
        self.table_get.push(nanos_each(time, keys.len()));

        let mut batch: Vec<StateKey> = Vec::with_capacity(BATCH);
        let (time, sum) = Clock::Wall.time(|| {
            let mut sum = 0;
            for chunk in keys.chunks(BATCH) {
                batch.clear();
                for key in chunk {
                    batch.push(key_of(*key)?);
                }
                table.get_many(&batch, |_, value| sum += number(value));
            }
            Ok::<_, backend_core::Error>(sum)
        });
        black_box(sum?);
        self.table_batch.push(nanos_each(time, keys.len()));

        let (time, sum) = Clock::Wall.time(|| {
            keys.iter().try_fold(0, |sum, key| {
                let key = visits.key(key)?;
                Ok::<_, backend_core::Error>(sum + visits.get(store, &key).wait()?.unwrap_or(0))
            })
        });
        black_box(sum?);
        self.store_get.push(nanos_each(time, keys.len()));
        Ok(())
    }

    fn updates(
        &mut self,
        keys: &[u64],
        peer: &mut HashMap<u64, u64>,
        table: &mut Table,
        store: &mut dyn KeyedStore,
        visits: ValueState<u64>,
    ) -> Result<()> {
        let (time, ()) = Clock::Wall.time(|| {
            for key in keys {
                *peer.entry(*key).or_insert(0) += 1;
            }
        });
        self.peer_update.push(nanos_each(time, keys.len()));

        let (time, done) = Clock::Wall.time(|| {
            keys.iter().try_for_each(|key| {
                table.update(&key_of(*key)?, &CONTEXT, |old, edit| {
                    edit.put(&(number(old) + 1).to_le_bytes());
                });
                Ok::<_, backend_core::Error>(())
            })
        });
        done?;
        self.table_update.push(nanos_each(time, keys.len()));

        let (time, done) = Clock::Wall.time(|| {
            keys.iter().try_for_each(|key| {
                let key = visits.key(key)?;
                visits
                    .update(store, &key, |old| Some(old.unwrap_or(0) + 1))
                    .wait()
                    .map(|_| ())
            })
        });
        done?;
        self.store_update.push(nanos_each(time, keys.len()));

        let (time, done) = Clock::Wall.time(|| {
            keys.iter().try_for_each(|key| {
                let key = visits.key(key)?;
                let old = visits.get(store, &key).wait()?.unwrap_or(0);
                visits.put(store, &key, &(old + 1)).map(|_| ())
            })
        });
        done?;
        self.store_read_modify_write
            .push(nanos_each(time, keys.len()));
        Ok(())
    }

    fn report(self, report: &mut Report, is_small: bool) {
        let (peer_get, peer_update) = (median(self.peer_get), median(self.peer_update));
        let against = |got: f64, peer: f64| format!("{got:.0} ns beside hashbrown's {peer:.0} ns");
        let mut ratio = |name: &str, got: Vec<f64>, peer: f64, target: f64| {
            let got = median(got);
            report.figure(
                name,
                got / peer,
                Target::AtMost(target),
                "x",
                against(got, peer),
            );
            got
        };
        ratio("table: get", self.table_get, peer_get, 3.0);
        ratio(
            "table: get in batches of 64",
            self.table_batch,
            peer_get,
            1.6,
        );
        ratio(
            "table: one-probe update",
            self.table_update,
            peer_update,
            4.5,
        );
        let get = ratio(
            "typed handle, dyn store: get",
            self.store_get,
            peer_get,
            3.0,
        );
        ratio(
            "typed handle, dyn store: update",
            self.store_update,
            peer_update,
            4.5,
        );
        let read_modify_write = median(self.store_read_modify_write);
        if is_small {
            let note = |got: f64, flink: f64| format!("{got:.0} ns; Flink's heap {flink:.0} ns");
            let (flink_get, flink_update) = FLINK_HEAP_NS;
            let name = "typed handle: get, times Flink's heap";
            report.figure(
                name,
                flink_get / get,
                Target::AtLeast(4.0),
                "x",
                note(get, flink_get),
            );
            let name = "typed handle: get then put, times Flink's heap";
            let got = flink_update / read_modify_write;
            report.figure(
                name,
                got,
                Target::AtLeast(5.0),
                "x",
                note(read_modify_write, flink_update),
            );
        }
    }
}

#[inline]
fn number(bytes: Option<&[u8]>) -> u64 {
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

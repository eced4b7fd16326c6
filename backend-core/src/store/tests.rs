//! Coordinators on real and on faulty stores.

mod collect;
mod commit;
mod damage;
mod doubt;
mod faulty;
mod lead;
mod leftovers;
mod operators;
mod pins;
mod refusals;
mod restore;
mod review;
mod sweep;

use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;

use crate::clock::{ManualEnvironment, SharedEnvironment};
use crate::contract::{SnapshotMode, SnapshotStats, TaskPart, TaskSnapshot, Trigger};
use crate::descriptor::{CodecId, StateDescriptor};
use crate::error::{ErrorKind, Result};
use crate::generation::Generation;
use crate::hash::HashId;
use crate::ids::{Attempt, Digest, Epoch, JobId, OperatorId, SnapshotId, TaskIndex, UniqueId};
use crate::names::SegmentName;
use crate::range::HashRange;
use crate::segment::{SegmentLocation, SegmentMeta, SegmentRef, Tier};
use crate::storage::Storage;
use crate::store::{Confirmed, Coordinator, SnapshotStore, StoreOptions};

fn env(seed: u64) -> SharedEnvironment {
    Arc::new(ManualEnvironment::new(1_700_000_000_000, seed))
}

fn job() -> JobId {
    JobId::new("words").expect("valid")
}

fn operator(name: &str) -> OperatorId {
    OperatorId::new(name).expect("valid")
}

fn open(storage: &Storage, seed: u64) -> SnapshotStore {
    open_with(storage, seed, 60_000)
}

/// A store that gives up after three tries of `request_ms_max`.
fn open_with(storage: &Storage, seed: u64, request_ms_max: u64) -> SnapshotStore {
    let options = StoreOptions {
        tries_max: 3,
        request_ms_max,
        backoff_ms_first: 1,
        backoff_ms_max: 2,
        io_threads: 1,
    };
    let opened = SnapshotStore::open_with(storage.clone(), job(), env(seed), options);
    block_on(opened).expect("the store can do what it must")
}

fn claim(storage: &Storage, seed: u64) -> Coordinator {
    block_on(open(storage, seed).claim()).expect("the epoch is free")
}

/// A coordinator that does not wait for long, for stores that stall.
fn claim_hasty(storage: &Storage, seed: u64) -> Coordinator {
    block_on(open_with(storage, seed, 150).claim()).expect("the epoch is free")
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.expect_err("it is refused").kind()
}

/// A reference to a segment object that was written for snapshot `id` of `epoch`.
fn segment(epoch: u64, id: u64, task: u32, clip: HashRange) -> SegmentRef {
    let name = SegmentName {
        epoch: Epoch(epoch),
        snapshot: SnapshotId(id),
        task: TaskIndex(task),
        index: 0,
        unique: UniqueId(u128::from(id) << 32 | u128::from(task)),
    };
    SegmentRef {
        meta: Arc::new(SegmentMeta {
            location: SegmentLocation::Object(name),
            bytes: 1_000,
            digest: Digest::of(&name.unique.0.to_le_bytes()),
            puts: 1,
            deletes: 0,
            delete_prefixes: 0,
            shadowed_bytes: 0,
            generations: (Generation(1), Generation(1)),
            shards: (*clip.shards().start(), *clip.shards().end()),
            expires_ms_min: None,
            regions: Vec::new(),
        }),
        clip,
        tier: Tier(0),
        run: 0,
    }
}

fn inline(bytes: impl Into<Bytes>, clip: HashRange) -> SegmentRef {
    let bytes = bytes.into();
    let mut segment = segment(0, 0, 0, clip);
    let meta = Arc::make_mut(&mut segment.meta);
    meta.bytes = bytes.len() as u64;
    meta.digest = Digest::of(&bytes);
    meta.location = SegmentLocation::Inline(bytes);
    segment
}

fn part(name: &str, task: u32, parallelism: u32, segments: Vec<SegmentRef>) -> TaskPart {
    TaskPart {
        operator: operator(name),
        task: TaskIndex(task),
        range: HashRange::of_task(task, parallelism),
        key_codec: CodecId::new("utf8"),
        hash: HashId::XXH3_64,
        generation_max: Generation(9),
        states: vec![StateDescriptor::value("count", CodecId::new("u64"))],
        segments,
        engine: Bytes::from(format!("{name} {task}")),
    }
}

fn ack(trigger: &Trigger, part: TaskPart) -> TaskSnapshot {
    TaskSnapshot {
        epoch: trigger.epoch,
        id: trigger.id,
        attempt: trigger.attempt,
        part,
        stats: SnapshotStats::default(),
    }
}

/// Acknowledgements of `parallelism` tasks of one operator, each with a new segment.
fn acks(trigger: &Trigger, parallelism: u32) -> Vec<TaskSnapshot> {
    let task = |task| {
        let range = HashRange::of_task(task, parallelism);
        let segment = segment(trigger.epoch.0, trigger.id.0, task, range);
        ack(trigger, part("count", task, parallelism, vec![segment]))
    };
    (0..parallelism).map(task).collect()
}

fn trigger(coordinator: &mut Coordinator) -> Trigger {
    coordinator
        .trigger(SnapshotMode::Incremental)
        .expect("it leads")
}

fn commit(
    coordinator: &mut Coordinator,
    trigger: &Trigger,
    engine: &'static str,
) -> Result<Confirmed> {
    block_on(coordinator.commit(trigger.id, acks(trigger, 2), engine.into()))
}

fn snapshot(coordinator: &mut Coordinator, engine: &'static str) -> Result<Confirmed> {
    let trigger = trigger(coordinator);
    commit(coordinator, &trigger, engine)
}

const FIRST_ATTEMPT: Attempt = Attempt(0);

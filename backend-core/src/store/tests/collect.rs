//! Collections: what goes, and what stays.

use std::num::NonZeroU32;

use super::*;
use crate::manifest::Position;
use crate::names::{Folder, ObjectName, PartsName};
use crate::store::{CollectOptions, CollectReport, KeepReason, Retention};

pub(super) fn last(n: u32) -> Retention {
    Retention::last(NonZeroU32::new(n).expect("above 0"))
}

pub(super) fn put(storage: &Storage, segment: &SegmentRef) {
    let object = segment.meta.location.object().expect("an object");
    let created = storage.create(&object, Bytes::from_static(b"state"));
    block_on(created).expect("the store answers");
}

/// A new segment of the snapshot of `trigger`, which is in the store.
pub(super) fn stored(storage: &Storage, trigger: &Trigger) -> SegmentRef {
    let segment = segment(trigger.epoch.0, trigger.id.0, 0, HashRange::ALL);
    put(storage, &segment);
    segment
}

pub(super) fn commit_of(
    coordinator: &mut Coordinator,
    trigger: &Trigger,
    segments: &[SegmentRef],
) -> Result<Confirmed> {
    let acks = vec![ack(trigger, part("count", 0, 1, segments.to_vec()))];
    block_on(coordinator.commit(trigger.id, acks, Bytes::new()))
}

/// A snapshot of `before` and a new segment, which is returned.
pub(super) fn extend(
    coordinator: &mut Coordinator,
    storage: &Storage,
    before: &[SegmentRef],
) -> SegmentRef {
    let trigger = trigger(coordinator);
    let new = stored(storage, &trigger);
    let mut segments = before.to_vec();
    segments.push(new.clone());
    commit_of(coordinator, &trigger, &segments).expect("it leads");
    new
}

fn savepoint(coordinator: &mut Coordinator, storage: &Storage) -> Position {
    let trigger = coordinator
        .trigger(SnapshotMode::Savepoint)
        .expect("it leads");
    let new = stored(storage, &trigger);
    let confirmed = commit_of(coordinator, &trigger, &[new]).expect("it leads");
    confirmed.snapshot.position()
}

pub(super) fn collect(
    coordinator: &mut Coordinator,
    retention: &Retention,
) -> Result<CollectReport> {
    let collection = coordinator.collection(retention, CollectOptions::default());
    block_on(collection?.run())
}

pub(super) fn manifests(storage: &Storage) -> Vec<u64> {
    let listed = block_on(storage.list(Folder::Snapshots)).expect("listed");
    let id = |name| match name {
        ObjectName::Manifest(_, id) => id.0,
        other => panic!("{other} is no manifest"),
    };
    listed.iter().map(|o| id(o.name)).collect()
}

/// The ids of the segments that are there.
pub(super) fn segments(storage: &Storage) -> Vec<u64> {
    let listed = block_on(storage.list(Folder::Segments)).expect("listed");
    let id = |name| match name {
        ObjectName::Segment(name) => name.snapshot.0,
        other => panic!("{other} is no segment"),
    };
    listed.iter().map(|o| id(o.name)).collect()
}

pub(super) fn at(epoch: u64, id: u64) -> Position {
    Position::new(Epoch(epoch), SnapshotId(id))
}

#[test]
fn g1_g3_g10_what_the_chain_names_stays_and_the_rest_goes() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    let two = extend(&mut leader, &storage, &[]);
    let three = extend(&mut leader, &storage, std::slice::from_ref(&two));
    let four = extend(&mut leader, &storage, &[two.clone(), three.clone()]);
    let report = collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(report.condemned, [at(1, 1), at(1, 2), at(1, 3)]);
    assert_eq!((report.manifests, report.objects), (3, 0));
    assert_eq!(manifests(&storage), [4]);
    assert_eq!(segments(&storage), [2, 3, 4], "the chain names them all");

    // A new base, without 2 and 3: they go as soon as nothing that is kept names them.
    extend(&mut leader, &storage, &[four]);
    let report = collect(&mut leader, &last(2)).expect("it leads");
    assert_eq!((manifests(&storage), report.objects), (vec![4, 5], 0));
    let report = collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!((manifests(&storage), report.objects), (vec![5], 2));
    assert_eq!(segments(&storage), [4, 5]);
}

#[test]
fn g11_each_object_is_deleted_once_and_not_earlier() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    for _ in 0..3 {
        extend(&mut leader, &storage, &[]);
    }
    let before = storage.requests().deletes;
    collect(&mut leader, &last(2)).expect("it leads");
    assert_eq!(segments(&storage), [3, 4]);
    assert_eq!(
        storage.requests().deletes - before,
        3,
        "manifest 1, and 2 with its segment"
    );
}

#[test]
fn f1_collecting_again_finds_nothing_and_harms_nothing() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    let two = extend(&mut leader, &storage, &[]);
    extend(&mut leader, &storage, &[two]);
    let mut first = leader
        .collection(&last(1), CollectOptions::default())
        .expect("it leads");
    block_on(first.run()).expect("it leads");
    let again = block_on(first.run()).expect("it leads");
    assert_eq!((again.manifests, again.objects), (0, 0));
    let next = collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(
        (next.manifests, next.objects, next.is_complete),
        (0, 0, true)
    );
    assert_eq!(segments(&storage), [2, 3]);
    let records = block_on(storage.list(Folder::Collect)).expect("listed");
    assert_eq!(records.len(), 1, "a record replaces those that it includes");
}

#[test]
fn g2_an_absurd_retention_is_harmless() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    extend(&mut leader, &storage, &[]);
    let absurd = Retention {
        last: NonZeroU32::MAX,
        age_ms: Some(u64::MAX),
        released: [at(9, 9), at(1, 2), at(0, 0)].into(),
    };
    let report = collect(&mut leader, &absurd).expect("it leads");
    assert_eq!((report.manifests, report.objects), (0, 0));
    assert_eq!(
        (manifests(&storage), segments(&storage)),
        (vec![1, 2], vec![2])
    );
}

#[test]
fn retention_keeps_the_newest_the_young_and_savepoints() {
    let storage = Storage::memory();
    let clock = Arc::new(ManualEnvironment::new(1_000_000, 1));
    let store = block_on(SnapshotStore::open(storage.clone(), job(), clock.clone()));
    let mut leader = block_on(store.expect("opened").claim()).expect("free");
    savepoint(&mut leader, &storage);
    for minute in 1..=4 {
        clock.set_ms(1_000_000 + minute * 60_000);
        extend(&mut leader, &storage, &[]);
    }
    assert_eq!(manifests(&storage), [1, 2, 3, 4, 5, 6]);
    let young = Retention {
        age_ms: Some(130_000),
        ..last(1)
    };
    let report = collect(&mut leader, &young).expect("it leads");
    let kept: Vec<_> = report.kept.iter().map(|(p, r)| (p.id.0, *r)).collect();
    assert_eq!(
        kept,
        [
            (2, KeepReason::Savepoint),
            (4, KeepReason::Age),
            (5, KeepReason::Age),
            (6, KeepReason::Confirmed)
        ]
    );
    collect(&mut leader, &last(2)).expect("it leads");
    assert_eq!(manifests(&storage), [2, 5, 6]);
    // A later coordinator no longer sees how the savepoint descends from the last snapshot.
    let mut next = claim(&storage, 2);
    collect(&mut next, &last(1)).expect("it leads");
    assert_eq!(
        manifests(&storage),
        [2, 6, 7],
        "an adoption does not count as one of the last"
    );
    let released = Retention {
        released: [at(1, 2)].into(),
        ..last(1)
    };
    collect(&mut next, &released).expect("it leads");
    assert_eq!(segments(&storage), [6]);
}

#[test]
fn g13_aborted_snapshots_leave_shared_files_alone() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    let two = extend(&mut leader, &storage, &[]);
    let aborted = trigger(&mut leader);
    let three = stored(&storage, &aborted);
    leader.abort(aborted.id).expect("pending");
    let pending = trigger(&mut leader);
    collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(
        segments(&storage),
        [2, 3],
        "the pending one may name what the aborted one wrote"
    );
    let four = stored(&storage, &pending);
    commit_of(&mut leader, &pending, &[two, three, four.clone()]).expect("all are there");
    // Once nothing names them they go, whoever wrote them.
    extend(&mut leader, &storage, &[four]);
    collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(segments(&storage), [4, 5]);
}

#[test]
fn g9_bases_of_pending_snapshots_stay() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    let two = extend(&mut leader, &storage, &[]);
    let slow = trigger(&mut leader);
    let quick = trigger(&mut leader);
    let quick_own = stored(&storage, &quick);
    let slow_own = stored(&storage, &slow);
    // The slow one is aborted later; as long as it is pending, its base is needed.
    leader.trigger(SnapshotMode::Incremental).expect("it leads");
    commit_of(&mut leader, &quick, &[quick_own]).expect("it leads");
    let report = collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(report.kept.get(&at(1, 2)), Some(&KeepReason::Base));
    assert_eq!(segments(&storage), [2, 3, 4]);
    drop((two, slow_own));
}

#[test]
fn g5_g6_of_two_attempts_at_a_segment_the_one_that_is_named_stays() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    let first = trigger(&mut leader);
    let named = stored(&storage, &first);
    let mut other = named.clone();
    let meta = Arc::make_mut(&mut other.meta);
    let SegmentLocation::Object(name) = &mut meta.location else {
        panic!("it is an object");
    };
    name.unique = UniqueId(77);
    put(&storage, &other);
    commit_of(&mut leader, &first, std::slice::from_ref(&named)).expect("it leads");
    let report = collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(report.objects, 1);
    let left = block_on(storage.list(Folder::Segments)).expect("listed");
    assert_eq!(Some(left[0].name), named.meta.location.object());
}

#[test]
fn f2_an_object_of_many_tasks_stays_while_one_of_them_names_it() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    let first = trigger(&mut leader);
    let name = PartsName {
        epoch: Epoch(1),
        snapshot: first.id,
        unique: UniqueId(8),
    };
    let object = ObjectName::Parts(name);
    block_on(storage.create(&object, Bytes::from(vec![7; 2_000]))).expect("created");
    let packed = |offset, task| {
        let mut segment = segment(1, 2, task, HashRange::of_task(task, 2));
        Arc::make_mut(&mut segment.meta).location = SegmentLocation::Packed { name, offset };
        segment
    };
    let mut commit_all = |trigger: &Trigger, segments: [Vec<SegmentRef>; 2]| {
        let parts = segments.into_iter().zip(0..);
        let acks = parts.map(|(segments, task)| ack(trigger, part("count", task, 2, segments)));
        block_on(leader.commit(trigger.id, acks.collect(), Bytes::new())).expect("it leads");
        collect(&mut leader, &last(1)).expect("it leads");
        let left = block_on(storage.size(&object)).expect("answers").is_some();
        (left, super::trigger(&mut leader))
    };
    let (is_left, second) = commit_all(&first, [vec![packed(0, 0)], vec![packed(1_000, 1)]]);
    assert!(is_left);
    let (is_left, third) = commit_all(&second, [vec![], vec![packed(1_000, 1)]]);
    assert!(is_left, "one task still names it");
    let (is_left, _) = commit_all(&third, [vec![], vec![]]);
    assert!(!is_left);
}

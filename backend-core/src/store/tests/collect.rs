//! Collections: what goes, what stays, and what stops them.

use std::num::{NonZeroU32, NonZeroUsize};

use super::faulty::{Fault, Faulty};
use super::*;
use crate::manifest::Position;
use crate::names::{Folder, ObjectName};
use crate::store::{CollectOptions, CollectReport, KeepReason, Retention};

fn last(n: u32) -> Retention {
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

fn at(epoch: u64, id: u64) -> Position {
    Position::new(Epoch(epoch), SnapshotId(id))
}

#[test]
fn g10_what_the_chain_still_names_stays_and_the_rest_goes() {
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
fn orphans_of_crashed_and_fenced_writers_are_swept() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = Storage::local(directory.path()).expect("created");
    let mut first = claim(&storage, 1);
    let two = extend(&mut first, &storage, &[]);
    let crashed = trigger(&mut first);
    stored(&storage, &crashed);
    let staged = segment(1, 3, 7, HashRange::ALL).meta.location.object();
    let staged = staged.expect("an object").to_string() + "#4";
    std::fs::write(directory.path().join(staged), "half").expect("written");

    let mut second = claim(&storage, 2);
    let zombie = trigger(&mut first);
    let report = collect(&mut second, &last(1)).expect("it leads");
    assert_eq!(
        (report.objects, report.bytes > 4),
        (2, true),
        "the orphan and the half one"
    );
    assert_eq!(segments(&storage), [2]);
    assert_eq!(
        std::fs::read_dir(directory.path().join("segments"))
            .expect("there")
            .count(),
        1
    );

    // A zombie writes on, is refused, and its segment goes, too.
    let late = stored(&storage, &zombie);
    let refused = commit_of(&mut first, &zombie, &[two.clone(), late]);
    assert_eq!(kind(refused), ErrorKind::Fenced);
    extend(&mut second, &storage, &[two]);
    collect(&mut second, &last(1)).expect("it leads");
    assert_eq!(segments(&storage), [2, 4]);
    assert_eq!(
        manifests(&storage),
        [4],
        "the zombie's manifest is condemned by rule"
    );
}

#[test]
fn g12_a_fenced_coordinator_deletes_nothing() {
    let storage = Storage::memory();
    let mut first = claim(&storage, 1);
    extend(&mut first, &storage, &[]);
    extend(&mut first, &storage, &[]);
    let mut woken = first
        .collection(&last(1), CollectOptions::default())
        .expect("it leads");
    let second = claim(&storage, 2);
    let error = block_on(woken.run()).expect_err("it was overtaken");
    assert_eq!(
        (error.kind(), error.fact("fenced_by")),
        (ErrorKind::Fenced, Some("2"))
    );
    assert_eq!(
        (manifests(&storage), segments(&storage)),
        (vec![1, 2, 3, 4], vec![2, 3])
    );
    // Its record is there, and takes nothing from its successor.
    let third = claim(&storage, 3);
    let parent = third.adopted().manifest().meta.parent.expect("it has one");
    assert_eq!(parent.position, second.adopted().position());
}

#[test]
fn a_zombie_that_wakes_after_a_collection_confirms_nothing() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "jobs/words");
    let mut first = claim_hasty(&storage, 1);
    let two = extend(&mut first, &storage, &[]);
    let late = trigger(&mut first);
    faulty.plan(Fault::PutStall, "snapshots/", 3);
    let put = commit_of(&mut first, &late, &[two.clone(), stored(&storage, &late)]);
    assert_eq!(kind(put), ErrorKind::InDoubt);
    let doubtful = first.collection(&last(1), CollectOptions::default());
    assert_eq!(
        kind(doubtful),
        ErrorKind::InDoubt,
        "nothing is collected while in doubt"
    );

    let mut second = claim(&storage, 2);
    let four = extend(&mut second, &storage, &[two]);
    extend(&mut second, &storage, &[four]);
    collect(&mut second, &last(1)).expect("it leads");
    block_on(faulty.land());
    assert_eq!(manifests(&storage), [3, 5], "the late one has landed");
    assert_eq!(kind(commit_of(&mut first, &late, &[])), ErrorKind::Fenced);
    let third = claim(&storage, 3);
    let parent = third.adopted().manifest().meta.parent.expect("it has one");
    assert_eq!(parent.position, at(2, 5));
}

#[test]
fn a_dry_run_says_what_a_run_does_and_changes_nothing() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    extend(&mut leader, &storage, &[]);
    extend(&mut leader, &storage, &[]);
    let (puts, deletes) = (storage.requests().puts, storage.requests().deletes);
    let plan = leader.collection(&last(1), CollectOptions::default());
    let planned = block_on(plan.expect("it leads").dry_run()).expect("readable");
    let requests = storage.requests();
    assert_eq!((requests.puts, requests.deletes), (puts, deletes));
    let offline = block_on(open(&storage, 2).plan_collection(&last(1))).expect("readable");
    assert_eq!(offline.as_ref(), Some(&planned));
    let said = planned.to_string();
    assert!(
        said.contains("would delete 2 manifests and 1 objects"),
        "{said}"
    );
    let done = collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(
        CollectReport {
            is_dry: true,
            ..done
        },
        planned
    );
}

#[test]
fn a_collection_that_is_limited_or_fails_is_ended_by_the_next() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "job");
    let mut leader = claim_hasty(&storage, 1);
    for _ in 0..6 {
        extend(&mut leader, &storage, &[]);
    }
    let options = CollectOptions {
        batch: NonZeroUsize::new(2).expect("above 0"),
        deletes_per_s: NonZeroU32::new(1_000),
        deletes_max: Some(3),
    };
    let mut limited = leader.collection(&last(1), options).expect("it leads");
    let report = block_on(limited.run()).expect("it leads");
    assert_eq!(
        (report.manifests, report.objects, report.is_complete),
        (3, 0, false)
    );
    assert_eq!(manifests(&storage).len(), 4);
    for (fault, folder) in [
        (Fault::List, "snapshots"),
        (Fault::Read, "snapshots/"),
        (Fault::List, "collect"),
        (Fault::Read, "collect/"),
        (Fault::List, "pins"),
        (Fault::Read, "epochs/"),
        (Fault::Delete, ""),
        (Fault::List, "segments"),
    ] {
        // A read that fails is followed by a look, which fails, too.
        faulty.plan(fault, folder, 6);
        let outcome = collect(&mut leader, &last(1)).map_err(|e| e.kind());
        assert!(
            matches!(outcome, Err(ErrorKind::Transient | ErrorKind::InDoubt)),
            "{fault:?} in {folder}: {outcome:?}"
        );
        faulty.forget();
    }
    collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(
        (manifests(&storage), segments(&storage)),
        (vec![7], vec![7])
    );
}

#[test]
fn a_collection_fails_closed_where_it_cannot_read() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    let two = extend(&mut leader, &storage, &[]);
    extend(&mut leader, &storage, &[two]);
    let bad = ObjectName::Pin(UniqueId(5));
    block_on(storage.create(&bad, Bytes::from_static(b"no pin"))).expect("created");
    assert_eq!(kind(collect(&mut leader, &last(1))), ErrorKind::Corrupt);
    block_on(storage.delete(&bad)).expect("deleted");
    assert_eq!(manifests(&storage), [1, 2, 3]);
    block_on(storage.delete(&at(1, 3).object())).expect("deleted");
    let error = collect(&mut leader, &last(1)).expect_err("the last snapshot is gone");
    assert_eq!(
        (error.kind(), manifests(&storage)),
        (ErrorKind::NotFound, vec![1, 2])
    );
}

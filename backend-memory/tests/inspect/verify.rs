//! Damage of every kind is found, named, and laid at the right snapshots.

use std::collections::BTreeSet;

use backend_core::inspect::{FaultKind, Scope, VerifyOptions, VerifyReport, verify};
use backend_core::{ErrorKind, Position, SnapshotMode};
use bytes::Bytes;
use futures::executor::block_on;

use crate::job::{Job, delete, objects_of, put};

/// A job of two tasks with three snapshots, oldest first, besides its empty first one.
fn three_snapshots() -> (Job, [Position; 3]) {
    let mut job = Job::start(2, 5);
    let positions = [job.advance(600), job.advance(200), job.advance(200)];
    (job, positions)
}

fn report_of(job: &Job) -> VerifyReport {
    block_on(verify(&job.store, Scope::Store, &VerifyOptions::default())).expect("it answers")
}

/// The snapshots whose manifests name `object`.
fn users_of(job: &Job, object: &str) -> Vec<Position> {
    let names = |position: &Position| {
        let snapshot = block_on(job.store.load(position.epoch, position.id)).expect("read");
        let objects = snapshot.manifest().objects();
        objects.iter().any(|name| name.to_string() == object)
    };
    let all = block_on(job.store.list()).expect("listed");
    let all = all.into_iter().map(|summary| summary.position);
    all.filter(names).collect()
}

/// The segments of the job, each with the snapshots that name it.
fn segments_of(job: &Job) -> Vec<(String, Vec<Position>)> {
    let objects = objects_of(&job.objects);
    let segments = objects.into_keys().filter(|n| n.starts_with("segments/"));
    let segments = segments.map(|name| {
        let users = users_of(job, &name);
        (name, users)
    });
    segments.collect()
}

#[track_caller]
fn assert_one_fault(
    job: &Job,
    object: &str,
    kinds: &[FaultKind],
    hurt: &[Position],
    newest: Option<Position>,
    what: &str,
) {
    let report = report_of(job);
    assert_eq!(report.faults.len(), 1, "{what}: {report}");
    let fault = &report.faults[0];
    assert_eq!(fault.object, object, "{what}: {report}");
    assert!(kinds.contains(&fault.kind), "{what}: {report}");
    assert_eq!(fault.hurts, hurt, "{what}: {report}");
    assert_eq!(report.newest_whole, newest, "{what}: {report}");
    for figures in &report.snapshots {
        let is_hurt = hurt.contains(&figures.position);
        assert_eq!(figures.faults, u64::from(is_hurt), "{what}: {report}");
        assert_eq!(figures.entries.is_some(), !is_hurt, "{what}: {report}");
    }
    assert!(report.to_string().contains(object), "{report}");
}

/// The newest snapshot that is not among `hurt`.
fn newest_but(job: &Job, hurt: &[Position]) -> Option<Position> {
    let all = block_on(job.store.list()).expect("listed");
    let mut all = all.into_iter().map(|summary| summary.position);
    all.rfind(|position| !hurt.contains(position))
}

const ANY: [FaultKind; 7] = [
    FaultKind::Header,
    FaultKind::Foreign,
    FaultKind::Index,
    FaultKind::Filter,
    FaultKind::Block,
    FaultKind::Footer,
    FaultKind::Digest,
];

#[test]
fn clean_chain_has_no_fault_and_its_live_count_is_what_a_restore_holds() {
    let mut job = Job::start(2, 3);
    let mut expected = Vec::new();
    for _ in 0..10 {
        let position = job.advance(300);
        expected.push((position, job.model.entries()));
    }
    let report = report_of(&job);
    assert!(report.is_whole(), "{report}");
    assert_eq!(report.newest_whole, Some(expected[9].0));
    assert_eq!(report.orphans_all, (0, 0), "{report}");
    for (position, live) in expected {
        let figures = report.snapshot(position).expect("it is reported");
        let entries = figures.entries.expect("they are counted");
        assert_eq!(entries.live, live, "{position}: {report}");
        assert_eq!(entries.all, entries.live + entries.dead, "nothing expires");
        // Every entry has at least the 5 bytes of state and shard, and its key.
        assert!(entries.live_bytes > 9 * entries.live && entries.expired_bytes == 0);
        assert_eq!(entries.dead == 0, entries.dead_bytes == 0);
    }
    let last = report.snapshots.last().expect("there are some");
    assert!(last.objects > 10 && last.entries.expect("counted").dead > 100);
    let from = job.coordinator.confirmed().clone();
    assert_eq!(job.restored(&from), job.model);
}

#[test]
fn live_counts_respect_clips_after_a_rescale() {
    let mut job = Job::start(1, 4);
    job.advance(500);
    for tasks in [3, 2, 5] {
        job.rescale(tasks);
        let position = job.advance(200);
        let report = report_of(&job);
        assert!(report.is_whole(), "{report}");
        let entries = report.snapshot(position).and_then(|s| s.entries);
        let entries = entries.expect("they are counted");
        assert_eq!(entries.live, job.model.entries(), "{tasks} tasks");
        assert!(entries.clipped > 0, "tasks share segments");
    }
}

#[test]
fn flipped_bytes_are_found_wherever_they_lie() {
    let (job, _) = three_snapshots();
    let segments = segments_of(&job);
    assert!(segments.len() >= 6);
    let objects = objects_of(&job.objects);
    for (name, users) in segments {
        let bytes = &objects[&name];
        let newest = newest_but(&job, &users);
        let step = (bytes.len() / 23).max(1);
        let ends = [1, 8, 12, 20, 40, bytes.len() - 20, bytes.len() - 60];
        for at in (0..bytes.len()).step_by(step).chain(ends) {
            let mut bad = bytes.to_vec();
            bad[at] ^= 0x10;
            put(&job.objects, &name, bad);
            assert_one_fault(&job, &name, &ANY, &users, newest, &format!("byte {at}"));
        }
        put(&job.objects, &name, bytes.clone());
    }
    assert!(report_of(&job).is_whole());
}

#[test]
fn truncated_extended_and_deleted_segments_are_found() {
    let (job, _) = three_snapshots();
    let objects = objects_of(&job.objects);
    for (name, users) in segments_of(&job) {
        let bytes = &objects[&name];
        let newest = newest_but(&job, &users);
        for length in [0, 10, bytes.len() / 2, bytes.len() - 1] {
            put(&job.objects, &name, bytes.slice(..length));
            let what = format!("cut to {length}");
            assert_one_fault(&job, &name, &[FaultKind::Size], &users, newest, &what);
        }
        let longer = [&bytes[..], b"x"].concat();
        put(&job.objects, &name, longer);
        assert_one_fault(&job, &name, &[FaultKind::Size], &users, newest, "longer");
        delete(&job.objects, &name);
        assert_one_fault(&job, &name, &[FaultKind::Missing], &users, newest, "gone");
        put(&job.objects, &name, bytes.clone());
    }
}

#[test]
fn segment_of_one_snapshot_hurts_it_alone() {
    let (mut job, positions) = three_snapshots();
    let savepoint = job.snapshot(SnapshotMode::Savepoint);
    let after = job.advance(100);
    let segments = segments_of(&job);
    let own = segments.iter().find(|(_, users)| users == &[savepoint]);
    let (name, _) = own.expect("a savepoint shares nothing");
    delete(&job.objects, name);
    let kinds = [FaultKind::Missing];
    assert_one_fault(
        &job,
        name,
        &kinds,
        &[savepoint],
        Some(after),
        "a savepoint's",
    );
    // The last snapshot's own segment hurts it, and not those before it.
    let own = segments.iter().find(|(_, users)| users == &[after]);
    delete(&job.objects, &own.expect("an increment").0);
    let report = report_of(&job);
    assert_eq!(report.newest_whole, Some(positions[2]), "{report}");
    let one = Scope::Snapshot(positions[1]);
    let one = block_on(verify(&job.store, one, &VerifyOptions::default())).expect("answers");
    assert!(one.is_whole() && one.snapshots.len() == 1, "{one}");
}

#[test]
fn swapped_and_foreign_segments_are_told_from_damage() {
    let (job, _) = three_snapshots();
    let objects = objects_of(&job.objects);
    let segments = segments_of(&job);
    let ((a, a_users), (b, b_users)) = (&segments[0], &segments[segments.len() - 1]);
    put(&job.objects, a, objects[b].clone());
    put(&job.objects, b, objects[a].clone());
    let report = report_of(&job);
    let found: Vec<_> = report
        .faults
        .iter()
        .map(|fault| (&fault.object, fault.kind, &fault.hurts))
        .collect();
    let expected = [
        (a, FaultKind::Foreign, a_users),
        (b, FaultKind::Foreign, b_users),
    ];
    assert_eq!(found, expected, "{report}");
    put(&job.objects, b, objects[b].clone());
    let mut other = Job::start(2, 99);
    other.advance(600);
    let foreign = segments_of(&other).swap_remove(0).0;
    put(
        &job.objects,
        a,
        objects_of(&other.objects)[&foreign].clone(),
    );
    let newest = newest_but(&job, a_users);
    let kinds = [FaultKind::Foreign];
    assert_one_fault(&job, a, &kinds, a_users, newest, "another job's");
}

#[test]
fn orphans_are_told_from_what_may_be_pending() {
    let (mut job, positions) = three_snapshots();
    let (name, bytes) = objects_of(&job.objects)
        .into_iter()
        .find(|(name, _)| name.starts_with("segments/"))
        .expect("there are segments");
    // The unique id ends the name.
    let orphan = format!("{}{}", &name[..name.len() - 4], "0000");
    put(&job.objects, &orphan, bytes.clone());
    let trigger = job
        .coordinator
        .trigger(SnapshotMode::Full)
        .expect("triggered");
    let pending = format!(
        "segments/{:020}-{:020}-0000000000-0000000000-{:032x}",
        trigger.epoch.0, trigger.id.0, 7
    );
    put(&job.objects, &pending, bytes.clone());
    let report = report_of(&job);
    assert!(report.is_whole(), "{report}");
    let orphans: Vec<_> = report.orphans.iter().map(|o| &o.object).collect();
    assert_eq!(orphans, [&orphan], "{report}");
    assert_eq!(report.maybe_pending, (1, bytes.len() as u64), "{report}");
    assert_eq!(report.newest_whole, Some(positions[2]));
    assert!(!report.orphans_uncertain);
}

#[test]
fn damaged_manifest_hurts_itself_and_strangers_hurt_nobody() {
    let (job, positions) = three_snapshots();
    let name = positions[2].object().to_string();
    let bytes = objects_of(&job.objects)[&name].to_vec();
    for at in (0..bytes.len()).step_by(bytes.len() / 40) {
        let mut bad = bytes.clone();
        bad[at] ^= 4;
        put(&job.objects, &name, bad);
        let report = report_of(&job);
        assert_eq!(report.faults.len(), 1, "byte {at}: {report}");
        assert_eq!(report.faults[0].object, name);
        assert_eq!(report.faults[0].kind, FaultKind::Manifest);
        assert_eq!(report.faults[0].hurts, [positions[2]]);
        assert_eq!(report.newest_whole, Some(positions[1]));
        assert!(report.orphans_uncertain && report.orphans_all.0 > 0);
    }
    put(&job.objects, &name, bytes);
    for stranger in ["snapshots/1-2.bak", "segments/x", "epochs/1", "parts/00"] {
        put(&job.objects, stranger, Bytes::from_static(b"?"));
        let report = report_of(&job);
        let fault = report.faults.first().expect("it is found");
        let found = (&*fault.object, fault.kind, fault.hurts.len());
        assert_eq!(found, (stranger, FaultKind::Name, 0), "{report}");
        assert_eq!(report.newest_whole, Some(positions[2]));
        delete(&job.objects, stranger);
    }
}

#[test]
fn parent_of_another_identity_and_lost_claims_are_found() {
    let (job, positions) = three_snapshots();
    let parent = positions[1].object().to_string();
    let objects = objects_of(&job.objects);
    delete(&job.objects, &parent);
    assert!(report_of(&job).is_whole(), "a parent may be collected");
    // The same job, restarted elsewhere, gives other bytes at the same place.
    let mut other = Job::start(2, 6);
    other.advance(600);
    other.advance(10);
    put(
        &job.objects,
        &parent,
        objects_of(&other.objects)[&parent].clone(),
    );
    let report = report_of(&job);
    let parents: Vec<_> = report
        .faults
        .iter()
        .filter(|f| f.kind == FaultKind::Parent)
        .collect();
    assert_eq!(
        parents.len(),
        2,
        "of the one replaced, and of its child: {report}"
    );
    assert_eq!(parents[1].hurts, [positions[2]]);
    assert_eq!(report.newest_whole, Some(positions[0]));
    put(&job.objects, &parent, objects[&parent].clone());
    let claim = "epochs/00000000000000000001";
    let later = "epochs/00000000000000000003";
    put(&job.objects, later, objects[claim].clone());
    let report = report_of(&job);
    let found: BTreeSet<_> = report.faults.iter().map(|f| (&*f.object, f.kind)).collect();
    let missing = "epochs/00000000000000000002";
    let expected = [(missing, FaultKind::Record), (later, FaultKind::Record)];
    assert_eq!(found, expected.into(), "{report}");
}

#[test]
fn faults_beyond_the_bound_are_counted() {
    let (job, positions) = three_snapshots();
    let segments = segments_of(&job);
    for (name, _) in &segments {
        delete(&job.objects, name);
    }
    let mut options = VerifyOptions::default();
    options.faults_max = 2;
    let report = block_on(verify(&job.store, Scope::Store, &options)).expect("it answers");
    assert_eq!(report.faults.len(), 2);
    assert_eq!(report.faults_left_out, segments.len() as u64 - 2);
    let last = report.snapshot(positions[2]).expect("reported");
    assert_eq!(last.faults, segments.len() as u64, "{report}");
    options.objects_at_once = 0;
    let refused = block_on(verify(&job.store, Scope::Store, &options)).expect_err("no objects");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let absent = Position::new(positions[0].epoch, backend_core::SnapshotId(99));
    options.objects_at_once = 1;
    let absent = verify(&job.store, Scope::Snapshot(absent), &options);
    assert_eq!(
        block_on(absent).expect_err("none").kind(),
        ErrorKind::NotFound
    );
}

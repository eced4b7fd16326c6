//! Going on from the newest whole snapshot: only when asked, and with what is lost said.

use backend_core::inspect::{VerifyOptions, claim_newest_whole};
use backend_core::store::{CollectOptions, Retention};
use backend_core::{ErrorKind, Position};
use bytes::Bytes;
use futures::executor::block_on;

use crate::job::{Job, Model, delete, objects_of, put};

/// A job of three snapshots, with what each holds.
fn three_snapshots() -> (Job, Vec<(Position, Model)>) {
    let mut job = Job::start(2, 6);
    let mut snapshots = Vec::new();
    for count in [600, 200, 200] {
        let position = job.advance(count);
        snapshots.push((position, job.model.clone()));
    }
    (job, snapshots)
}

/// The segments that only the snapshot at `position` names.
fn own_segments(job: &Job, position: Position) -> Vec<String> {
    let prefix = format!("segments/{:020}-{:020}", position.epoch.0, position.id.0);
    let names = objects_of(&job.objects).into_keys();
    names.filter(|name| name.starts_with(&prefix)).collect()
}

#[test]
fn a_damaged_segment_costs_the_snapshots_that_name_it_and_no_other() {
    let (mut job, snapshots) = three_snapshots();
    let lost = snapshots[2].0;
    let damaged = own_segments(&job, lost).remove(0);
    delete(&job.objects, &damaged);

    let fallback = block_on(claim_newest_whole(&job.store, &VerifyOptions::default()));
    let mut fallback = fallback.expect("an older one is whole");
    assert_eq!(fallback.from, Some(snapshots[1].0));
    assert_eq!(fallback.lost.len(), 1);
    assert_eq!(fallback.lost[0].position, lost);
    assert_eq!(fallback.lost[0].faults[0].object, damaged);
    let adopted = fallback.coordinator.adopted().clone();
    assert_eq!(job.restored(&adopted), snapshots[1].1);

    // The old coordinator is fenced, and what was given up is collected.
    let old = job.coordinator.trigger(backend_core::SnapshotMode::Full);
    let id = old.expect("it does not know yet").id;
    for operator in &adopted.manifest().operators {
        job.coordinator.drop_operator(operator.id.clone());
    }
    let refused = block_on(job.coordinator.commit(id, Vec::new(), Bytes::new()));
    assert_eq!(refused.expect_err("fenced").kind(), ErrorKind::Fenced);
    let collection = fallback
        .coordinator
        .collection(&Retention::default(), CollectOptions::default());
    block_on(collection.expect("it leads").run()).expect("it leads");
    assert!(own_segments(&job, lost).is_empty());
    assert_eq!(job.restored(&adopted), snapshots[1].1);
}

#[test]
fn a_damaged_manifest_is_an_error_unless_a_fallback_is_asked_for() {
    let (mut job, snapshots) = three_snapshots();
    let manifest = snapshots[2].0.object().to_string();
    let whole = objects_of(&job.objects)[&manifest].clone();
    let mut bytes = whole.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    put(&job.objects, &manifest, bytes);
    let refused = block_on(job.store.claim()).expect_err("no fallback by itself");
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    assert_eq!(refused.fact("object"), Some(&*manifest));

    let fallback = block_on(claim_newest_whole(&job.store, &VerifyOptions::default()));
    let fallback = fallback.expect("an older one is whole");
    assert_eq!(fallback.from, Some(snapshots[1].0));
    let adopted = fallback.coordinator.adopted().clone();
    assert_eq!(job.restored(&adopted), snapshots[1].1);
}

#[test]
fn nothing_is_lost_while_no_snapshot_is_whole() {
    let (mut job, snapshots) = three_snapshots();
    // All build on the first one's segments; the job's first, empty one is damaged, too.
    let before = objects_of(&job.objects);
    for (name, bytes) in &before {
        let is_first = own_segments(&job, snapshots[0].0).contains(name);
        if is_first || name.starts_with("snapshots/00000000000000000001-00000000000000000001") {
            put(&job.objects, name, bytes.slice(..bytes.len() - 1));
        }
    }
    let refused = block_on(claim_newest_whole(&job.store, &VerifyOptions::default()));
    let refused = refused.expect_err("none is whole");
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    assert_eq!(refused.fact("snapshots"), Some("4"));
    // Once the objects are back, so is the job.
    for (name, bytes) in &before {
        put(&job.objects, name, bytes.clone());
    }
    let coordinator = block_on(job.store.claim()).expect("it is whole again");
    let adopted = coordinator.adopted().clone();
    assert_eq!(job.restored(&adopted), snapshots[2].1);
}

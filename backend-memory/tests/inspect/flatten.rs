//! A chain made full holds what the chain held, and nothing older is needed any more.

use backend_core::inspect::{FlattenOptions, Scope, VerifyOptions, flatten, verify};
use backend_core::{ErrorKind, SnapshotKind, SnapshotMode};
use futures::executor::block_on;

use crate::job::{Job, objects_of, put};

fn chained(seed: u64) -> Job {
    let mut job = Job::start(2, seed);
    for tasks in [0, 0, 3, 0] {
        if tasks > 0 {
            job.rescale(tasks);
        }
        job.advance(300);
    }
    job
}

#[test]
fn flattened_snapshot_restores_the_same_and_shares_nothing() {
    let mut job = chained(41);
    let old = job.coordinator.confirmed().clone();
    let mut options = FlattenOptions::default();
    options.inline_bytes_max = 0;
    let confirmed = block_on(flatten(&mut job.coordinator, &options));
    let new = confirmed.expect("flattened").snapshot;
    assert_eq!(new.position(), job.coordinator.confirmed().position());
    assert_eq!(new.engine(), old.engine());
    let objects = new.manifest().objects();
    assert!(!objects.is_empty() && objects.is_disjoint(&old.manifest().objects()));
    for (a, b) in old.manifest().parts.iter().zip(&new.manifest().parts) {
        assert_eq!(a.task.range, b.task.range);
        assert_eq!(a.task.generation_max, b.task.generation_max);
        assert_eq!(a.task.engine, b.task.engine);
        let runs = b.task.segments.chunk_by(|a, b| a.run == b.run).count();
        assert_eq!(runs, 1);
    }
    assert_eq!(job.restored(&old), job.model);
    assert_eq!(job.restored(&new), job.model);
    let report = block_on(verify(&job.store, Scope::Store, &VerifyOptions::default()));
    let report = report.expect("it answers");
    assert!(report.is_whole(), "{report}");
    let entries = report.snapshot(new.position()).and_then(|s| s.entries);
    let entries = entries.expect("counted");
    assert_eq!((entries.live, entries.dead), (job.model.entries(), 0));
    // The tasks go on, and a restart from what they write holds everything.
    job.advance(200);
    let last = job.coordinator.confirmed().clone();
    assert_eq!(job.restored(&last), job.model);
    job.rescale(2);
    job.advance(100);
    let last = job.coordinator.confirmed().clone();
    assert_eq!(job.restored(&last), job.model);
}

#[test]
fn savepoints_are_made_too_and_increments_are_refused() {
    let mut job = chained(42);
    let mut options = FlattenOptions::default();
    options.mode = SnapshotMode::Incremental;
    let refused = block_on(flatten(&mut job.coordinator, &options)).expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    options.mode = SnapshotMode::Savepoint;
    options.inline_bytes_max = 0;
    let confirmed = block_on(flatten(&mut job.coordinator, &options)).expect("flattened");
    assert_eq!(confirmed.snapshot.kind(), SnapshotKind::Savepoint);
    assert_eq!(job.restored(&confirmed.snapshot), job.model);
    job.advance(100);
    let last = job.coordinator.confirmed().clone();
    let savepoints = confirmed.snapshot.manifest().objects();
    assert!(last.manifest().objects().is_disjoint(&savepoints));
    assert_eq!(job.restored(&last), job.model);
}

#[test]
fn damage_stops_it_by_name_and_the_job_goes_on() {
    let mut job = chained(43);
    let old = job.coordinator.confirmed().clone();
    let object = *old.manifest().objects().first().expect("it has objects");
    let name = object.to_string();
    let bytes = objects_of(&job.objects)[&name].clone();
    let mut bad = bytes.to_vec();
    bad[bytes.len() / 2] ^= 1;
    put(&job.objects, &name, bad);
    let failed = block_on(flatten(&mut job.coordinator, &FlattenOptions::default()));
    let error = failed.expect_err("it is damaged");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(error.fact("object"), Some(&*name), "{error}");
    assert_eq!(job.coordinator.confirmed().position(), old.position());
    put(&job.objects, &name, bytes);
    job.advance(50);
    let last = job.coordinator.confirmed().clone();
    assert_eq!(job.restored(&last), job.model);
}

//! A copy is whole or absent, whatever stops it, and goes on where it was.

use std::sync::Arc;

use backend_core::inspect::{CopyOptions, CopyReport, Scope, VerifyOptions, copy, verify};
use backend_core::storage::Storage;
use backend_core::{
    Error, ErrorKind, JobId, Result, Snapshot, SnapshotMode, SnapshotStore, StoreOptions,
};
use futures::executor::block_on;
use object_store::memory::InMemory;

use crate::failing::Failing;
use crate::job::{Job, environment, objects_of, open, put};

/// A store that asks once, so that what fails on purpose fails at once.
fn asks_once(storage: &Storage) -> SnapshotStore {
    let mut options = StoreOptions::default();
    options.tries_max = 1;
    let job = JobId::new("inspected").expect("a name");
    let opened = SnapshotStore::open_with(storage.clone(), job, environment(77), options);
    block_on(opened).expect("opened")
}

struct Source {
    job: Job,
    store: SnapshotStore,
    snapshot: Snapshot,
}

/// A job in its second epoch, with a chain of segments.
fn source() -> Source {
    let mut job = Job::start(2, 51);
    job.advance(400);
    job.advance(200);
    job.coordinator = block_on(job.store.claim()).expect("claimed");
    let adopted = job.coordinator.adopted().clone();
    job.restore(&adopted, 2);
    job.advance(100);
    let store = asks_once(&job.storage);
    let position = job.coordinator.confirmed().position();
    let snapshot = block_on(store.load(position.epoch, position.id)).expect("read");
    Source {
        job,
        store,
        snapshot,
    }
}

fn run(source: &Source, dest: &Storage) -> Result<CopyReport> {
    let options = CopyOptions::default();
    block_on(copy(&source.snapshot, &source.store, dest, &options))
}

#[track_caller]
fn assert_refused(source: &Source, dest: &Storage, kind: ErrorKind, side: &str) -> Error {
    let error = run(source, dest).expect_err("it is refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.fact("side"), Some(side), "{error}");
    error
}

fn assert_no_manifest(dest: &InMemory) {
    let names: Vec<_> = objects_of(dest).into_keys().collect();
    assert!(
        !names.iter().any(|n| n.starts_with("snapshots/")),
        "{names:?}"
    );
}

#[test]
fn copy_is_adopted_at_its_destination() {
    let mut source = source();
    let objects = Arc::new(InMemory::new());
    let dest = Storage::new(objects.clone(), "elsewhere");
    let report = run(&source, &dest).expect("copied");
    let named = source.snapshot.manifest().objects().len() as u64;
    assert!(named > 2);
    assert_eq!((report.claims_copied, report.objects_copied), (2, named));
    assert!(!report.was_complete);
    let originals = objects_of(&source.job.objects);
    for (name, bytes) in objects_of(&objects) {
        let name = name.strip_prefix("elsewhere/").expect("its directory");
        assert_eq!(originals[name], bytes, "{name}");
    }
    let store = open(&dest, 9);
    let verified = block_on(verify(&store, Scope::Store, &VerifyOptions::default()));
    let verified = verified.expect("it answers");
    assert!(verified.is_whole(), "{verified}");
    assert_eq!(verified.orphans_all, (0, 0));
    let mut coordinator = block_on(store.claim()).expect("claimed");
    assert_eq!(coordinator.epoch().0, 3);
    let adopted = coordinator.adopted().clone();
    let parent = adopted.manifest().meta.parent.expect("adopted");
    assert_eq!(parent.digest, source.snapshot.digest());
    let restored = source.job.restored(&adopted);
    assert_eq!(restored, source.job.model);
    assert!(coordinator.trigger(SnapshotMode::Incremental).is_ok());
    // The destination has gone on by itself, so it takes no more copies.
    assert_refused(&source, &dest, ErrorKind::Mismatch, "destination");
}

#[test]
fn copy_that_stops_after_any_object_goes_on_and_is_absent_until_then() {
    let source = source();
    for takes_effect in [false, true] {
        for count in 0.. {
            let objects = Arc::new(InMemory::new());
            let failing = Failing::after(objects.clone(), count, takes_effect);
            let first = run(&source, &Storage::new(Arc::new(failing), ""));
            if let Ok(report) = first {
                let all = report.claims_copied + report.objects_copied + 1;
                assert_eq!(u64::from(count), all, "every put has been the last one");
                break;
            }
            let is_last = objects_of(&objects)
                .keys()
                .any(|n| n.starts_with("snapshots/"));
            if !(takes_effect && is_last) {
                assert_no_manifest(&objects);
            }
            let dest = Storage::new(objects.clone(), "");
            let second = run(&source, &dest).expect("it goes on");
            let done = second.objects_present + second.objects_copied;
            assert_eq!(done, source.snapshot.manifest().objects().len() as u64);
            let put_before = u64::from(count) + u64::from(takes_effect);
            assert_eq!(
                second.objects_present,
                put_before.saturating_sub(2).min(done)
            );
            let latest = block_on(open(&dest, 9).latest()).expect("read");
            assert_eq!(latest.expect("copied").digest(), source.snapshot.digest());
            let third = run(&source, &dest).expect("nothing is left to do");
            assert!(third.was_complete && third.objects_copied == 0);
            assert_eq!(third.objects_present, done);
        }
    }
}

#[test]
fn damaged_or_missing_source_stops_it_by_name() {
    let source = source();
    let originals = objects_of(&source.job.objects);
    for object in source.snapshot.manifest().objects() {
        let name = object.to_string();
        let bytes = &originals[&name];
        let mut flipped = bytes.to_vec();
        flipped[bytes.len() / 3] ^= 1;
        let longer = [&bytes[..], b"x"].concat();
        for bad in [flipped, longer, bytes[..9].to_vec()] {
            put(&source.job.objects, &name, bad);
            let objects = Arc::new(InMemory::new());
            let dest = Storage::new(objects.clone(), "");
            let error = assert_refused(&source, &dest, ErrorKind::Corrupt, "source");
            assert_eq!(error.fact("object"), Some(&*name), "{error}");
            assert_no_manifest(&objects);
        }
        crate::job::delete(&source.job.objects, &name);
        let dest = Storage::memory();
        assert_refused(&source, &dest, ErrorKind::NotFound, "source");
        put(&source.job.objects, &name, bytes.clone());
    }
}

#[test]
fn destination_of_another_run_is_refused() {
    let mut source = source();
    let copied = || {
        let objects = Arc::new(InMemory::new());
        let dest = Storage::new(objects.clone(), "");
        run(&source, &dest).expect("copied");
        (objects, dest)
    };
    // Another job's claim.
    let mut other = Job::start(1, 52);
    other.advance(10);
    let error = assert_refused(&source, &other.storage, ErrorKind::Mismatch, "destination");
    assert!(error.fact("object").is_some(), "{error}");
    // Another snapshot at the same place.
    let (objects, dest) = copied();
    let name = source.snapshot.position().object().to_string();
    let mut bytes = objects_of(&objects)[&name].to_vec();
    bytes[100] ^= 1;
    put(&objects, &name, bytes);
    assert_refused(&source, &dest, ErrorKind::Mismatch, "destination");
    // A damaged object that an earlier copy left.
    let (objects, dest) = copied();
    let object = source
        .snapshot
        .manifest()
        .objects()
        .pop_last()
        .expect("one");
    let mut bytes = objects_of(&objects)[&object.to_string()].to_vec();
    bytes[20] ^= 1;
    put(&objects, &object.to_string(), bytes);
    let error = assert_refused(&source, &dest, ErrorKind::Corrupt, "destination");
    assert_eq!(error.fact("object"), Some(&*object.to_string()));
    // A newer snapshot.
    let (_, dest) = copied();
    source.job.advance(10);
    let older = source.snapshot.clone();
    source.snapshot = source.job.coordinator.confirmed().clone();
    source.store = asks_once(&source.job.storage);
    run(&source, &dest).expect("a later one follows");
    source.snapshot = older;
    assert_refused(&source, &dest, ErrorKind::Mismatch, "destination");
    // The same directory, and a snapshot from elsewhere.
    let error = run(&source, &source.job.storage).expect_err("the same");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    source.store = asks_once(&other.storage);
    let error = run(&source, &Storage::memory()).expect_err("from elsewhere");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

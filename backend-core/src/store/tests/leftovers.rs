//! What lies in a job's directory and is not the job's, or nobody's any more.

use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;

use super::collect::{at, collect, extend, last};
use super::*;
use crate::clock::ManualEnvironment;
use crate::names::{Folder, ObjectName};
use crate::store::CollectOptions;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn put(store: &InMemory, path: &str) {
    block_on(store.put(&Path::from(path), "x".into())).expect("put");
}

#[test]
fn hidden_files_are_passed_over_in_every_folder() {
    let inner = Arc::new(InMemory::new());
    let storage = Storage::new(inner.clone(), "job");
    let mut first = claim(&storage, 1);
    extend(&mut first, &storage, &[]);
    for folder in Folder::ALL {
        put(&inner, &format!("job/{}/.DS_Store", folder.as_str()));
    }
    let mut second = claim(&storage, 2);
    extend(&mut second, &storage, &[]);
    let report = collect(&mut second, &last(1)).expect("nothing of the job's");
    assert_eq!((report.strangers, report.is_complete), (0, true));
}

#[test]
fn a_stranger_among_manifests_says_what_to_do() {
    let inner = Arc::new(InMemory::new());
    let storage = Storage::new(inner.clone(), "job");
    claim(&storage, 1);
    put(&inner, "job/snapshots/notes.txt");
    let error = block_on(open(&storage, 2).claim()).expect_err("it may be a renamed manifest");
    assert_eq!(
        (error.kind(), error.fact("object")),
        (ErrorKind::Corrupt, Some("job/snapshots/notes.txt"))
    );
    assert!(error.to_string().contains("move it elsewhere"), "{error}");
}

#[test]
fn strangers_among_segments_stay_and_are_reported() {
    let inner = Arc::new(InMemory::new());
    let storage = Storage::new(inner.clone(), "job");
    let mut leader = claim(&storage, 1);
    let [gone, kept] = [(); 2].map(|()| {
        let new = extend(&mut leader, &storage, &[]).meta.location.object();
        format!("job/{}", new.expect("an object"))
    });
    for name in ["segments/copy of 3", "parts/notes.txt"] {
        put(&inner, &format!("job/{name}"));
    }
    let report = collect(&mut leader, &last(1)).expect("strangers hold nothing up");
    assert_eq!((report.objects, report.strangers), (1, 2));
    assert_eq!(report.stranger.as_deref(), Some("job/segments/copy of 3"));
    assert!(report.to_string().contains("copy of 3"), "{report}");
    block_on(inner.head(&Path::from("job/segments/copy of 3"))).expect("it is somebody's");
    assert!(block_on(inner.head(&Path::from(kept))).is_ok());
    assert!(block_on(inner.head(&Path::from(gone))).is_err());
}

#[test]
fn strangers_among_probes_do_not_stop_an_open() {
    let inner = Arc::new(InMemory::new());
    put(&inner, "job/probe/notes.txt");
    claim(&Storage::new(inner, "job"), 1);
}

#[test]
fn what_killed_writers_staged_goes_from_every_folder() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = Storage::local(directory.path()).expect("created");
    let mut leader = claim(&storage, 1);
    extend(&mut leader, &storage, &[]);
    extend(&mut leader, &storage, &[]);
    let doomed = [
        ObjectName::Epoch(Epoch(1)),
        at(1, 2).object(),
        ObjectName::Collect(Epoch(0), 7),
        ObjectName::Claimed(Epoch(1), SnapshotId(2)),
    ];
    // What is named by chance alone may be being written right now.
    let young = [
        ObjectName::Pin(UniqueId(4)),
        ObjectName::Probe(UniqueId(4)),
        at(1, 4).object(),
    ];
    for object in doomed.iter().chain(&young) {
        let path = directory.path().join(format!("{object}#1"));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        std::fs::write(path, "half").expect("written");
    }
    let is_there = |object: &ObjectName| directory.path().join(format!("{object}#1")).exists();
    let plan = leader.collection(&last(1), CollectOptions::default());
    let planned = block_on(plan.expect("it leads").dry_run()).expect("readable");
    assert!(doomed.iter().all(is_there), "a dry run deletes nothing");
    let report = collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(
        (planned.objects, planned.bytes),
        (report.objects, report.bytes)
    );
    assert_eq!(report.objects, 1 + doomed.len() as u64);
    assert!(!doomed.iter().any(is_there));
    assert!(young.iter().all(is_there));
}

#[test]
fn probes_of_killed_openers_and_pins_of_what_is_gone_are_tidied() {
    let storage = Storage::memory();
    // The store's own clock is the machine's.
    let now_ms = crate::clock::SystemEnvironment::shared().now_ms();
    let clock = Arc::new(ManualEnvironment::new(now_ms, 1));
    let opened = SnapshotStore::open(storage.clone(), job(), clock.clone());
    let store = block_on(opened).expect("opened");
    let mut leader = block_on(store.claim()).expect("the epoch is free");
    extend(&mut leader, &storage, &[]);
    extend(&mut leader, &storage, &[]);
    let probe = ObjectName::Probe(UniqueId(7));
    block_on(storage.create(&probe, "x".into())).expect("created");
    let held = block_on(store.pin(at(1, 2), "holds it", None)).expect("it is there");
    let gone = crate::manifest::Pin {
        position: at(1, 1),
        unique: UniqueId(9),
        ..held.pin().clone()
    };
    collect(&mut leader, &last(1)).expect("it leads");
    let object = ObjectName::Pin(gone.unique);
    block_on(storage.create(&object, gone.encode().expect("short"))).expect("created");
    collect(&mut leader, &last(1)).expect("it leads");
    let is_there = |object| block_on(storage.size(&object)).expect("answers").is_some();
    assert_eq!((is_there(probe), is_there(object)), (true, false));
    assert!(is_there(ObjectName::Pin(held.pin().unique)));
    clock.set_ms(now_ms + 2 * DAY_MS);
    collect(&mut leader, &last(1)).expect("it leads");
    assert!(!is_there(probe));
}

#[test]
fn a_collection_reads_each_manifest_once() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    for _ in 0..10 {
        extend(&mut leader, &storage, &[]);
    }
    collect(&mut leader, &last(8)).expect("it leads");
    let before = storage.requests().gets;
    collect(&mut leader, &last(8)).expect("it leads");
    let idle = storage.requests().gets - before;
    // Two looks, and the record of the collection before.
    assert_eq!(idle, 3);
    extend(&mut leader, &storage, &[]);
    let before = storage.requests().gets;
    collect(&mut leader, &last(8)).expect("it leads");
    // Two for the ends of the new manifest, and one for all of it.
    assert_eq!(storage.requests().gets - before, idle + 3);
}

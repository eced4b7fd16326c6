//! Stores with damaged, foreign or strange objects: errors, never a fresh start.

use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};

use super::*;
use crate::manifest::Position;
use crate::names::ObjectName;

struct Job {
    objects: Arc<object_store::memory::InMemory>,
    storage: Storage,
}

/// A job with one snapshot, 1-2.
fn job_with_a_snapshot() -> Job {
    let objects = Arc::new(object_store::memory::InMemory::new());
    let storage = Storage::new(objects.clone(), "");
    let mut coordinator = claim(&storage, 1);
    snapshot(&mut coordinator, "one").expect("it leads");
    Job { objects, storage }
}

const OBJECT: ObjectName = ObjectName::Manifest(Epoch(1), SnapshotId(2));

impl Job {
    fn bytes(&self) -> Vec<u8> {
        let bytes = block_on(self.storage.get(&OBJECT, 1 << 20)).expect("readable");
        bytes.expect("it is there").to_vec()
    }

    fn replace(&self, name: &str, bytes: Vec<u8>) {
        let put = async {
            let path = Path::from(name);
            self.objects.put(&path, PutPayload::from(bytes)).await
        };
        block_on(put).expect("put");
    }

    fn assert_unreadable(&self, expected: ErrorKind, what: &str) {
        let store = open(&self.storage, 5);
        for error in [
            block_on(store.latest()).map(|_| ()).expect_err(what),
            block_on(store.list()).map(|_| ()).expect_err(what),
            block_on(store.claim()).map(|_| ()).expect_err(what),
        ] {
            assert_eq!(error.kind(), expected, "{what}: {error}");
            let object = error.fact("object").expect("the error names the object");
            assert!(object.contains("snapshots/"), "{what}: {error}");
        }
    }
}

#[test]
fn a_damaged_manifest_is_an_error_for_every_reader() {
    let job = job_with_a_snapshot();
    let bytes = job.bytes();
    let name = OBJECT.to_string();
    for at in [
        0,
        9,
        40,
        bytes.len() - 230,
        bytes.len() - 100,
        bytes.len() - 1,
    ] {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        job.replace(&name, bad);
        let store = open(&job.storage, 5);
        assert_eq!(
            kind(block_on(store.latest())),
            ErrorKind::Corrupt,
            "byte {at}"
        );
        assert_eq!(
            kind(block_on(store.claim())),
            ErrorKind::Corrupt,
            "byte {at}"
        );
    }
    for length in [0, 1, 100, bytes.len() - 1] {
        job.replace(&name, bytes[..length].to_vec());
        job.assert_unreadable(ErrorKind::Corrupt, "cut short");
    }
    job.replace(&name, bytes);
    let coordinator = claim(&job.storage, 6);
    assert_eq!(
        coordinator.adopted().engine(),
        "one",
        "once repaired, it is adopted"
    );
}

#[test]
fn a_manifest_of_another_job_is_a_mismatch() {
    let job = job_with_a_snapshot();
    let env = env(7);
    let other = JobId::new("others").expect("valid");
    let store = block_on(SnapshotStore::open(job.storage.clone(), other, env)).expect("opened");
    let error = block_on(store.latest()).expect_err("another job's");
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert_eq!(
        (error.fact("expected"), error.fact("got")),
        (Some("others"), Some("words"))
    );
    assert_eq!(kind(block_on(store.list())), ErrorKind::Mismatch);
}

#[test]
fn a_manifest_under_another_name_is_a_mismatch() {
    let job = job_with_a_snapshot();
    let other = ObjectName::Manifest(Epoch(1), SnapshotId(3));
    job.replace(&other.to_string(), job.bytes());
    job.assert_unreadable(ErrorKind::Mismatch, "swapped");
}

#[test]
fn a_stranger_among_the_manifests_is_not_passed_over() {
    let job = job_with_a_snapshot();
    job.replace("snapshots/1-2.bak", vec![1, 2, 3]);
    job.assert_unreadable(ErrorKind::Corrupt, "a stranger");
}

#[test]
fn a_damaged_condemn_record_or_a_missing_epoch_stops_a_claim() {
    let job = job_with_a_snapshot();
    let record = ObjectName::Collect(Epoch(1), 0).to_string();
    job.replace(&record, vec![0; 60]);
    assert_eq!(
        kind(block_on(open(&job.storage, 5).latest())),
        ErrorKind::Corrupt
    );
    block_on(job.objects.delete(&Path::from(record))).expect("deleted");
    let epoch = ObjectName::Epoch(Epoch(1)).to_string();
    let later = ObjectName::Epoch(Epoch(9)).to_string();
    job.replace(&later, vec![0; 60]);
    block_on(job.objects.delete(&Path::from(epoch))).expect("deleted");
    assert_eq!(
        kind(block_on(open(&job.storage, 6).claim())),
        ErrorKind::Corrupt
    );
}

#[test]
fn a_missing_manifest_is_named() {
    let job = job_with_a_snapshot();
    let store = open(&job.storage, 5);
    let error = block_on(store.load(Epoch(1), SnapshotId(7))).expect_err("there is none");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let name = ObjectName::Manifest(Epoch(1), SnapshotId(7)).to_string();
    assert_eq!(error.fact("object"), Some(&*name));
}

#[test]
fn one_part_is_read_without_the_others() {
    let job = job_with_a_snapshot();
    let store = open(&job.storage, 5);
    let at = Position::new(Epoch(1), SnapshotId(2));
    let whole = block_on(store.load(at.epoch, at.id)).expect("readable");
    let part = block_on(store.load_part(at, &operator("count"), TaskIndex(1))).expect("readable");
    assert_eq!(part, whole.manifest().parts[1]);
    let missing = block_on(store.load_part(at, &operator("count"), TaskIndex(2)));
    assert_eq!(kind(missing), ErrorKind::NotFound);
}

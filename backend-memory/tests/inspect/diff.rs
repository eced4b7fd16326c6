//! What differs between two snapshots is what a comparison of their contents says.

use std::collections::BTreeMap;

use backend_core::inspect::{DiffOptions, Difference, SnapshotReader, StoredValue, diff};
use backend_core::{ErrorKind, HashRange, KeyHasher, OperatorId, Snapshot, SnapshotMode};
use futures::executor::block_on;

use crate::job::{Job, operator};

type Place = (String, Vec<u8>, Vec<u8>);

/// Everything that a snapshot holds, read key by key.
fn contents(snapshot: &Snapshot) -> BTreeMap<Place, StoredValue> {
    let reader = SnapshotReader::open(snapshot, &operator()).expect("opened");
    let mut all = BTreeMap::new();
    for key in 0..400_u32 {
        let state_key = reader.key(&key).expect("a key");
        let key = key.to_be_bytes().to_vec();
        if let Some(value) = block_on(reader.value("values", &state_key)).expect("read") {
            all.insert(("values".to_owned(), key.clone(), Vec::new()), value);
        }
        for state in ["lists", "maps"] {
            let mut entries = reader.entries(state, &state_key).expect("there");
            while let Some(entry) = block_on(entries.next()).expect("read") {
                let place = (state.to_owned(), key.clone(), entry.sub_key.to_vec());
                all.insert(place, entry.value);
            }
        }
    }
    all
}

fn differences(old: &Snapshot, new: &Snapshot) -> Vec<Difference> {
    let mut diff = diff(old, new, &DiffOptions::default()).expect("comparable");
    let mut all = Vec::new();
    while let Some(difference) = block_on(diff.next()).expect("read") {
        assert_eq!(difference.operator, operator());
        assert!(difference.namespace.is_empty());
        all.push(difference);
    }
    all
}

type Change = (Option<StoredValue>, Option<StoredValue>);

fn changes(old: &Snapshot, new: &Snapshot) -> BTreeMap<Place, Change> {
    let all = differences(old, new);
    let count = all.len();
    let changes: BTreeMap<Place, Change> = all
        .into_iter()
        .map(|d| {
            let place = (d.state.to_string(), d.key.to_vec(), d.sub_key.to_vec());
            (place, (d.old, d.new))
        })
        .collect();
    assert_eq!(changes.len(), count, "each entry comes once");
    changes
}

fn expected(old: &Snapshot, new: &Snapshot) -> BTreeMap<Place, Change> {
    let (old, new) = (contents(old), contents(new));
    let places = old.keys().chain(new.keys());
    let changes = places.map(|place| {
        let change = (old.get(place).cloned(), new.get(place).cloned());
        (place.clone(), change)
    });
    changes.filter(|(_, (old, new))| old != new).collect()
}

#[test]
fn differences_are_those_of_the_contents_at_any_parallelism() {
    let mut job = Job::start(2, 31);
    let mut kept = Vec::new();
    for tasks in [0, 0, 3, 5, 1] {
        if tasks > 0 {
            job.rescale(tasks);
        }
        job.advance(300);
        kept.push(job.coordinator.confirmed().clone());
    }
    for (old, new) in [(0, 1), (1, 2), (0, 4), (3, 2), (4, 0), (2, 3)] {
        let (old, new) = (&kept[old], &kept[new]);
        let changes = changes(old, new);
        assert!(changes.len() > 100);
        let what = format!("{} to {}", old.position(), new.position());
        assert!(changes == expected(old, new), "{what}");
    }
    assert!(differences(&kept[1], &kept[1]).is_empty());
}

#[test]
fn differences_come_in_the_order_of_entries_within_each_piece() {
    let mut job = Job::start(2, 32);
    job.advance(500);
    let old = job.coordinator.confirmed().clone();
    job.rescale(3);
    job.advance(300);
    let new = job.coordinator.confirmed().clone();
    let mut starts: Vec<u64> = (0..2).map(|t| HashRange::of_task(t, 2).first()).collect();
    starts.extend((0..3).map(|t| HashRange::of_task(t, 3).first()));
    let place = |d: &Difference| {
        let hash = KeyHasher::XXH3_64.hash(&d.key);
        let piece = starts.iter().filter(|start| **start <= hash).max();
        let uid = backend_core::StateUid::of(&d.state, backend_core::StateKind::Value).0;
        let piece = *piece.expect("a piece begins at 0");
        (piece, uid, hash >> 56, d.key.clone(), d.sub_key.clone())
    };
    let places: Vec<_> = differences(&old, &new).iter().map(place).collect();
    assert!(places.len() > 100);
    assert!(places.is_sorted());
}

#[test]
fn shared_segments_are_not_read_and_copies_in_other_stores_are() {
    let mut job = Job::start(2, 33);
    job.advance(400);
    let old = job.coordinator.confirmed().clone();
    let same = block_on(job.store.claim())
        .expect("claimed")
        .adopted()
        .clone();
    let before = job.storage.requests().gets;
    assert!(differences(&old, &same).is_empty());
    assert_eq!(job.storage.requests().gets, before, "nothing is read");
    // Another run of the same job writes the same entries elsewhere.
    let mut other = Job::start(3, 33);
    other.advance(400);
    let other = other.coordinator.confirmed().clone();
    assert!(differences(&old, &other).is_empty());
}

#[test]
fn operators_of_one_side_are_told_and_all_their_entries_differ() {
    let mut job = Job::start(1, 34);
    let empty = job.coordinator.adopted().clone();
    job.advance(300);
    let full = job.coordinator.confirmed().clone();
    let walk = diff(&empty, &full, &DiffOptions::default()).expect("comparable");
    let found: Vec<_> = walk
        .one_sided()
        .iter()
        .map(|o| (&o.operator, &o.state))
        .collect();
    assert_eq!(found, [(&operator(), &None)]);
    let all = differences(&empty, &full);
    assert_eq!(all.len() as u64, job.model.entries());
    assert!(all.iter().all(|d| d.old.is_none() && d.new.is_some()));
    let mut options = DiffOptions::default();
    options.operators = vec![OperatorId::new("stranger").expect("a name")];
    let unknown = diff(&empty, &full, &options).expect_err("unknown");
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    job.snapshot(SnapshotMode::Full);
}

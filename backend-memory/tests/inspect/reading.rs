//! What is read by key is what a restore holds.

use backend_core::inspect::{ListReader, MapReader, SnapshotReader, ValueReader};
use backend_core::{
    ErrorKind, HashId, KeyHasher, OperatorId, SchemaVersion, Snapshot, StateOptions,
};
use futures::executor::block_on;

use crate::job::{Job, Model, delete, operator};

fn reader(snapshot: &Snapshot) -> SnapshotReader {
    SnapshotReader::open(snapshot, &operator()).expect("opened")
}

/// Everything that `snapshot` holds of the keys of the model's jobs, and of some that none has.
fn read_all(snapshot: &Snapshot) -> Model {
    let reader = reader(snapshot);
    let values = ValueReader::<u64>::open(&reader, "values").expect("there");
    let lists = ListReader::<u64>::open(&reader, "lists").expect("there");
    let maps = MapReader::<u32, u64>::open(&reader, "maps").expect("there");
    let mut found = Model::default();
    for key in 0..410_u32 {
        let state_key = reader.key(&key).expect("a key");
        let value = block_on(values.get(&state_key)).expect("read");
        found.values.extend(value.map(|value| (key, value)));
        let list = block_on(lists.get(&state_key)).expect("read");
        if !list.is_empty() {
            found.lists.insert(key, list);
        }
        let entries = block_on(maps.entries(&state_key)).expect("read");
        for user_key in 0..22_u32 {
            let expected = entries.iter().find(|(k, _)| *k == user_key);
            let got = block_on(maps.get(&state_key, &user_key)).expect("read");
            assert_eq!(got, expected.map(|(_, v)| *v), "{key}: {user_key}");
        }
        if !entries.is_empty() {
            found.maps.insert(key, entries.into_iter().collect());
        }
    }
    found
}

#[test]
fn x7_reading_by_key_agrees_with_a_restore_over_chains_and_rescales() {
    let mut job = Job::start(2, 21);
    for tasks in [0, 0, 3, 0, 1, 4, 0] {
        if tasks > 0 {
            job.rescale(tasks);
        }
        job.advance(400);
        let snapshot = job.coordinator.confirmed().clone();
        assert_eq!(read_all(&snapshot), job.model);
        assert_eq!(job.restored(&snapshot), job.model);
    }
}

#[test]
fn older_snapshots_are_read_as_they_were() {
    let mut job = Job::start(2, 22);
    let mut kept = Vec::new();
    for _ in 0..4 {
        job.advance(300);
        kept.push((job.coordinator.confirmed().clone(), job.model.clone()));
    }
    for (snapshot, model) in kept {
        assert_eq!(read_all(&snapshot), model);
    }
}

#[test]
fn look_up_costs_at_most_two_reads_a_run() {
    let mut job = Job::start(1, 23);
    for _ in 0..6 {
        job.advance(500);
    }
    let snapshot = job.coordinator.confirmed().clone();
    let part = &snapshot.manifest().parts[0].task;
    let runs = part.segments.chunk_by(|a, b| a.run == b.run).count() as u64;
    assert!(runs >= 6, "{runs} runs");
    let reader = reader(&snapshot);
    let values = ValueReader::<u64>::open(&reader, "values").expect("there");
    let mut all = 0;
    for key in 0..400_u32 {
        let state_key = reader.key(&key).expect("a key");
        let before = snapshot.source().requests().gets;
        block_on(values.get(&state_key)).expect("read");
        let gets = snapshot.source().requests().gets - before;
        assert!(gets <= 2 * runs, "key {key}: {gets} reads of {runs} runs");
        all += gets;
    }
    assert!(all < 400 * (runs + 2), "filters exclude most: {all}");
}

#[test]
fn what_does_not_fit_the_snapshot_is_refused() {
    let mut job = Job::start(1, 24);
    job.advance(200);
    let snapshot = job.coordinator.confirmed().clone();
    let stranger = OperatorId::new("stranger").expect("a name");
    let kind = |e: backend_core::Error| e.kind();
    let unknown = SnapshotReader::open(&snapshot, &stranger).expect_err("unknown");
    assert_eq!(unknown.fact("known"), Some("[job]"));
    let hasher = KeyHasher::custom(HashId(1_001), |_| 7);
    let other = SnapshotReader::open_with(&snapshot, &operator(), hasher);
    assert_eq!(kind(other.expect_err("hashed")), ErrorKind::Mismatch);
    let reader = reader(&snapshot);
    assert_eq!(
        kind(reader.key("text").expect_err("u32")),
        ErrorKind::Mismatch
    );
    let none = ValueReader::<u64>::open(&reader, "nothing").expect_err("none");
    assert_eq!(none.fact("known"), Some("[values, lists, maps]"));
    for error in [
        ValueReader::<u32>::open(&reader, "values").expect_err("codec"),
        ValueReader::<u64>::open(&reader, "lists").expect_err("kind"),
        ListReader::<u64>::open(&reader, "maps").expect_err("kind"),
        MapReader::<u64, u64>::open(&reader, "maps").expect_err("user key"),
        ValueReader::<u64>::open_with(
            &reader,
            "values",
            &StateOptions::new().with_schema(SchemaVersion(1)),
        )
        .expect_err("schema"),
    ] {
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
        assert!(error.fact("expected").is_some(), "{error}");
    }
    let key = reader.key(&1_u32).expect("a key");
    let wrong = block_on(reader.value("maps", &key)).expect_err("a map");
    assert_eq!(wrong.kind(), ErrorKind::Mismatch);
}

#[test]
fn missing_segment_is_named_by_every_read_that_needs_it() {
    let mut job = Job::start(1, 25);
    job.advance(400);
    let snapshot = job.coordinator.confirmed().clone();
    let reader = reader(&snapshot);
    let lists = ListReader::<u64>::open(&reader, "lists").expect("there");
    let key = *job.model.lists.keys().next().expect("a list");
    let key = reader.key(&key).expect("a key");
    for object in snapshot.manifest().objects() {
        delete(&job.objects, &object.to_string());
    }
    let error = block_on(lists.get(&key)).expect_err("it is gone");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.fact("object").is_some(), "{error}");
    let mut entries = reader.entries("lists", &key).expect("there");
    block_on(entries.next()).expect_err("it is gone");
    let after = block_on(entries.next()).expect_err("it has ended");
    assert_eq!(after.kind(), ErrorKind::Closed);
}

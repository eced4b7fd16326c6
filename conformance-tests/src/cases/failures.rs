//! Snapshots that are cancelled, fail, or are overtaken.

use std::thread;

use backend_core::{ErrorKind, SnapshotMode};
use futures::executor::block_on;
use futures::future::{AbortHandle, Abortable};

use crate::backend::BackendUnderTest;
use crate::cases::snapshots::write_much;
use crate::contents::{Contents, noise};
use crate::job::Job;

/// S6: a snapshot whose backend is closed under way ends: whole, or as cancelled.
pub fn s6_closing_the_backend_ends_its_snapshot(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let mut expected = Contents::default();
    write_much(&mut job, &mut expected, 1);
    let frozen = job.freeze(SnapshotMode::Incremental);
    let (id, medium) = (frozen.id(), job.spec.medium.clone());
    medium.hold(id);
    thread::scope(|scope| {
        let writer = scope.spawn(|| frozen.write());
        medium.wait_until_held(id);
        job.close();
        medium.release(id);
        match writer.join().expect("it does not panic") {
            Ok(snapshot) => assert_eq!(snapshot.contents(1), expected),
            Err(e) => assert!(
                [ErrorKind::Cancelled, ErrorKind::Closed].contains(&e.kind()),
                "{e}"
            ),
        }
    });
}

/// S6: a snapshot whose store is gone before its write begins ends in the same way.
pub fn s6_a_snapshot_of_a_closed_store_ends(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let mut expected = Contents::default();
    write_much(&mut job, &mut expected, 1);
    let frozen = job.freeze(SnapshotMode::Incremental);
    job.close();
    match frozen.write() {
        Ok(snapshot) => assert_eq!(snapshot.contents(1), expected),
        Err(e) => assert!(
            [ErrorKind::Cancelled, ErrorKind::Closed].contains(&e.kind()),
            "{e}"
        ),
    }
}

/// S7: a snapshot that is dropped, before or in its write, leaves the task as it was, and the
/// next increment holds its changes.
pub fn s7_a_cancelled_snapshot_leaves_no_trace(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let mut expected = Contents::default();
    write_much(&mut job, &mut expected, 1);
    job.incremental();
    write_much(&mut job, &mut expected, 2);
    let gone = job.key([1, 7]);
    job.clear_value(&gone);
    expected.values.remove(&(vec![1, 7], vec![]));
    let dropped = job.freeze(SnapshotMode::Incremental);
    job.abort(dropped.id());
    drop(dropped);

    job.put(&gone, "back");
    expected.put(&gone, b"back");
    write_much(&mut job, &mut expected, 3);
    let frozen = job.freeze(SnapshotMode::Incremental);
    let (id, medium) = (frozen.id(), job.spec.medium.clone());
    medium.hold(id);
    let (handle, registration) = AbortHandle::new_pair();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let write = Abortable::new(frozen.write_async(), registration);
            block_on(write).is_err()
        });
        medium.wait_until_held(id);
        handle.abort();
        assert!(
            writer.join().expect("it does not panic"),
            "it was cancelled"
        );
    });
    medium.release(id);
    job.abort(id);
    assert_eq!(job.contents(), expected);
    let snapshot = job.incremental();
    assert_eq!(snapshot.contents(1), expected);
}

/// S7: a snapshot that is written after it was aborted fails cleanly or is whole, and disturbs
/// nothing.
pub fn s7_a_late_write_of_an_aborted_snapshot(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let mut first = Contents::default();
    write_much(&mut job, &mut first, 1);
    let aborted = job.freeze(SnapshotMode::Incremental);
    job.abort(aborted.id());
    let mut second = first.clone();
    write_much(&mut job, &mut second, 2);
    let snapshot = job.incremental();
    match aborted.write() {
        Ok(late) => assert_eq!(late.contents(1), first),
        Err(e) => assert!(
            [ErrorKind::Cancelled, ErrorKind::Declined].contains(&e.kind()),
            "{e}"
        ),
    }
    assert_eq!(snapshot.contents(1), second);
    assert_eq!(job.contents(), second);
    assert_eq!(job.incremental().contents(1), second);
}

/// X9: a snapshot whose puts fail is an error, and the next one holds all of its changes.
pub fn x9_a_failed_write_is_an_error_and_loses_nothing(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let mut expected = Contents::default();
    write_much(&mut job, &mut expected, 1);
    job.incremental();
    for round in 2..5 {
        write_much(&mut job, &mut expected, round);
        let frozen = job.freeze(SnapshotMode::Incremental);
        let id = frozen.id();
        job.spec.medium.fail(id);
        let Err(error) = frozen.write() else {
            panic!("a write whose puts failed succeeded");
        };
        let kinds = [ErrorKind::InDoubt, ErrorKind::Transient];
        assert!(kinds.contains(&error.kind()), "{error}");
        job.abort(id);
        assert_eq!(job.contents(), expected, "an abort rolls nothing back");
    }
    let key = job.key([2, 5]);
    job.clear_list(&key);
    expected.lists.remove(&(vec![2, 5], vec![]));
    assert_eq!(job.incremental().contents(1), expected);
}

/// What becomes of a pending snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Completes,
    Fails,
    IsCancelled,
}

const FATES: [Fate; 3] = [Fate::Completes, Fate::Fails, Fate::IsCancelled];

/// The orders of three.
const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

fn fates() -> impl Iterator<Item = [Fate; 3]> {
    (0..27).map(|i| [FATES[i / 9], FATES[i / 3 % 3], FATES[i % 3]])
}

/// One generation's worth of changes, each of which overrides, removes and adds.
fn change(job: &mut Job<'_>, expected: &mut Contents, round: u8) {
    let all = job.key("all");
    let value = noise(u64::from(round), 9_000);
    job.put(&all, &value);
    expected.put(&all, &value);
    job.append(&all, [round]);
    expected.append(&all, &[round]);
    job.map_put(&all, [round], [round]);
    expected.map_put(&all, &[round], &[round]);
    job.map_remove(&all, [round - 1]);
    expected.map_remove(&all, &[round - 1]);
    let (own, last) = (job.key([round]), job.key([round - 1]));
    job.put(&own, [round]);
    expected.put(&own, &[round]);
    job.append(&own, [round]);
    expected.append(&own, &[round]);
    job.clear_value(&last);
    expected.values.remove(&(vec![round - 1], vec![]));
    job.clear_list(&last);
    expected.lists.remove(&(vec![round - 1], vec![]));
}

/// X14: three snapshots are pending and are written one after the other, in every order and with
/// every fate; each that completes restores exactly its own state.
pub fn x14_pending_snapshots_end_in_any_order(backend: &dyn BackendUnderTest) {
    for (order, fates) in ORDERS
        .into_iter()
        .flat_map(|o| fates().map(move |f| (o, f)))
    {
        let mut job = Job::new(backend);
        let mut expected = Contents::default();
        change(&mut job, &mut expected, 1);
        job.incremental();
        let mut pending = Vec::new();
        for round in 2..5 {
            change(&mut job, &mut expected, round);
            let frozen = job.freeze(SnapshotMode::Incremental);
            pending.push(Some((frozen, expected.clone())));
        }
        change(&mut job, &mut expected, 5);
        for index in order {
            let (frozen, contents) = pending[index].take().expect("each comes once");
            let id = frozen.id();
            match fates[index] {
                Fate::Completes => {
                    let snapshot = frozen.write().expect("a snapshot is written");
                    job.confirm(id);
                    assert_eq!(
                        snapshot.contents(1),
                        contents,
                        "{index}: {order:?} {fates:?}"
                    );
                }
                Fate::Fails => {
                    job.spec.medium.fail(id);
                    assert!(frozen.write().is_err(), "{index}: {order:?} {fates:?}");
                    job.abort(id);
                }
                Fate::IsCancelled => {
                    drop(frozen);
                    job.abort(id);
                }
            }
        }
        assert_eq!(job.contents(), expected, "{order:?} {fates:?}");
        let last = job.incremental();
        assert_eq!(last.contents(1), expected, "{order:?} {fates:?}");
        // What is built upon the result is right, too.
        let mut restored = last.restore(2);
        change(&mut restored, &mut expected, 6);
        let last = restored.incremental();
        assert_eq!(last.contents(1), expected, "{order:?} {fates:?}");
    }
}

/// X14: the same with all three in the midst of their writes at once.
pub fn x14_overlapping_writes_end_in_any_order(backend: &dyn BackendUnderTest) {
    for (order, fates) in ORDERS
        .into_iter()
        .flat_map(|o| fates().map(move |f| (o, f)))
    {
        let mut job = Job::new(backend);
        let mut expected = Contents::default();
        change(&mut job, &mut expected, 1);
        job.incremental();
        let medium = job.spec.medium.clone();
        thread::scope(|scope| {
            let mut writers = Vec::new();
            for round in 2..5 {
                change(&mut job, &mut expected, round);
                let frozen = job.freeze(SnapshotMode::Incremental);
                let id = frozen.id();
                medium.hold(id);
                let (handle, registration) = AbortHandle::new_pair();
                let writer = scope
                    .spawn(move || block_on(Abortable::new(frozen.write_async(), registration)));
                medium.wait_until_held(id);
                writers.push(Some((id, handle, writer, expected.clone())));
            }
            change(&mut job, &mut expected, 5);
            for index in order {
                let (id, handle, writer, contents) =
                    writers[index].take().expect("each comes once");
                match fates[index] {
                    Fate::Completes => medium.release(id),
                    Fate::Fails => {
                        medium.fail(id);
                        medium.release(id);
                    }
                    Fate::IsCancelled => handle.abort(),
                }
                let ended = writer.join().expect("it does not panic");
                medium.release(id);
                match (fates[index], ended) {
                    (Fate::Completes, Ok(Ok(snapshot))) => {
                        job.confirm(id);
                        let found = snapshot.contents(1);
                        assert_eq!(found, contents, "{index}: {order:?} {fates:?}");
                    }
                    (Fate::Fails, Ok(Err(_))) | (Fate::IsCancelled, Err(_)) => job.abort(id),
                    _ => panic!("{index} did not end as it should: {order:?} {fates:?}"),
                }
            }
        });
        assert_eq!(job.contents(), expected, "{order:?} {fates:?}");
        assert_eq!(
            job.incremental().contents(1),
            expected,
            "{order:?} {fates:?}"
        );
    }
}

//! Every order of writes, across every kind of boundary.

use backend_core::{SnapshotMode, StateKey};

use crate::backend::BackendUnderTest;
use crate::contents::{Contents, name_of};
use crate::job::{Job, Spec};

/// What happens between two writes of each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Boundary {
    /// Nothing: both are of one generation.
    None,
    /// A snapshot that is confirmed.
    Snapshot,
    /// A snapshot that fails.
    Failure,
    /// A snapshot and a restore at another parallelism.
    Restore,
}

const BOUNDARIES: [Boundary; 4] = [
    Boundary::None,
    Boundary::Snapshot,
    Boundary::Failure,
    Boundary::Restore,
];

const STEPS: u32 = 4;

/// One write of a kind to a key, in the job and in what is expected of it.
type Write = fn(&mut Job<'_>, &mut Contents, &StateKey, step: u8);

/// Gives each sequence of [`STEPS`] writes a key of its own, and takes all of them in step over
/// each sequence of boundaries.
fn walk(backend: &dyn BackendUnderTest, writes: &[Write]) {
    let sequences = writes.len().pow(STEPS);
    for boundaries in 0..BOUNDARIES.len().pow(STEPS - 1) {
        let mut job = Job::of(Spec::new(backend), 2);
        let mut expected = Contents::default();
        let mut passed = Vec::new();
        for step in 0..STEPS {
            for sequence in 0..sequences {
                let key = job.key((sequence as u32).to_be_bytes());
                let write = writes[sequence / writes.len().pow(step) % writes.len()];
                write(&mut job, &mut expected, &key, step as u8);
            }
            if step + 1 == STEPS {
                break;
            }
            let boundary = BOUNDARIES[boundaries / BOUNDARIES.len().pow(step) % BOUNDARIES.len()];
            passed.push(boundary);
            match boundary {
                Boundary::None => {}
                Boundary::Snapshot => drop(job.incremental()),
                Boundary::Failure => {
                    let frozen = job.freeze(SnapshotMode::Incremental);
                    job.abort(frozen.id());
                }
                Boundary::Restore => job = job.incremental().restore(1 + step % 2),
            }
        }
        assert_eq!(job.contents(), expected, "live, after {passed:?}");
        let last = job.incremental();
        assert_eq!(last.contents(3), expected, "restored, after {passed:?}");
    }
}

fn clear_list(job: &mut Job<'_>, expected: &mut Contents, key: &StateKey, _step: u8) {
    job.clear_list(key);
    expected.lists.remove(&name_of(key));
}

fn append(job: &mut Job<'_>, expected: &mut Contents, key: &StateKey, step: u8) {
    for part in 0..2 {
        job.append(key, [step, part]);
        expected.append(key, &[step, part]);
    }
}

fn replace(job: &mut Job<'_>, expected: &mut Contents, key: &StateKey, step: u8) {
    let elements = [vec![step, b'r'], vec![step, b's']];
    job.replace(key, &elements);
    expected.replace(key, &elements);
}

/// X12: clears, appends and updates of a list in every order, within a generation and across
/// generations, failures and restores.
pub fn x12_list_writes_in_every_order(backend: &dyn BackendUnderTest) {
    walk(backend, &[clear_list, append, replace]);
}

fn clear_map(job: &mut Job<'_>, expected: &mut Contents, key: &StateKey, _step: u8) {
    job.clear_map(key);
    expected.maps.remove(&name_of(key));
}

fn map_put(job: &mut Job<'_>, expected: &mut Contents, key: &StateKey, step: u8) {
    for sub_key in [b'a', b'b' + step] {
        job.map_put(key, [sub_key], [step]);
        expected.map_put(key, &[sub_key], &[step]);
    }
}

fn map_remove(job: &mut Job<'_>, expected: &mut Contents, key: &StateKey, _step: u8) {
    job.map_remove(key, "a");
    expected.map_remove(key, b"a");
}

/// X12: clears, puts and removals of a map in every order.
pub fn x12_map_writes_in_every_order(backend: &dyn BackendUnderTest) {
    walk(backend, &[clear_map, map_put, map_remove]);
}

fn clear_value(job: &mut Job<'_>, expected: &mut Contents, key: &StateKey, _step: u8) {
    job.clear_value(key);
    expected.values.remove(&name_of(key));
}

fn put(job: &mut Job<'_>, expected: &mut Contents, key: &StateKey, step: u8) {
    job.put(key, [step]);
    expected.put(key, &[step]);
}

fn update(job: &mut Job<'_>, expected: &mut Contents, key: &StateKey, step: u8) {
    let old = expected.values.get(&name_of(key)).cloned();
    job.update(key, |found, edit| {
        assert_eq!(found, old.as_deref());
        match found {
            Some(_) if step % 2 == 1 => edit.clear(),
            _ => edit.put(&[step, b'u']),
        }
    });
    if old.is_some() && step % 2 == 1 {
        expected.values.remove(&name_of(key));
    } else {
        expected.put(key, &[step, b'u']);
    }
}

/// X12: clears, puts and updates of a value in every order.
pub fn x12_value_writes_in_every_order(backend: &dyn BackendUnderTest) {
    walk(backend, &[clear_value, put, update]);
}

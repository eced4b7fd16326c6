//! What increments and freezes cost.

use backend_core::SnapshotMode;

use crate::backend::BackendUnderTest;
use crate::contents::{Contents, noise};
use crate::job::Job;

/// Bytes that a snapshot may take whatever it holds: headers, an index, a footer.
const OVERHEAD_BYTES: u64 = 4 << 10;

/// How often a changed byte may be written, merges included.
const AMPLIFICATION_MAX: u64 = 5;

const ROUNDS: u64 = 30;

/// X4: the bytes of increments follow what changed, over a run of them, merges included.
pub fn x4_increments_cost_what_changed(backend: &dyn BackendUnderTest) {
    const KEYS: u64 = 20_000;
    const CHANGED: u64 = 200;
    const VALUE_BYTES: usize = 100;
    let mut job = Job::new(backend);
    let mut expected = Contents::default();
    let mut put = |job: &mut Job<'_>, number: u64, seed: u64| {
        let key = job.key(number.to_be_bytes());
        let value = noise(seed, VALUE_BYTES);
        job.put(&key, &value);
        expected.put(&key, &value);
    };
    for i in 0..KEYS {
        put(&mut job, i, i);
    }
    let full = job.incremental();
    let before = job.spec.medium.bytes_put();
    let mut last = full.clone();
    for round in 1..=ROUNDS {
        for i in 0..CHANGED {
            put(&mut job, (round * 7_919 + i * 101) % KEYS, round * KEYS + i);
        }
        last = job.incremental();
    }
    let bytes = job.spec.medium.bytes_put() - before;
    let changed_bytes = ROUNDS * CHANGED * (VALUE_BYTES as u64 + 16);
    let bytes_max = AMPLIFICATION_MAX * changed_bytes + ROUNDS * OVERHEAD_BYTES;
    assert!(
        bytes <= bytes_max,
        "{ROUNDS} increments of {changed_bytes} bytes in all took {bytes}"
    );
    assert!(full.bytes_new() >= KEYS * VALUE_BYTES as u64);
    assert_eq!(last.contents(1), expected);
}

/// X4: an increment after no change costs nothing of the state's size.
pub fn x4_an_increment_of_nothing_is_small(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    for i in 0..2_000u32 {
        job.put(&job.key(i.to_be_bytes()), noise(u64::from(i), 100));
    }
    job.incremental();
    let before = job.spec.medium.bytes_put();
    let mut last = job.incremental();
    for _ in 0..5 {
        last = job.incremental();
    }
    let bytes = job.spec.medium.bytes_put() - before;
    assert!(
        bytes <= 6 * OVERHEAD_BYTES,
        "six increments of nothing took {bytes} bytes"
    );
    assert_eq!(last.contents(1), job.contents());
}

/// X4: an increment of a long list holds its new elements, one of a large map its changes.
pub fn x4_large_lists_and_maps_cost_what_changed(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let key = job.key("k");
    for i in 0..50_000u32 {
        job.append(&key, noise(u64::from(i), 20));
        job.map_put(&key, i.to_be_bytes(), noise(u64::from(i), 20));
    }
    let full_bytes = job.incremental().bytes_new();
    let before = job.spec.medium.bytes_put();
    let mut last = job.incremental();
    for round in 1..=ROUNDS as u32 {
        for i in 0..10u32 {
            job.append(&key, noise(u64::from(round * 10 + i), 20));
            job.map_put(&key, (round * 997 + i).to_be_bytes(), "changed");
            job.map_remove(&key, (round * 499 + i).to_be_bytes());
        }
        last = job.incremental();
    }
    let bytes = job.spec.medium.bytes_put() - before;
    let bytes_max = AMPLIFICATION_MAX * ROUNDS * 30 * 48 + ROUNDS * OVERHEAD_BYTES;
    assert!(
        bytes <= bytes_max && bytes_max < full_bytes,
        "{ROUNDS} increments took {bytes} bytes, all of the state {full_bytes}"
    );
    assert_eq!(last.contents(1), job.contents());
}

/// X6: a freeze of a million entries, a large map and a long list copies nothing. It is told by
/// the memory that the store accounts for; time is for benchmarks.
pub fn x6_a_freeze_copies_nothing(backend: &dyn BackendUnderTest) {
    let mut job = Job::new(backend);
    let large = job.key("large");
    for i in 0..1_000_000u32 {
        job.put(&job.key(i.to_be_bytes()), i.to_be_bytes());
        if i.is_multiple_of(10) {
            job.map_put(&large, i.to_be_bytes(), "v");
            job.append(&large, "e");
        }
    }
    let before = job.memory_bytes();
    assert!(
        before >= 8 << 20,
        "a million entries take memory: {before} bytes"
    );
    let frozen = job.freeze(SnapshotMode::Incremental);
    let after = job.memory_bytes();
    assert!(
        after <= before + before / 100 + (64 << 10),
        "a freeze took {} bytes of {before}",
        after - before
    );
    drop(frozen);
    assert_eq!(
        job.get(&job.key(77u32.to_be_bytes())),
        Some(77u32.to_be_bytes().to_vec())
    );
}

/// How snapshots are taken while keys come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Snapshots {
    None,
    Failing,
    FullOnly,
    Incremental,
}

/// Inserts and deletes ever new keys, and compares memory with what the same live keys take.
fn churn(backend: &dyn BackendUnderTest, snapshots: Snapshots) {
    const LIVE: u64 = 1_000;
    const ROUNDS: u64 = 120;
    let mut job = Job::new(backend);
    if snapshots == Snapshots::Failing {
        job.spec.medium.fail_all(true);
    }
    let insert = |job: &mut Job<'_>, number: u64| {
        let key = job.key(noise(number, 16));
        job.put(&key, noise(number, 16));
        job.append(&key, "element");
        job.map_put(&key, "sub", "v");
    };
    let delete = |job: &mut Job<'_>, number: u64| {
        let key = job.key(noise(number, 16));
        job.clear_value(&key);
        job.clear_list(&key);
        job.map_remove(&key, "sub");
    };
    let mut early = 0;
    for round in 0..ROUNDS {
        for i in 0..LIVE {
            insert(&mut job, round * LIVE + i);
            if round > 0 {
                delete(&mut job, (round - 1) * LIVE + i);
            }
        }
        let mode = match snapshots {
            Snapshots::None => None,
            Snapshots::FullOnly => Some(SnapshotMode::Full),
            Snapshots::Failing | Snapshots::Incremental => Some(SnapshotMode::Incremental),
        };
        if let Some(mode) = mode {
            let frozen = job.freeze(mode);
            let id = frozen.id();
            match frozen.write() {
                Ok(_) => job.confirm(id),
                Err(_) => job.abort(id),
            }
        }
        if round == 9 {
            early = job.memory_bytes();
        }
    }
    let late = job.memory_bytes();
    let late_max = 2 * early + (256 << 10);
    assert!(
        late <= late_max,
        "{LIVE} live keys took {early} bytes after 10 rounds, {late} after {ROUNDS}"
    );
    let task = job.only();
    assert_eq!(
        [task.value, task.list, task.map].map(|s| task.count(s)),
        [LIVE; 3]
    );
    job.spec.medium.fail_all(false);
    assert_eq!(job.incremental().contents(1), job.contents());
}

/// X15: memory stays bounded without a snapshot.
pub fn x15_churn_without_snapshots_is_bounded(backend: &dyn BackendUnderTest) {
    churn(backend, Snapshots::None);
}

/// X15: memory stays bounded while every snapshot fails.
pub fn x15_churn_with_failing_snapshots_is_bounded(backend: &dyn BackendUnderTest) {
    churn(backend, Snapshots::Failing);
}

/// X15: memory stays bounded when only full snapshots are taken.
pub fn x15_churn_with_full_snapshots_is_bounded(backend: &dyn BackendUnderTest) {
    churn(backend, Snapshots::FullOnly);
}

/// X15: memory stays bounded with increments, too.
pub fn x15_churn_with_increments_is_bounded(backend: &dyn BackendUnderTest) {
    churn(backend, Snapshots::Incremental);
}

//! Timers against a plain set, with snapshots that succeed, fail and overlap.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::descriptor::{StateKind, StateUid};
use crate::table::SortedMode;

/// Time, length of the key, key, namespace: the order that is promised.
type Plain = (i64, usize, Vec<u8>, Vec<u8>);

#[derive(Clone, Debug)]
enum Step {
    Add(u8, i64),
    Remove(u8, i64),
    Pop(i64, usize),
    Freeze,
    Settle(bool),
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let time = -20..20_i64;
    prop_oneof![
        12 => (0..24_u8, time.clone()).prop_map(|(key, time)| Step::Add(key, time)),
        4 => (0..24_u8, time.clone()).prop_map(|(key, time)| Step::Remove(key, time)),
        3 => (time, 1..9_usize).prop_map(|(until, most)| Step::Pop(until, most)),
        1 => Just(Step::Freeze),
        1 => any::<bool>().prop_map(Step::Settle),
        1 => Just(Step::Sweep),
    ]
}

fn key(number: u8) -> StateKey {
    let key = vec![number; usize::from(number % 3)];
    let key = StateKey::new(&KeyHasher::XXH3_64, &key).expect("short");
    key.in_namespace(&[number / 3][..usize::from(number % 2)])
        .expect("short")
}

fn plain(key: &StateKey, time: i64) -> Plain {
    (
        time,
        key.key().len(),
        key.key().to_vec(),
        key.namespace().to_vec(),
    )
}

fn plain_of(timer: &Timer<'_>) -> Plain {
    let Timer {
        time,
        key,
        namespace,
    } = *timer;
    (time, key.len(), key.to_vec(), namespace.to_vec())
}

/// What applying the entries of a snapshot to `durable` gives; they must be in order.
fn apply(
    frozen: FrozenTimers,
    newer_than: Generation,
    mut durable: BTreeSet<Plain>,
) -> BTreeSet<Plain> {
    let mut last: Option<(u8, Plain)> = None;
    let visited = frozen.into_sorted(
        StateUid::of("alarms", StateKind::Timers),
        newer_than,
        SortedMode::Changes,
        &mut |entry, _| {
            let timer = plain_of(&Timer::of_entry(&entry.key).expect("a timer"));
            let place = (entry.key.shard, timer.clone());
            assert!(
                last.as_ref().is_none_or(|last| *last < place),
                "entries are in order"
            );
            last = Some(place);
            if entry.op == Op::Put {
                durable.insert(timer);
            } else {
                durable.remove(&timer);
            }
            Ok(())
        },
    );
    visited.expect("the visitor takes all");
    durable
}

proptest! {
    #[test]
    fn timers_are_an_ordered_set_and_so_are_their_snapshots(
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut table = TimerTable::new(HashRange::ALL, KeyHasher::XXH3_64);
        let mut model = BTreeSet::<Plain>::new();
        let mut ctx = WriteContext {
            generation: Generation(1),
            covered: Generation::ZERO,
            anchor: Generation::ZERO,
            incremental: true,
        };
        let mut durable = BTreeSet::new();
        let mut pending: Option<(Generation, FrozenTimers, BTreeSet<Plain>)> = None;
        for step in steps {
            match step {
                Step::Add(number, time) => {
                    let least = model.first().map(|timer| timer.0);
                    model.insert(plain(&key(number), time));
                    let changed = table.add(&key(number), time, &ctx);
                    prop_assert_eq!(changed, model.first().map(|timer| timer.0) != least);
                }
                Step::Remove(number, time) => {
                    let was_there = model.remove(&plain(&key(number), time));
                    prop_assert_eq!(table.remove(&key(number), time, &ctx), was_there);
                }
                Step::Pop(until, most) => {
                    let mut batch = TimerBatch::new(most);
                    table.pop(until, &mut batch, &ctx);
                    let due: Vec<_> = model.iter().filter(|t| t.0 <= until).cloned().collect();
                    let popped: Vec<_> = batch.iter().map(|timer| plain_of(&timer)).collect();
                    prop_assert_eq!(&popped[..], &due[..due.len().min(most)]);
                    prop_assert_eq!(batch.is_complete(), due.len() <= most);
                    model.retain(|timer| !popped.contains(timer));
                }
                Step::Freeze if pending.is_none() => {
                    pending = Some((ctx.generation, table.freeze(), model.clone()));
                    ctx.anchor = ctx.generation;
                    ctx.generation = ctx.generation.next();
                }
                Step::Settle(succeeds) => {
                    if let Some((generation, frozen, then)) = pending.take() {
                        let applied = apply(frozen, ctx.covered, durable.clone());
                        prop_assert_eq!(&applied, &then);
                        if succeeds {
                            durable = applied;
                            ctx.covered = generation;
                        }
                        ctx.anchor = ctx.covered;
                    }
                }
                Step::Sweep => table.sweep(&ctx),
                Step::Freeze => {}
            }
            prop_assert_eq!(table.len(), model.len() as u64);
            prop_assert_eq!(table.next_time(), model.first().map(|timer| timer.0));
        }
        let half = HashRange::of_task(0, 2);
        let mut batch = TimerBatch::new(1_000);
        table.scan(half, None, &mut batch);
        let expected: Vec<_> = model
            .iter()
            .filter(|timer| half.contains(KeyHasher::XXH3_64.hash(&timer.2)))
            .cloned()
            .collect();
        let scanned: Vec<_> = batch.iter().map(|timer| plain_of(&timer)).collect();
        prop_assert_eq!(scanned, expected);
    }
}

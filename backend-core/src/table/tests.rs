//! The table against a plain map, with snapshots that succeed, fail and overlap.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::descriptor::{StateKind, StateUid};
use crate::entry::{Entry, EntryKey, Op};
use crate::generation::{Generation, WriteContext};
use crate::hash::{HashId, KeyHasher};
use crate::key::StateKey;
use crate::range::HashRange;
use crate::scan::KeyBatch;
use crate::table::{FrozenTable, SortedMode, Table};

type Identity = (Vec<u8>, Vec<u8>);
type Model = BTreeMap<Identity, Vec<u8>>;

const STATE: StateUid = StateUid(7);

/// A step of a model test; keys are numbers that [`Harness::key`] makes bytes of.
#[derive(Clone, Debug)]
enum Step {
    Put(u16, usize),
    Remove(u16),
    Update(u16, usize),
    Freeze,
    Settle(bool),
    Sweep,
}

fn steps(keys: u16) -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![6 => 0_usize..10, 3 => 0_usize..40, 1 => 200_usize..400];
    let step = prop_oneof![
        12 => (0..keys, size.clone()).prop_map(|(key, size)| Step::Put(key, size)),
        8 => (0..keys).prop_map(Step::Remove),
        6 => (0..keys, size).prop_map(|(key, size)| Step::Update(key, size)),
        1 => Just(Step::Freeze),
        1 => any::<bool>().prop_map(Step::Settle),
        1 => Just(Step::Sweep),
    ];
    prop::collection::vec(step, 1..1_500)
}

/// A table and what it should be.
struct Harness {
    table: Table,
    model: Model,
    hasher: KeyHasher,
    range: HashRange,
    /// What applying all durable changes in order has given.
    durable: Model,
    /// Frozen views that are not settled: generation, contents then.
    pending: Vec<(Generation, FrozenTable, Model)>,
    ctx: WriteContext,
}

impl Harness {
    fn new(hasher: KeyHasher, range: HashRange) -> Self {
        Self {
            table: Table::new(StateKind::Value, range, hasher),
            model: Model::new(),
            hasher,
            range,
            durable: Model::new(),
            pending: Vec::new(),
            ctx: context(1),
        }
    }

    /// Of five forms: eight bytes, short, long, with a short and with a long namespace.
    fn key(&self, number: u16) -> Option<StateKey> {
        let long = vec![number as u8; 20];
        let bytes = match number % 5 {
            0 | 3 => u64::from(number).to_le_bytes().to_vec(),
            1 => number.to_le_bytes()[..usize::from(number % 3).min(2)].to_vec(),
            2 => [&number.to_be_bytes()[..], &long].concat(),
            _ => number.to_le_bytes().to_vec(),
        };
        let key = StateKey::new(&self.hasher, &bytes).expect("short");
        let key = match number % 5 {
            3 => key.in_namespace(&[number as u8]).expect("short"),
            4 => key.in_namespace(&long).expect("short"),
            _ => key,
        };
        self.range.contains(key.hash()).then_some(key)
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Put(number, size) => {
                let Some(key) = self.key(number) else { return };
                let value = vec![size as u8; size];
                self.table.put(&key, &value, &self.ctx);
                self.model.insert(identity(&key), value);
            }
            Step::Remove(number) => {
                let Some(key) = self.key(number) else { return };
                self.table.remove(&key, &self.ctx);
                self.model.remove(&identity(&key));
            }
            Step::Update(number, size) => {
                let Some(key) = self.key(number) else { return };
                let old = self.model.get(&identity(&key)).cloned();
                let value = [&old.clone().unwrap_or_default()[..], &vec![1; size]].concat();
                self.table.update(&key, &self.ctx, |found, edit| {
                    assert_eq!(found, old.as_deref());
                    if size % 7 == 0 {
                        edit.clear();
                    } else {
                        edit.put(&value);
                    }
                });
                if size % 7 == 0 {
                    self.model.remove(&identity(&key));
                } else {
                    self.model.insert(identity(&key), value);
                }
            }
            Step::Freeze => {
                let frozen = self.table.freeze_changes(self.ctx.covered);
                let model = self.model.clone();
                self.pending.push((self.ctx.generation, frozen, model));
                self.ctx.anchor = self.ctx.generation;
                self.ctx.generation = self.ctx.generation.next();
            }
            Step::Settle(succeeds) => self.settle(succeeds),
            Step::Sweep => {
                self.table.sweep(&self.ctx, 3);
            }
        }
    }

    /// Ends the oldest pending snapshot. If it succeeds, its changes since `covered` are applied to
    /// what was durable, and that must give the contents at the freeze.
    fn settle(&mut self, succeeds: bool) {
        if self.pending.is_empty() {
            return;
        }
        let (generation, frozen, model) = self.pending.remove(0);
        if succeeds {
            let covered = self.ctx.covered;
            for (key, op, value) in sorted(frozen, covered, SortedMode::Changes) {
                if op == Op::Put {
                    self.durable.insert(key, value);
                } else {
                    self.durable.remove(&key);
                }
            }
            assert_eq!(self.durable, model, "changes since {covered}");
            self.ctx.covered = generation;
        }
        let pending = self.pending.last().map(|(generation, ..)| *generation);
        self.ctx.anchor = pending.unwrap_or(self.ctx.covered).max(self.ctx.covered);
    }

    fn check(&mut self, keys: u16) {
        for key in (0..keys).filter_map(|number| self.key(number)) {
            let expected = self.model.get(&identity(&key)).map(|value| &value[..]);
            assert_eq!(self.table.get(&key), expected, "{key:?}");
        }
        assert_eq!(self.table.entry_count(), self.model.len() as u64);
        let frozen = self.table.freeze();
        assert_eq!(contents(&frozen), self.model);
        let keys: Vec<StateKey> = (0..keys).filter_map(|number| self.key(number)).collect();
        let mut answers = Vec::new();
        let visit = |index, value: Option<&[u8]>| answers.push((index, value.map(<[u8]>::to_vec)));
        self.table.get_many(&keys, visit);
        let each = keys
            .iter()
            .map(|key| self.table.get(key).map(<[u8]>::to_vec));
        assert_eq!(answers, each.enumerate().collect::<Vec<_>>());
        assert_eq!(self.table.counts.bytes, counted_bytes(&self.table));
    }
}

fn context(generation: u32) -> WriteContext {
    WriteContext {
        generation: Generation(generation),
        covered: Generation::ZERO,
        anchor: Generation::ZERO,
        incremental: true,
    }
}

fn identity(key: &StateKey) -> Identity {
    (key.key().to_vec(), key.namespace().to_vec())
}

/// All entries in their order, which is checked.
fn sorted(frozen: FrozenTable, than: Generation, mode: SortedMode) -> Vec<(Identity, Op, Vec<u8>)> {
    let mut all = Vec::new();
    let mut last: Option<(u8, Identity)> = None;
    let mut visit = |entry: &Entry<'_>, _| {
        let key = (entry.key.key.to_vec(), entry.key.namespace.to_vec());
        if let Some((shard, last)) = &last {
            let last = EntryKey {
                state: STATE,
                shard: *shard,
                key: &last.0,
                namespace: &last.1,
                sub_key: &[],
            };
            assert!(last < entry.key, "{last:?} before {:?}", entry.key);
        }
        last = Some((entry.key.shard, key.clone()));
        all.push((key, entry.op, entry.value.to_vec()));
        Ok(())
    };
    frozen
        .into_sorted(STATE, than, mode, &mut visit)
        .expect("visit does not fail");
    all
}

fn contents(frozen: &FrozenTable) -> Model {
    let entries = sorted(frozen.clone(), Generation::ZERO, SortedMode::Full);
    let model: Model = entries
        .into_iter()
        .map(|(key, _, value)| (key, value))
        .collect();
    let mut cursor = frozen.keys(None);
    let mut batch = KeyBatch::new(7);
    let mut keys = Vec::new();
    loop {
        cursor.next_batch(&mut batch).wait().expect("in memory");
        if batch.is_empty() {
            break;
        }
        keys.extend(
            batch
                .iter()
                .map(|(key, namespace)| (key.to_vec(), namespace.to_vec())),
        );
    }
    keys.sort();
    assert_eq!(
        keys,
        model.keys().cloned().collect::<Vec<_>>(),
        "the cursor's keys"
    );
    model
}

/// The bytes of all pages and nodes, counted anew.
fn counted_bytes(table: &Table) -> u64 {
    let mut bytes = 0;
    for (_, _, node) in table.root.clone().into_nodes() {
        bytes += node.bytes();
        let indexes = 0..node.page_count();
        bytes += indexes.map(|index| node.page(index).bytes()).sum::<u64>();
    }
    bytes
}

fn number_key(number: u64) -> StateKey {
    StateKey::new(&KeyHasher::XXH3_64, &number.to_le_bytes()).expect("short")
}

fn run(hasher: KeyHasher, range: HashRange, keys: u16, steps: &[Step]) {
    let mut harness = Harness::new(hasher, range);
    for step in steps {
        harness.run(step);
    }
    harness.check(keys);
    harness.run(&Step::Freeze);
    while !harness.pending.is_empty() {
        harness.settle(true);
    }
    harness.check(keys);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn table_is_a_map(steps in steps(400)) {
        run(KeyHasher::XXH3_64, HashRange::ALL, 400, &steps);
    }

    #[test]
    fn few_keys_with_many_snapshots(steps in steps(12)) {
        run(KeyHasher::XXH3_64, HashRange::ALL, 12, &steps);
    }

    #[test]
    fn clipped_ranges(task in 0_u32..7, steps in steps(1_000)) {
        run(KeyHasher::XXH3_64, HashRange::of_task(task, 7), 1_000, &steps);
        run(KeyHasher::XXH3_64, HashRange::of_task(task, 1_000), 1_000, &steps);
    }

    #[test]
    fn bad_hashers(steps in steps(700)) {
        let constant = KeyHasher::custom(HashId(1_000), |_| 0x1234_5678);
        run(constant, HashRange::ALL, 700, &steps);
        let few_bits = KeyHasher::custom(HashId(1_001), |key| {
            u64::from(key.first().copied().unwrap_or(0) & 0x1f)
        });
        run(few_bits, HashRange::ALL, 700, &steps);
        let high_bits = KeyHasher::custom(HashId(1_002), |key| {
            u64::from(key.first().copied().unwrap_or(0)) << 56
        });
        run(high_bits, HashRange::ALL, 700, &steps);
    }
}

#[test]
fn grows_and_shrinks_with_its_entries() {
    let mut table = Table::new(StateKind::Value, HashRange::ALL, KeyHasher::XXH3_64);
    let empty_bytes = table.memory_bytes();
    let ctx = context(1);
    for number in 0..200_000 {
        table.put(&number_key(number), &number.to_le_bytes(), &ctx);
    }
    let full_bytes = table.memory_bytes();
    assert!(full_bytes / 200_000 < 72, "{full_bytes} bytes");
    let frozen = table.freeze();
    for number in 0..200_000 {
        table.remove(&number_key(number), &ctx);
        if number % 1_000 == 0 {
            assert_eq!(table.get(&number_key(number)), None);
            let next = number_key(number + 1);
            assert_eq!(table.get(&next).is_some(), number + 1 < 200_000);
        }
    }
    assert_eq!(table.entry_count(), 0);
    assert_eq!(table.counts.bytes, counted_bytes(&table));
    assert!(
        table.counts.bytes < empty_bytes + (8 << 10),
        "{} bytes",
        table.counts.bytes
    );
    assert!(
        table.memory_bytes() > full_bytes / 2,
        "the view holds what was copied"
    );
    assert_eq!(frozen.get(&number_key(5)), Some(&5_u64.to_le_bytes()[..]));
    drop(frozen);
    assert!(table.memory_bytes() < empty_bytes + (8 << 10));
}

#[test]
fn churn_keeps_memory_bounded() {
    // Every key is new, lives through one snapshot, and is deleted.
    for outcome in ["success", "failure", "never"] {
        let mut table = Table::new(StateKind::Value, HashRange::ALL, KeyHasher::XXH3_64);
        let mut ctx = context(1);
        let mut bytes_max = 0;
        for round in 0_u64..60 {
            for number in 0..2_000 {
                table.put(&number_key(round * 2_000 + number), &[1; 8], &ctx);
            }
            if outcome != "never" {
                ctx.anchor = ctx.generation;
                ctx.generation = ctx.generation.next();
            }
            for number in 0..2_000 {
                table.remove(&number_key(round * 2_000 + number), &ctx);
            }
            match outcome {
                "success" => ctx.covered = ctx.anchor,
                "failure" => ctx.anchor = ctx.covered,
                _ => {}
            }
            bytes_max = bytes_max.max(table.memory_bytes());
        }
        assert_eq!(table.entry_count(), 0);
        // At most the keys of three rounds, alive or remembered.
        assert!(bytes_max < 6_000 * 72, "{outcome}: {bytes_max} bytes");
    }
}

#[test]
fn large_keys_and_values() {
    let mut table = Table::new(StateKind::Value, HashRange::ALL, KeyHasher::XXH3_64);
    let ctx = context(1);
    for number in 0..40_u8 {
        let key =
            StateKey::new(&KeyHasher::XXH3_64, &vec![number; 64 << 10]).expect("at the limit");
        table.put(&key, &vec![number; 1 << 20], &ctx);
        assert_eq!(table.get(&key).map(<[u8]>::len), Some(1 << 20));
    }
    assert!(table.memory_bytes() > 40 << 20);
    for number in 0..40_u8 {
        let key =
            StateKey::new(&KeyHasher::XXH3_64, &vec![number; 64 << 10]).expect("at the limit");
        assert_eq!(table.get(&key), Some(&vec![number; 1 << 20][..]));
        table.put(&key, &[number], &ctx);
        table.remove(&key, &ctx);
    }
    assert_eq!(table.entry_count(), 0);
    assert!(
        table.memory_bytes() < 2 << 20,
        "{} bytes",
        table.memory_bytes()
    );
}

#[test]
fn many_namespaces_of_one_key() {
    let mut table = Table::new(StateKind::Value, HashRange::ALL, KeyHasher::XXH3_64);
    let key = number_key(1);
    let windows: Vec<StateKey> = (0..20_000_u32)
        .map(|window| key.in_namespace(&window.to_be_bytes()).expect("short"))
        .collect();
    for (number, key) in windows.iter().enumerate() {
        table.put(key, &number.to_le_bytes(), &context(1));
    }
    for (number, key) in windows.iter().enumerate() {
        assert_eq!(table.get(key), Some(&number.to_le_bytes()[..]));
        table.remove(key, &context(1));
    }
    assert_eq!(table.entry_count(), 0);
    assert!(
        table.memory_bytes() < 64 << 10,
        "{} bytes",
        table.memory_bytes()
    );
}

#[test]
fn loads_segments_oldest_first() {
    let mut table = Table::new(StateKind::Value, HashRange::ALL, KeyHasher::XXH3_64);
    let (one, two) = (number_key(1), number_key(2));
    let key = |key: &'static [u8], hash: &StateKey| EntryKey {
        state: STATE,
        shard: hash.shard(),
        key,
        namespace: &[],
        sub_key: &[],
    };
    let (a, b) = (
        key(&[1, 0, 0, 0, 0, 0, 0, 0], &one),
        key(&[2, 0, 0, 0, 0, 0, 0, 0], &two),
    );
    table
        .load(&Entry::put(a, b"old"), Generation(3))
        .expect("loads");
    table
        .load(&Entry::put(b, b"stays"), Generation(3))
        .expect("loads");
    table.load(&Entry::delete(a), Generation(4)).expect("loads");
    assert_eq!(table.get(&one), None);
    assert_eq!(table.get(&two), Some(&b"stays"[..]));
    assert_eq!((table.entry_count(), table.tombstone_count()), (1, 0));
    let newer = sorted(table.freeze(), Generation(3), SortedMode::Changes);
    assert_eq!(newer, [], "what was loaded is as old as its segment");

    let other = HashRange::new(two.hash(), two.hash()).expect("one hash");
    let mut clipped = Table::new(StateKind::Value, other, KeyHasher::XXH3_64);
    clipped
        .load(&Entry::put(a, b"not ours"), Generation(3))
        .expect("skips");
    clipped
        .load(&Entry::put(b, b"ours"), Generation(3))
        .expect("loads");
    assert_eq!(clipped.entry_count(), 1);
}

#[test]
fn a_miss_ends_where_every_bucket_has_passed_on_an_entry() {
    // Two buckets, nearly full: sooner or later each has passed an entry to the other.
    let mut table = Table::new(StateKind::Value, HashRange::ALL, KeyHasher::XXH3_64);
    let ctx = context(1);
    for number in 0..20_000_u64 {
        table.put(&number_key(number), &[1; 8], &ctx);
        if number >= 8 {
            table.remove(&number_key(number - 8), &ctx);
            assert_eq!(table.get(&number_key(number - 8)), None);
        }
    }
    assert_eq!(table.entry_count(), 8);
}

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn context(generation: u32, covered: u32, anchor: u32) -> WriteContext {
    WriteContext {
        generation: Generation(generation),
        covered: Generation(covered),
        anchor: Generation(anchor),
        incremental: true,
    }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, usize),
    Remove(Vec<u8>),
    Freeze,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = (0..400_u16).prop_map(|n| n.to_be_bytes().to_vec());
    let step = prop_oneof![
        6 => (key.clone(), 0..700_usize).prop_map(|(key, len)| Step::Put(key, len)),
        3 => key.prop_map(Step::Remove),
        1 => Just(Step::Freeze),
    ];
    prop::collection::vec(step, 0..1_500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The tree, each clone of it, and the changes since each clone, agree with a plain map.
    #[test]
    fn tree_agrees_with_a_map(steps in steps()) {
        let mut tree = Tree::new();
        let mut model = Model::new();
        let mut frozen: Vec<(Tree, Model)> = Vec::new();
        let mut generation = 1;
        for step in steps {
            let context = context(generation, 0, generation - 1);
            match step {
                Step::Put(key, len) => {
                    let value = vec![generation as u8; len];
                    tree.put(&key, &value, &context);
                    model.insert(key, value);
                }
                Step::Remove(key) => {
                    tree.remove(&key, &context);
                    model.remove(&key);
                }
                Step::Freeze => {
                    frozen.push((tree.clone(), model.clone()));
                    generation += 1;
                }
            }
        }
        frozen.push((tree, model));
        for (tree, model) in &frozen {
            prop_assert_eq!(tree.live_len(), model.len() as u64);
            let bytes: usize = model.iter().map(|(k, v)| k.len() + v.len()).sum();
            prop_assert_eq!(tree.live_bytes(), bytes as u64);
            prop_assert!(tree.iter().eq(model.iter().map(|(k, v)| (&k[..], &v[..]))));
            for (key, value) in model {
                prop_assert_eq!(tree.get(key), Some(&value[..]));
            }
        }
        for (index, pair) in frozen.windows(2).enumerate() {
            let [(_, older), (newer_tree, newer)] = pair else { unreachable!() };
            let mut applied = older.clone();
            for (key, value) in newer_tree.changes(Generation(index as u32 + 1)) {
                match value {
                    Some(value) => { applied.insert(key.to_vec(), value.to_vec()); }
                    None => { applied.remove(key); }
                }
            }
            prop_assert_eq!(&applied, newer);
        }
    }
}

#[test]
fn deletion_of_what_was_never_frozen_leaves_nothing() {
    let mut tree = Tree::new();
    tree.put(b"a", b"1", &context(2, 1, 1));
    tree.remove(b"a", &context(2, 1, 1));
    assert!(tree.is_drained());
}

#[test]
fn deletion_is_remembered_until_it_is_covered() {
    let mut tree = Tree::new();
    tree.put(b"a", b"1", &context(1, 0, 0));
    tree.remove(b"a", &context(2, 1, 1));
    assert_eq!(
        tree.changes(Generation(1)).collect::<Vec<_>>(),
        [(&b"a"[..], None)]
    );
    tree.drop_tombstones(&context(3, 1, 2));
    assert!(!tree.is_drained(), "generation 2 is not covered yet");
    tree.drop_tombstones(&context(3, 2, 2));
    assert!(tree.is_drained());
}

#[test]
fn overwriting_keeps_the_birth() {
    let mut tree = Tree::new();
    tree.put(b"a", b"1", &context(3, 0, 2));
    tree.put(b"a", b"22", &context(5, 0, 4));
    // No pending snapshot is left, and nothing is durable: the entry exists nowhere else.
    tree.remove(b"a", &context(6, 0, 0));
    assert!(tree.is_drained());
}

#[test]
fn appends_count_within_their_generation() {
    let mut tree = Tree::new();
    for (generation, element) in [(1, b"a"), (1, b"b"), (4, b"c"), (4, b"d")] {
        tree.append(element, &context(generation, 0, 0));
    }
    let keys: Vec<&[u8]> = tree.iter().map(|(key, _)| key).collect();
    assert_eq!(
        keys,
        [
            &[0, 0, 0, 1, 0, 0, 0, 0][..],
            &[0, 0, 0, 1, 0, 0, 0, 1],
            &[0, 0, 0, 4, 0, 0, 0, 0],
            &[0, 0, 0, 4, 0, 0, 0, 1]
        ]
    );
    let values: Vec<&[u8]> = tree.iter().map(|(_, value)| value).collect();
    assert_eq!(values, [b"a", b"b", b"c", b"d"]);
}

#[test]
fn emptied_tree_keeps_no_nodes() {
    let mut tree = Tree::new();
    let context = context(1, 0, 0);
    (0..20_000_u32).for_each(|n| tree.put(&n.to_be_bytes(), b"value", &context));
    (0..20_000_u32)
        .rev()
        .for_each(|n| tree.remove(&n.to_be_bytes(), &context));
    assert!(tree.root.is_none());
}

fn leaves(node: &Node) -> usize {
    match node {
        Node::Leaf(_) => 1,
        Node::Inner(inner) => inner.children.iter().map(|child| leaves(&child.node)).sum(),
    }
}

#[test]
fn removals_leave_no_empty_shells() {
    let mut tree = Tree::new();
    let context = context(1, 0, 0);
    (0..20_000_u32).for_each(|n| tree.put(&n.to_be_bytes(), b"value", &context));
    (0..20_000_u32)
        .filter(|n| n % 100 != 0)
        .for_each(|n| tree.remove(&n.to_be_bytes(), &context));
    let count = tree.root.as_ref().map_or(0, |root| leaves(root));
    assert!(count <= 20, "200 entries lie in {count} leaves");
}

#[test]
fn extreme_sizes_work() {
    let mut tree = Tree::new();
    let context = context(1, 0, 0);
    let large = vec![7; 8 << 20];
    let long = vec![9; 64 << 10];
    tree.put(b"", b"empty sub-key", &context);
    tree.put(&long, b"", &context);
    tree.put(b"large", &large, &context);
    assert_eq!(tree.get(b""), Some(&b"empty sub-key"[..]));
    assert_eq!(tree.get(&long), Some(&b""[..]));
    assert_eq!(tree.get(b"large"), Some(&large[..]));
    let keys: Vec<usize> = tree.iter().map(|(key, _)| key.len()).collect();
    assert_eq!(keys, [0, 64 << 10, 5]);
}

#[test]
fn scan_goes_on_behind_the_last_sub_key() {
    let mut tree = Tree::new();
    let context = context(1, 0, 0);
    (0..1_000_u32).for_each(|n| tree.put(&n.to_be_bytes(), b"", &context));
    let mut range = SubKeyRange::ALL;
    let mut seen = Vec::new();
    loop {
        let mut batch = EntryBatch::new(7, usize::MAX);
        tree.scan(&range, &mut batch);
        seen.extend(batch.iter().map(|(key, _)| key.to_vec()));
        if batch.is_complete() {
            break;
        }
        let last = seen
            .last()
            .cloned()
            .expect("a batch that is not complete holds an entry");
        range.start = std::ops::Bound::Excluded(last.into());
    }
    assert!(
        seen.into_iter()
            .eq((0..1_000_u32).map(|n| n.to_be_bytes().to_vec()))
    );
}

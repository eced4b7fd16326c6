//! Look-ups in chains of tiny blocks agree with a model, wherever a key's entries are cut.

use std::collections::BTreeMap;

use futures::executor::block_on;

use super::{Craft, Owned, operator};
use crate::entry::Op;
use crate::hash::KeyHasher;
use crate::inspect::SnapshotReader;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Numbers that are the same at every run: `SplitMix64`.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// One run of a chain, which is also applied to `model`.
fn run(numbers: &mut Numbers, model: &mut BTreeMap<u32, Map>) -> Vec<Owned> {
    let mut entries = Vec::new();
    for key in 0..6 {
        let map = model.entry(key).or_default();
        if numbers.below(3) == 0 {
            let mut clear = Owned::put("maps", key, &[], &[]);
            clear.op = Op::DeletePrefix;
            entries.push(clear);
            map.clear();
        }
        for sub_key in 0..5_u8 {
            // The empty sub-key sorts where the prefix delete does.
            let sub_key = if sub_key == 0 { vec![] } else { vec![sub_key] };
            match numbers.below(4) {
                0 => {
                    // About a block each, and of bytes that do not compress.
                    let value = (0..200 + numbers.below(1_200)).map(|_| numbers.below(256) as u8);
                    let value: Vec<u8> = value.collect::<Vec<_>>();
                    entries.push(Owned::put("maps", key, &sub_key, &value));
                    map.insert(sub_key, value);
                }
                1 => {
                    let mut delete = Owned::put("maps", key, &sub_key, &[]);
                    delete.op = Op::Delete;
                    entries.push(delete);
                    map.remove(&sub_key);
                }
                _ => {}
            }
        }
    }
    entries
}

#[test]
fn look_ups_agree_with_a_model_wherever_blocks_end() {
    for seed in 0..120 {
        let mut numbers = Numbers(seed);
        let mut model = BTreeMap::new();
        let runs: Vec<_> = (0..3).map(|_| run(&mut numbers, &mut model)).collect();
        let runs: Vec<_> = runs.into_iter().filter(|run| !run.is_empty()).collect();
        let mut craft = Craft::new(1_000, KeyHasher::XXH3_64);
        let snapshot = craft.snapshot(runs);
        let reader = SnapshotReader::open(&snapshot, &operator()).expect("opened");
        for (number, expected) in &model {
            let key = reader.key(number).expect("a key");
            for sub_key in 0..6_u8 {
                let sub_key = if sub_key == 0 { vec![] } else { vec![sub_key] };
                let found = block_on(reader.map_value("maps", &key, &sub_key)).expect("read");
                let found = found.map(|value| value.bytes.to_vec());
                let what = format!("seed {seed}, key {number}, sub-key {sub_key:?}");
                assert!(found.as_ref() == expected.get(&sub_key), "{what}");
            }
            let mut entries = reader.entries("maps", &key).expect("there");
            let mut found = Map::new();
            while let Some(entry) = block_on(entries.next()).expect("read") {
                found.insert(entry.sub_key.to_vec(), entry.value.bytes.to_vec());
            }
            assert!(found == *expected, "seed {seed}, key {number}");
        }
    }
}

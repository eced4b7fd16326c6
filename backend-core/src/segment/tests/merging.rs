//! Merges hold against the rules taken word by word.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::{Owned, any_entry, in_order, small, write};
use crate::chain::KeySpan;
use crate::entry::Op;
use crate::error::Result;
use crate::segment::{BlockEntries, BlockSource, MergeRules, SegmentSource, SegmentStream, merge};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn merge_applies_segments_in_their_order(
        segments in prop::collection::vec(prop::collection::vec(any_entry(), 1..60), 1..6),
        reaches_bottom in any::<bool>(),
    ) {
        let segments: Vec<Vec<Owned>> = segments.into_iter().map(in_order).collect();
        let rules = MergeRules { reaches_bottom, now_ms: 4 };
        let below = vec![in_order(vec![Owned::put([1], [1], b"below"), Owned::put([2], [], b"below")])];
        let merged = merge_all(&segments, rules);
        // On top of older entries, the merged run does what its inputs do one after the other.
        let older = if reaches_bottom { vec![] } else { below };
        let expected = apply(&older, &segments, 4);
        let found = apply(&older, std::slice::from_ref(&merged), 4);
        prop_assert_eq!(found, expected);
        if reaches_bottom {
            prop_assert!(merged.iter().all(|entry| entry.op == Op::Put));
        }
        prop_assert_eq!(in_order(merged.clone()), merged, "the output is in order");
    }
}

/// Key, namespace and sub-key of an entry.
type Place = (u32, Vec<u8>, Vec<u8>, Vec<u8>);

/// What is live after applying segments, the rules taken word by word.
fn apply(
    older: &[Vec<Owned>],
    segments: &[Vec<Owned>],
    now_ms: u64,
) -> BTreeMap<Place, (Vec<u8>, u8)> {
    let mut live = BTreeMap::new();
    for segment in older.iter().chain(segments) {
        for entry in segment.iter().filter(|entry| entry.op == Op::DeletePrefix) {
            live.retain(|(state, key, namespace, _): &Place, _| {
                (*state, key, namespace) != (entry.state, &entry.key, &entry.namespace)
            });
        }
        for entry in segment {
            let place = (
                entry.state,
                entry.key.clone(),
                entry.namespace.clone(),
                entry.sub_key.clone(),
            );
            match entry.op {
                Op::Put if entry.expires_ms.is_none_or(|ms| ms > now_ms) => {
                    live.insert(place, (entry.value.clone(), entry.schema));
                }
                Op::Put | Op::Delete => {
                    live.remove(&place);
                }
                Op::DeletePrefix => {}
            }
        }
    }
    live
}

struct Blocks(std::vec::IntoIter<BlockEntries>);

impl BlockSource for Blocks {
    fn next_block(&mut self) -> Result<Option<BlockEntries>> {
        Ok(self.0.next())
    }
}

fn merge_all(segments: &[Vec<Owned>], rules: MergeRules) -> Vec<Owned> {
    let runtime = crate::runtime::IoRuntime::new(1).expect("a thread");
    let sources = segments
        .iter()
        .map(|entries| {
            let segment = write(small(), entries);
            let source = SegmentSource::of_bytes(segment.bytes);
            let mut stream =
                SegmentStream::new(Arc::new(segment.meta), source, KeySpan::default(), (0, 255));
            let blocks = runtime.run(async move {
                let mut blocks = Vec::new();
                while let Some(block) = stream.next_block().await? {
                    blocks.push(block);
                }
                Ok(blocks)
            });
            Blocks(
                futures::executor::block_on(blocks)
                    .expect("the segment is whole")
                    .into_iter(),
            )
        })
        .collect();
    let mut merged = Vec::new();
    merge(
        sources,
        rules,
        |_, _, _| Ok(true),
        |entry| {
            merged.push(Owned::of(entry));
            Ok(())
        },
    )
    .expect("the sources are whole");
    merged
}

//! Seeds of segments, and of entries that become segments.

use backend_core::UniqueId;
use backend_core::entry::Op;
use backend_core::generation::Generation;
use backend_core::segment::{FinishedSegment, SegmentOptions, SegmentWriter};

use crate::dice::Dice;
use crate::entries::Owned;
use crate::seeds::{Seed, flipped};
use crate::targets::Target;

const GOLDEN: &[u8] = include_bytes!("../../../backend-core/tests/golden/segment-v1.bin");

pub(super) fn seeds() -> Vec<Seed> {
    let segment = |name, bytes: Vec<u8>| Seed::new(Target::Segment, name, bytes);
    let roundtrip = |name, bytes: Vec<u8>| Seed::new(Target::SegmentRoundtrip, name, bytes);
    vec![
        segment("accepted-golden", GOLDEN.to_vec()),
        segment("accepted-few", finished(&few()).bytes.to_vec()),
        segment("accepted-columns", finished(&columns()).bytes.to_vec()),
        segment("accepted-regions", finished(&many()).bytes.to_vec()),
        segment("refused-flipped", flipped(GOLDEN, 60)),
        segment("refused-cut", GOLDEN[..GOLDEN.len() - 1].to_vec()),
        roundtrip(
            "accepted-one",
            vec![0, 0, 10, 0, 0, 3, b'k', b'e', b'y', 1, b'v'],
        ),
        roundtrip("accepted-random", random(200)),
        roundtrip("accepted-long", random(2_000)),
        roundtrip("accepted-prefix-then-large", prefix_then_large()),
    ]
}

/// A segment with small blocks and regions.
pub(super) fn finished(entries: &[Owned]) -> FinishedSegment {
    let mut options = SegmentOptions::default();
    options.block_bytes_target = 1 << 10;
    options.region_blocks = 2;
    let mut writer = SegmentWriter::new(options, UniqueId(7)).expect("the options are valid");
    for entry in entries {
        writer
            .push(&entry.entry(), 0)
            .expect("the seed is in order");
    }
    let finished = writer.finish((Generation(1), Generation(2)));
    finished.expect("there are entries")
}

fn put(key: &[u8], sub_key: &[u8], value: &[u8]) -> Owned {
    Owned {
        state: 1,
        shard: 7,
        key: key.to_vec(),
        namespace: Vec::new(),
        sub_key: sub_key.to_vec(),
        op: Op::Put,
        schema: 0,
        expires_ms: None,
        value: value.to_vec(),
    }
}

/// So little that it is not compressed.
pub(super) fn few() -> Vec<Owned> {
    vec![
        put(b"a", b"", b"1"),
        put(b"b", b"", b"2"),
        put(b"b", b"x", b"3"),
    ]
}

/// Every column.
fn columns() -> Vec<Owned> {
    let mut entries = Vec::new();
    for number in 0..6_u8 {
        let mut entry = put(&[b'k', number / 2], &[], &vec![number; usize::from(number)]);
        match number {
            0 => entry.op = Op::DeletePrefix,
            1 => entry.op = Op::Delete,
            _ => {
                entry.schema = number / 3;
                entry.sub_key = vec![number];
                entry.expires_ms = (number % 2 == 0).then_some(1_000 + u64::from(number));
                entry.namespace = b"window".to_vec();
            }
        }
        if entry.op != Op::Put {
            entry.value.clear();
        }
        entries.push(entry);
    }
    entries.sort_by(|a, b| a.entry().cmp_in_segment(&b.entry()));
    entries
}

/// Several regions, with values that are shuffled.
fn many() -> Vec<Owned> {
    let entry = |number: u32| {
        let mut entry = put(
            &number.to_be_bytes(),
            &[],
            &(u64::from(number) << 20).to_le_bytes(),
        );
        entry.shard = (number / 60) as u8;
        entry
    };
    (0..250).map(entry).collect()
}

fn random(count: usize) -> Vec<u8> {
    let mut dice = Dice::new(count as u64);
    (0..count).map(|_| dice.next() as u8).collect()
}

/// A prefix delete that is a region of its own, before a put of the same key that is a block of
/// its own.
fn prefix_then_large() -> Vec<u8> {
    vec![0, 0, 10, 0, 7, 1, b'k', 0, 1, b'k', 255, 3]
}

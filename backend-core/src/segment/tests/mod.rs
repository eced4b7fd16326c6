mod checking;
mod golden;
mod hostile;
mod merging;

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::chain::KeySpan;
use crate::descriptor::StateUid;
use crate::entry::{Entry, EntryKey, Op, SchemaTag};
use crate::error::{ErrorKind, Result};
use crate::generation::Generation;
use crate::hash::KeyHasher;
use crate::ids::UniqueId;
use crate::range::{HashRange, shard_of};
use crate::storage::Storage;

/// An entry that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owned {
    state: u32,
    key: Vec<u8>,
    namespace: Vec<u8>,
    sub_key: Vec<u8>,
    op: Op,
    schema: u8,
    expires_ms: Option<u64>,
    value: Vec<u8>,
}

impl Owned {
    fn put(
        key: impl Into<Vec<u8>>,
        sub_key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            state: 1,
            key: key.into(),
            namespace: Vec::new(),
            sub_key: sub_key.into(),
            op: Op::Put,
            schema: 0,
            expires_ms: None,
            value: value.into(),
        }
    }

    fn entry(&self) -> Entry<'_> {
        let shard = shard_of(KeyHasher::XXH3_64.hash(&self.key));
        Entry {
            key: EntryKey {
                state: StateUid(self.state),
                shard,
                key: &self.key,
                namespace: &self.namespace,
                sub_key: &self.sub_key,
            },
            op: self.op,
            schema: SchemaTag(self.schema),
            expires_ms: self.expires_ms,
            value: &self.value,
        }
    }

    fn of(entry: &Entry<'_>) -> Self {
        Self {
            state: entry.key.state.0,
            key: entry.key.key.into(),
            namespace: entry.key.namespace.into(),
            sub_key: entry.key.sub_key.into(),
            op: entry.op,
            schema: entry.schema.0,
            expires_ms: entry.expires_ms,
            value: entry.value.into(),
        }
    }
}

/// Sorts, and drops what cannot stand in one segment: two entries of one key, other than a
/// prefix delete and something else.
fn in_order(mut entries: Vec<Owned>) -> Vec<Owned> {
    entries.sort_by(|a, b| a.entry().cmp_in_segment(&b.entry()));
    entries.dedup_by(|b, a| {
        a.entry().key == b.entry().key && (a.op != Op::DeletePrefix) == (b.op != Op::DeletePrefix)
    });
    entries
}

fn small() -> SegmentOptions {
    SegmentOptions {
        block_bytes_target: 1 << 10,
        region_blocks: 2,
        ..SegmentOptions::default()
    }
}

/// A region for every block.
fn tiny() -> SegmentOptions {
    SegmentOptions {
        region_blocks: 1,
        ..small()
    }
}

fn write(options: SegmentOptions, entries: &[Owned]) -> FinishedSegment {
    let mut writer = SegmentWriter::new(options, UniqueId(7)).expect("the options are valid");
    for entry in entries {
        writer
            .push(&entry.entry(), 0)
            .expect("the entries are in order");
    }
    writer
        .finish((Generation(1), Generation(2)))
        .expect("there is an entry")
}

fn read(meta: &SegmentMeta, bytes: &Bytes, span: KeySpan, shards: (u8, u8)) -> Result<Vec<Owned>> {
    let source = SegmentSource::of_bytes(bytes.clone());
    let mut stream = SegmentStream::new(Arc::new(meta.clone()), source, span, shards);
    let runtime = crate::runtime::IoRuntime::new(1)?;
    futures::executor::block_on(runtime.run(async move {
        let mut found = Vec::new();
        while let Some(mut block) = stream.next_block().await? {
            while let Some(entry) = block.next_entry()? {
                found.push(Owned::of(&entry));
            }
        }
        Ok(found)
    }))
}

fn read_all(meta: &SegmentMeta, bytes: &Bytes) -> Result<Vec<Owned>> {
    read(meta, bytes, KeySpan::default(), (0, 255))
}

fn any_entry() -> impl Strategy<Value = Owned> {
    let bytes = |max: usize| prop::collection::vec(0..4_u8, 0..max);
    let op = prop_oneof![6 => Just(Op::Put), 2 => Just(Op::Delete), 1 => Just(Op::DeletePrefix)];
    let value = prop_oneof![
        Just(vec![1; 8]),
        prop::collection::vec(any::<u8>(), 8..=8),
        prop::collection::vec(any::<u8>(), 0..40),
        Just(vec![5; 3_000]),
    ];
    let expiry = prop_oneof![2 => Just(None), 1 => any::<u64>().prop_map(Some), 1 => (0..9_u64).prop_map(Some)];
    (
        0..3_u32,
        bytes(4),
        bytes(3),
        bytes(3),
        op,
        0..2_u8,
        expiry,
        value,
    )
        .prop_map(
            |(state, key, namespace, sub_key, op, schema, expires_ms, value)| {
                let is_put = op == Op::Put;
                Owned {
                    state,
                    key,
                    namespace,
                    sub_key: if op == Op::DeletePrefix {
                        Vec::new()
                    } else {
                        sub_key
                    },
                    op,
                    schema: if is_put { schema } else { 0 },
                    expires_ms: expires_ms.filter(|ms| is_put && *ms < u64::MAX),
                    value: if is_put { value } else { Vec::new() },
                }
            },
        )
}

/// A segment with every feature in some block.
fn with_every_feature() -> Vec<Owned> {
    let mut entries = Vec::new();
    for n in 0..60_u16 {
        entries.push(Owned::put(
            n.to_be_bytes(),
            [],
            (u64::from(n) * 1_000).to_le_bytes(),
        ));
        let mut other = Owned::put(
            n.to_be_bytes(),
            [n as u8],
            vec![n as u8; usize::from(n % 7)],
        );
        (other.state, other.namespace) = (2, vec![9; usize::from(n % 3)]);
        other.expires_ms = (n % 4 == 0).then_some(1_000_000 + u64::from(n));
        other.schema = (n % 2) as u8;
        entries.push(other.clone());
        let deleted = Owned {
            sub_key: vec![200],
            op: Op::Delete,
            value: Vec::new(),
            expires_ms: None,
            schema: 0,
            ..other.clone()
        };
        entries.push(deleted.clone());
        if n % 5 == 0 {
            entries.push(Owned {
                sub_key: Vec::new(),
                op: Op::DeletePrefix,
                ..deleted
            });
        }
    }
    in_order(entries)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_written_is_read(entries in prop::collection::vec(any_entry(), 1..200)) {
        let entries = in_order(entries);
        let segment = write(small(), &entries);
        prop_assert_eq!(&read_all(&segment.meta, &segment.bytes).expect("the segment is whole"), &entries);
        let decoded = SegmentMeta::decode(&segment.meta.location, &segment.bytes);
        prop_assert_eq!(decoded.expect("the footer is whole"), segment.meta);
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let entries = with_every_feature();
    let segment = write(tiny(), &entries);
    assert!(segment.meta.regions.len() > 2, "several regions are tried");
    for bit in 0..segment.bytes.len() * 8 {
        let mut damaged = segment.bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let damaged = Bytes::from(damaged);
        let e = read_all(&segment.meta, &damaged).expect_err("the digest differs at least");
        assert!(
            matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
            "bit {bit}: {e}"
        );
        assert_eq!(e.fact("object"), Some("inline segment"), "bit {bit}: {e}");
        let place = e.fact("offset").or(e.fact("block_offset"));
        assert!(place.is_some(), "bit {bit}: {e}");
        // With nothing but the object itself, it is read as it was, or refused.
        if let Ok(meta) = SegmentMeta::decode(&segment.meta.location, &damaged) {
            let unproven = SegmentMeta {
                digest: meta.digest,
                ..meta
            };
            if let Ok(found) = read_all(&unproven, &damaged) {
                assert_eq!(found, entries, "bit {bit} changed what is read");
            }
        }
    }
}

#[test]
fn every_truncation_is_found() {
    let segment = write(small(), &with_every_feature());
    for len in 0..segment.bytes.len() {
        let cut = segment.bytes.slice(..len);
        let e = read_all(&segment.meta, &cut).expect_err("bytes are missing");
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{len} bytes: {e}");
        let place = e.fact("offset").or(e.fact("range"));
        assert!(place.is_some(), "{len} bytes: {e}");
        let e = SegmentMeta::decode(&segment.meta.location, &cut).expect_err("no tail");
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{len} bytes: {e}");
    }
}

#[test]
fn spans_and_shards_read_only_what_they_need() {
    let entries: Vec<Owned> = in_order(
        (0..20_000_u32)
            .map(|n| Owned::put(n.to_be_bytes(), [], n.to_le_bytes()))
            .collect(),
    );
    let segment = write(small(), &entries);
    let found = read(&segment.meta, &segment.bytes, KeySpan::default(), (16, 31)).expect("whole");
    let wanted: Vec<&Owned> = entries
        .iter()
        .filter(|e| (16..32).contains(&e.entry().key.shard))
        .collect();
    assert!(wanted.iter().all(|entry| found.contains(entry)));
    assert!(
        found.len() < wanted.len() + 400,
        "{} read for {}",
        found.len(),
        wanted.len()
    );
    let mut bounds = [Vec::new(), Vec::new()];
    key_encoding::encode_entry_key(&entries[5_000].entry().key, &mut bounds[0]);
    key_encoding::encode_entry_key(&entries[5_100].entry().key, &mut bounds[1]);
    let [start, end] = bounds.map(|key| Some(key.into_boxed_slice()));
    let found = read(
        &segment.meta,
        &segment.bytes,
        KeySpan { start, end },
        (0, 255),
    )
    .expect("whole");
    assert!(
        entries[5_000..5_100]
            .iter()
            .all(|entry| found.contains(entry))
    );
    assert!(found.len() < 500, "{} read for 100", found.len());
}

#[test]
fn single_keys_are_found_with_two_reads() {
    let entries: Vec<Owned> = in_order(
        (0..20_000_u32)
            .map(|n| Owned::put(n.to_be_bytes(), [], n.to_le_bytes()))
            .collect(),
    );
    let segment = write(small(), &entries);
    let storage = Storage::memory();
    let name = crate::names::SegmentName {
        epoch: crate::ids::Epoch(1),
        snapshot: crate::ids::SnapshotId(1),
        task: crate::ids::TaskIndex(0),
        index: 0,
        unique: segment.unique,
    };
    let object = crate::names::ObjectName::Segment(name);
    let meta = SegmentMeta {
        location: SegmentLocation::Object(name),
        ..segment.meta
    };
    futures::executor::block_on(async {
        storage
            .create(&object, segment.bytes)
            .await
            .expect("created");
        let source = SegmentSource::new(&meta, &storage);
        let reader = SegmentReader::new(Arc::new(meta), source);
        let gets = storage.requests().gets;
        for entry in entries.iter().step_by(997) {
            let found = reader
                .get(&entry.entry().key)
                .await
                .expect("whole")
                .expect("it is there");
            assert_eq!((found.op, &found.value[..]), (Op::Put, &entry.value[..]));
        }
        let reads = storage.requests().gets - gets;
        assert_eq!(reads, 2 * entries.iter().step_by(997).count() as u64);
        let stranger = Owned::put([1, 2, 3], [], []);
        assert_eq!(
            reader.get(&stranger.entry().key).await.expect("whole"),
            None
        );
    });
}

#[test]
fn key_under_a_wrong_shard_is_a_clear_error() {
    let clip = Clip::new(HashRange::ALL, KeyHasher::XXH3_64);
    let entry = Owned::put(b"a".to_vec(), [], []);
    let mut key = entry.entry().key;
    assert!(clip.admits(&key).expect("the shard is right"));
    key.shard ^= 1;
    assert_eq!(
        clip.admits(&key).expect_err("the shard is wrong").kind(),
        ErrorKind::Mismatch
    );
}

#[test]
fn entries_out_of_order_are_refused() {
    let mut writer = SegmentWriter::new(small(), UniqueId(1)).expect("valid");
    let (a, b) = (Owned::put([1], [], []), Owned::put([1], [0], []));
    writer.push(&b.entry(), 0).expect("the first entry");
    assert_eq!(
        writer
            .push(&a.entry(), 0)
            .expect_err("it is smaller")
            .kind(),
        ErrorKind::Invalid
    );
    assert_eq!(
        writer.push(&b.entry(), 0).expect_err("it repeats").kind(),
        ErrorKind::Invalid
    );
}

#[test]
fn large_values_get_blocks_of_their_own() {
    let entries = in_order(vec![
        Owned::put([1], [], vec![1; 10]),
        Owned::put([2], [], vec![2; 64 << 20]),
        Owned::put([3], [], vec![3; 10]),
    ]);
    let segment = write(SegmentOptions::default(), &entries);
    assert_eq!(
        read_all(&segment.meta, &segment.bytes).expect("whole"),
        entries
    );
}

#[test]
fn long_streams_become_several_segments() {
    let options = SegmentOptions {
        segment_bytes_target: 64 << 10,
        ..small()
    };
    let mut finished = Vec::new();
    let mut sink = |segment| {
        finished.push(segment);
        Ok(())
    };
    let mut next = 0;
    let unique = || {
        next += 1;
        UniqueId(next)
    };
    let entries: Vec<Owned> = in_order(
        (0..40_000_u32)
            .map(|n| Owned::put(n.to_be_bytes(), [], n.to_le_bytes()))
            .collect(),
    );
    let mut splitter =
        SegmentSplitter::new(options, (Generation(1), Generation(1)), unique, &mut sink);
    for entry in &entries {
        splitter.push(&entry.entry(), 0).expect("in order");
    }
    splitter.finish().expect("the sink takes all");
    assert!(finished.len() > 2, "{} segments", finished.len());
    let read: Vec<Owned> = finished
        .iter()
        .flat_map(|segment: &FinishedSegment| {
            read_all(&segment.meta, &segment.bytes).expect("whole")
        })
        .collect();
    assert_eq!(read, entries);
    assert!(finished.iter().all(|segment| segment.meta.bytes < 80 << 10));
}

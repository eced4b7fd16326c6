//! Entries that are written as a segment and read back, whole, by key and through a manifest.

use std::sync::Arc;

use backend_core::chain::KeySpan;
use backend_core::entry::Op;
use backend_core::generation::Generation;
use backend_core::hash::HashId;
use backend_core::manifest::{
    Manifest, ManifestMeta, ManifestPart, OperatorMeta, Position, SnapshotKind,
};
use backend_core::names::SegmentName;
use backend_core::segment::{
    FinishedSegment, Found, SegmentLocation, SegmentMeta, SegmentOptions, SegmentReader,
    SegmentRef, SegmentSource, SegmentWriter, Tier,
};
use backend_core::{
    CodecId, Epoch, HashRange, JobId, OperatorId, SnapshotId, TaskIndex, TaskPart, UniqueId,
};
use bytes::Bytes;

use crate::cursor::Cursor;
use crate::entries::{Owned, read, wait};
use crate::targets::segment::assert_same;

const ENTRIES_MAX: usize = 512;
/// The raw bytes of one input, so that an execution takes well below a second.
const VALUE_BYTES_MAX: usize = 256 << 10;

pub(super) fn check(bytes: &[u8]) -> bool {
    let mut input = Cursor::new(bytes);
    let options = options(&mut input);
    let entries = entries(&mut input);
    if entries.is_empty() {
        return false;
    }
    let finished = write(options, &entries);
    let meta = SegmentMeta {
        location: SegmentLocation::Inline(finished.bytes.clone()),
        ..finished.meta.clone()
    };
    let decoded = SegmentMeta::decode(&meta.location, &finished.bytes).expect("a footer is read");
    assert_eq!(decoded, meta);
    check_counts(&meta, &entries);
    let meta = Arc::new(meta);
    let again = read(&meta, &finished.bytes, KeySpan::default()).expect("a segment is read");
    assert_eq!(again.len(), entries.len());
    for (again, entry) in again.iter().zip(&entries) {
        assert_same(again, entry);
    }
    check_lookups(&meta, &finished.bytes, &again);
    check_manifest(&finished);
    true
}

fn options(input: &mut Cursor<'_>) -> SegmentOptions {
    let [a, b, c, d] = [(); 4].map(|()| input.byte_or_zero());
    let mut options = SegmentOptions::default();
    options.block_bytes_target = 1_024 + 64 * u32::from(a);
    options.region_blocks = 1 + u32::from(b % 4);
    options.filter_bits_per_key = u32::from(c % 33);
    options.compression_level = 1 + i32::from(d % 3);
    options
}

/// Entries in the order of a segment, at most one put or delete and one prefix delete for a key.
fn entries(input: &mut Cursor<'_>) -> Vec<Owned> {
    let mut entries = Vec::new();
    let mut bytes_left = VALUE_BYTES_MAX;
    while !input.is_empty() && entries.len() < ENTRIES_MAX {
        entries.push(entry(input, &mut bytes_left));
    }
    entries.sort_by(|a, b| a.entry().cmp_in_segment(&b.entry()));
    entries.dedup_by(|b, a| {
        a.key() == b.key() && (a.op == Op::DeletePrefix) == (b.op == Op::DeletePrefix)
    });
    entries
}

fn entry(input: &mut Cursor<'_>, bytes_left: &mut usize) -> Owned {
    let head = input.byte_or_zero();
    let op = match head % 8 {
        0..=4 => Op::Put,
        5 | 6 => Op::Delete,
        _ => Op::DeletePrefix,
    };
    let key = piece(input);
    let namespace = if head & 8 == 0 {
        Vec::new()
    } else {
        piece(input)
    };
    let sub_key = match op {
        Op::DeletePrefix => Vec::new(),
        Op::Put | Op::Delete if head & 16 == 0 => Vec::new(),
        Op::Put | Op::Delete => piece(input),
    };
    let expires_ms = match head >> 5 & 3 {
        0 | 1 => None,
        2 => Some(1_700_000_000_000 + u64::from(input.byte_or_zero())),
        _ => Some(input.u64().unwrap_or(u64::MAX)),
    };
    let (schema, value) = if op == Op::Put {
        let schema = if head & 128 == 0 {
            0
        } else {
            input.byte_or_zero()
        };
        (schema, value(input, bytes_left))
    } else {
        (0, Vec::new())
    };
    Owned {
        state: u32::from(key.first().copied().unwrap_or(0) % 2),
        shard: key.last().copied().unwrap_or(0) % 4,
        key,
        namespace,
        sub_key,
        op,
        schema,
        expires_ms: expires_ms.filter(|_| op == Op::Put),
        value,
    }
}

/// A short piece, or a long one of few different bytes.
fn piece(input: &mut Cursor<'_>) -> Vec<u8> {
    let length = usize::from(input.byte_or_zero());
    if length < 64 {
        input.up_to(length % 16).to_vec()
    } else {
        vec![input.byte_or_zero(); 2 * length]
    }
}

fn value(input: &mut Cursor<'_>, bytes_left: &mut usize) -> Vec<u8> {
    let length = usize::from(input.byte_or_zero());
    let value = if length < 128 {
        input.up_to(length % 32).to_vec()
    } else {
        let fill = input.byte_or_zero();
        let length = (length - 127) * 32;
        // Neither all equal nor random, so that blocks are compressed and yet not tiny.
        (0..length.min(*bytes_left))
            .map(|at| fill.wrapping_mul(at as u8 | 1) ^ (at / 7) as u8)
            .collect()
    };
    *bytes_left -= value.len().min(*bytes_left);
    value
}

fn write(options: SegmentOptions, entries: &[Owned]) -> FinishedSegment {
    let mut writer = SegmentWriter::new(options, UniqueId(7)).expect("the options are in bounds");
    for entry in entries {
        let pushed = writer.push(&entry.entry(), entry.value.len() as u64);
        pushed.expect("the entries are in order");
    }
    let finished = writer.finish((Generation(2), Generation(3)));
    finished.expect("there are entries")
}

fn check_counts(meta: &SegmentMeta, entries: &[Owned]) {
    let count = |op| entries.iter().filter(|entry| entry.op == op).count() as u64;
    assert_eq!(
        (meta.puts, meta.deletes, meta.delete_prefixes),
        (count(Op::Put), count(Op::Delete), count(Op::DeletePrefix))
    );
    let shards = entries.iter().map(|entry| entry.shard);
    assert_eq!(Some(meta.shards.0), shards.clone().min());
    assert_eq!(Some(meta.shards.1), shards.max());
    let expiry = entries.iter().filter_map(|entry| entry.expires_ms).min();
    assert_eq!(meta.expires_ms_min, expiry);
}

/// Every put and delete is found, and no stranger.
fn check_lookups(meta: &Arc<SegmentMeta>, bytes: &Bytes, entries: &[Owned]) {
    let reader = SegmentReader::new(Arc::clone(meta), SegmentSource::of_bytes(bytes.clone()));
    let get = |entry: &Owned| -> Option<Found> {
        wait(reader.get(&entry.key())).expect("a whole segment is read")
    };
    let step = entries.len().div_ceil(32).max(1);
    for entry in entries.iter().step_by(step) {
        if entry.op != Op::DeletePrefix {
            let found = get(entry).expect("what was written is found");
            assert_eq!((found.op, found.schema.0), (entry.op, entry.schema));
            assert_eq!(
                (found.expires_ms, &*found.value),
                (entry.expires_ms, &*entry.value)
            );
        }
        let mut stranger = entry.clone();
        stranger.sub_key.push(0);
        if !entries.iter().any(|other| other.key() == stranger.key()) {
            assert_eq!(get(&stranger), None);
        }
    }
}

/// A manifest that refers to the segment comes back equal: what a writer makes of valid entries,
/// no reader may refuse.
fn check_manifest(finished: &FinishedSegment) {
    let name = SegmentName {
        epoch: Epoch(1),
        snapshot: SnapshotId(1),
        task: TaskIndex(0),
        index: 0,
        unique: finished.unique,
    };
    let meta = SegmentMeta {
        location: SegmentLocation::Object(name),
        ..finished.meta.clone()
    };
    let operator = OperatorId::new("operator").expect("the name is short");
    let part = TaskPart {
        operator: operator.clone(),
        task: TaskIndex(0),
        range: HashRange::ALL,
        key_codec: CodecId::new("bytes"),
        hash: HashId::XXH3_64,
        generation_max: meta.generations.1,
        states: Vec::new(),
        segments: vec![SegmentRef {
            meta: Arc::new(meta),
            clip: HashRange::ALL,
            tier: Tier(0),
            run: 0,
        }],
        engine: Bytes::new(),
    };
    let position = Position::new(Epoch(1), SnapshotId(1));
    let manifest = Manifest {
        meta: ManifestMeta {
            job: JobId::new("job").expect("the name is short"),
            position,
            unique: UniqueId(1),
            parent: None,
            base: None,
            created_ms: 0,
            ttl_clock_ms: 0,
            kind: SnapshotKind::Aligned,
            engine: Bytes::new(),
        },
        operators: vec![OperatorMeta {
            id: operator,
            parallelism: 1,
            key_codec: CodecId::new("bytes"),
            hash: HashId::XXH3_64,
            states: Vec::new(),
        }],
        parts: vec![ManifestPart::keyed(part)],
    };
    let encoded = manifest.encode().expect("the manifest is valid");
    let (again, _) = Manifest::decode(position.object(), &encoded.bytes)
        .expect("a manifest of what a writer made is read");
    assert_eq!(again, manifest);
}

//! Segments: whatever is accepted is in order, is found by its key, and is written again as an
//! equal segment.

use std::sync::Arc;

use backend_core::chain::KeySpan;
use backend_core::entry::Op;
use backend_core::generation::Generation;
use backend_core::segment::{
    SegmentLocation, SegmentMeta, SegmentOptions, SegmentReader, SegmentSource, SegmentWriter,
};
use backend_core::{Result, UniqueId};
use bytes::Bytes;

use crate::entries::{Owned, for_each, read, wait};
use crate::memory::bounded;
use crate::targets::check_refusal;

/// What a footer takes for each of its bytes: keys of their own, and the list's growth.
const META_BYTES_PER_BYTE: usize = 8;
/// `docs/format.md`, 'Blocks': a raw block for a byte of its payload; and once more if its values
/// are shuffled.
const RAW_BYTES_PER_BYTE: usize = 2 * 1_024;
/// Entries that are looked up by key.
const LOOKUPS_MAX: usize = 16;

pub(super) fn check(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let location = SegmentLocation::Inline(bytes.clone());
    let bytes_max = META_BYTES_PER_BYTE * bytes.len();
    let meta = bounded("a footer", bytes_max, || {
        SegmentMeta::decode(&location, &bytes)
    });
    let entries = meta.and_then(|meta| {
        let meta = Arc::new(meta);
        let _ = meta.entries();
        let entries = read_whole(&meta, &bytes)?;
        Ok((meta, entries))
    });
    match entries {
        Ok((meta, entries)) => {
            check_keys(&meta, &bytes, &entries);
            check_spans(&meta, &bytes, &entries);
            check_rewrite(&entries);
            true
        }
        Err(e) => {
            check_refusal(&e);
            false
        }
    }
}

/// Reads all of a segment within the memory that its bytes justify.
pub(super) fn read_whole(meta: &Arc<SegmentMeta>, bytes: &Bytes) -> Result<Vec<Owned>> {
    let bytes_max = (RAW_BYTES_PER_BYTE + META_BYTES_PER_BYTE) * bytes.len();
    bounded("a segment", bytes_max, || {
        for_each(meta, bytes, KeySpan::default(), |_| {})
    })?;
    read(meta, bytes, KeySpan::default())
}

/// A key that is found says what the stream says. One that is not found may be excluded by the
/// filter, which nothing but its checksum proves.
fn check_keys(meta: &Arc<SegmentMeta>, bytes: &Bytes, entries: &[Owned]) {
    let reader = SegmentReader::new(Arc::clone(meta), SegmentSource::of_bytes(bytes.clone()));
    let step = entries.len().div_ceil(LOOKUPS_MAX).max(1);
    for entry in entries.iter().step_by(step) {
        let found = wait(reader.get(&entry.key())).expect("a segment that streams is looked up");
        if let Some(found) = found {
            let known = entries.iter().any(|other| {
                other.key() == entry.key()
                    && other.op == found.op
                    && other.schema == found.schema.0
                    && other.expires_ms == found.expires_ms
                    && other.value == found.value
            });
            assert!(known, "{entry:?} is found as {found:?}");
        }
    }
}

/// A span has all entries that lie in it.
fn check_spans(meta: &Arc<SegmentMeta>, bytes: &Bytes, entries: &[Owned]) {
    let firsts: Vec<_> = meta
        .regions
        .iter()
        .map(|region| &region.first_key)
        .collect();
    for (start, end) in firsts.iter().zip(firsts.iter().skip(1)) {
        let span = KeySpan {
            start: Some((*start).clone()),
            end: Some((*end).clone()),
        };
        let part = read(meta, bytes, span.clone()).expect("a segment that streams has spans");
        let inside = entries.iter().filter(|entry| lies_in(entry, &span));
        for entry in inside {
            assert!(part.contains(entry), "{entry:?} is missing in its span");
        }
    }
}

fn lies_in(entry: &Owned, span: &KeySpan) -> bool {
    let key = encoded_key(entry);
    span.start.as_ref().is_none_or(|start| **start <= *key)
        && span.end.as_ref().is_none_or(|end| *key < **end)
}

/// `docs/format.md`, 'Entry keys'.
pub(super) fn encoded_key(entry: &Owned) -> Vec<u8> {
    let mut out = entry.state.to_be_bytes().to_vec();
    out.push(entry.shard);
    for piece in [&entry.key, &entry.namespace] {
        let length = piece.len() as u64;
        if length < 248 {
            out.push(length as u8);
        } else {
            let bytes = length.to_be_bytes();
            let zeros = (length.leading_zeros() / 8) as usize;
            out.push(247 + (8 - zeros) as u8);
            out.extend(&bytes[zeros..]);
        }
        out.extend(piece);
    }
    out.extend(&entry.sub_key);
    out
}

/// What was read can be written, and comes back equal.
fn check_rewrite(entries: &[Owned]) {
    if entries.is_empty() {
        return;
    }
    let mut options = SegmentOptions::default();
    options.block_bytes_target = 1 << 10;
    let mut writer = SegmentWriter::new(options, UniqueId(1)).expect("the options are valid");
    for entry in entries {
        let pushed = writer.push(&entry.entry(), 0);
        pushed.expect("entries that were read are in order");
    }
    let written = writer.finish((Generation(1), Generation(1)));
    let written = written.expect("there are entries");
    let again = read(&Arc::new(written.meta), &written.bytes, KeySpan::default());
    let again = again.expect("what was written is read");
    assert_eq!(again.len(), entries.len());
    for (again, entry) in again.iter().zip(entries) {
        assert_same(again, entry);
    }
}

/// Entries are equal, up to a millisecond at the end of time: an expiry of 2^64 - 1 beside one of
/// 0 has no form.
pub(super) fn assert_same(again: &Owned, entry: &Owned) {
    if entry.expires_ms == Some(u64::MAX) && again.expires_ms == Some(u64::MAX - 1) {
        let moved = Owned {
            expires_ms: again.expires_ms,
            ..entry.clone()
        };
        assert_eq!(*again, moved);
    } else {
        assert_eq!(again, entry);
    }
    assert!(entry.op != Op::DeletePrefix || entry.sub_key.is_empty());
}

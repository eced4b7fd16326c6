//! Segments that no writer makes, under right checksums.

use bytes::Bytes;

use super::{Owned, read_all, small, tiny, with_every_feature, write};
use crate::entry::Op;
use crate::error::{Error, ErrorKind};
use crate::generation::Generation;
use crate::segment::footer::{self, HEADER_BYTES};
use crate::segment::region::{self, BlockHandle};
use crate::segment::{FinishedSegment, SegmentLocation, SegmentMeta, SegmentSource};

#[test]
fn hostile_blocks_are_refused_without_large_allocations() {
    let segment = write(small(), &with_every_feature());
    let region = &segment.meta.regions[0];
    let end = region.end().expect("small") as usize;
    let piece = &segment.bytes[region.offset as usize..end];
    let (blocks, _) = region::decode_region(region, HEADER_BYTES as u64, piece).expect("whole");
    let block = &blocks[0];
    let stored = &segment.bytes[block.offset as usize..][..block.stored_bytes as usize];
    let raw_bytes = u32::MAX.to_le_bytes();
    let hostile = [&stored[..4], &raw_bytes[..], &stored[8..]].concat();
    let handle = BlockHandle {
        crc: crc32fast::hash(&hostile),
        ..block.clone()
    };
    let source = SegmentSource::of_bytes(segment.bytes.clone());
    let opened = handle.open(Some(&source), &hostile, None);
    let e = opened.expect_err("4 GiB are not there");
    assert_eq!(e.kind(), ErrorKind::Corrupt);
    assert!(e.to_string().contains("larger than it can be"), "{e}");
}

/// The segment with another footer.
fn refooted(segment: &FinishedSegment, change: impl FnOnce(&mut SegmentMeta)) -> Bytes {
    let last = segment.meta.regions.last().expect("there are regions");
    let mut meta = segment.meta.clone();
    change(&mut meta);
    let mut bytes = segment.bytes[..last.end().expect("small") as usize].to_vec();
    footer::encode_footer(&meta, &mut bytes).expect("short");
    bytes.into()
}

/// The segment of one region with another index.
fn reindexed(segment: &FinishedSegment, change: impl FnOnce(&mut [BlockHandle])) -> Bytes {
    let [region] = &segment.meta.regions[..] else {
        panic!("the segment has one region");
    };
    let (start, end) = (
        region.offset as usize,
        region.end().expect("small") as usize,
    );
    let piece = &segment.bytes[start..end];
    let (mut blocks, filter) =
        region::decode_region(region, HEADER_BYTES as u64, piece).expect("whole");
    assert!(blocks.len() > 1, "there are several blocks");
    change(&mut blocks);
    let index = region::encode_index(&blocks).expect("short");
    let mut bytes = [&segment.bytes[..start], &index, filter].concat();
    let mut meta = segment.meta.clone();
    meta.regions[0].index_bytes = index.len() as u32;
    meta.regions[0].crc = crc32fast::hash(&bytes[start..]);
    footer::encode_footer(&meta, &mut bytes).expect("short");
    bytes.into()
}

fn refusal(bytes: &Bytes) -> Error {
    let location = SegmentLocation::Inline(bytes.clone());
    let read = SegmentMeta::decode(&location, bytes).and_then(|meta| read_all(&meta, bytes));
    let e = read.expect_err("no writer makes this");
    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
    assert_eq!(e.fact("object"), Some("inline segment"), "{e}");
    e
}

fn two_blocks() -> FinishedSegment {
    let entry = |n: u8| Owned::put([n], [], vec![n; 600]);
    let mut entries: Vec<Owned> = (0..4).map(entry).collect();
    entries.sort_by(|a, b| a.entry().cmp_in_segment(&b.entry()));
    write(small(), &entries)
}

#[test]
fn counts_beyond_all_numbers_are_refused() {
    let segment = two_blocks();
    let bytes = refooted(&segment, |meta| meta.deletes = u64::MAX);
    assert!(refusal(&bytes).message().contains("more entries"));
    let bytes = refooted(&segment, |meta| meta.generations.0 = Generation(9));
    assert!(refusal(&bytes).message().contains("backwards"));
}

#[test]
fn blocks_out_of_order_are_refused() {
    let segment = two_blocks();
    let swapped = reindexed(&segment, |blocks| {
        let (first, rest) = blocks.split_at_mut(1);
        std::mem::swap(&mut first[0].first_key, &mut rest[0].first_key);
    });
    assert!(refusal(&swapped).message().contains("order of their keys"));
    let overlapping = reindexed(&segment, |blocks| {
        blocks[1].first_key = blocks[0].first_key.clone();
    });
    let e = refusal(&overlapping);
    assert!(e.message().contains("reach into the next"), "{e}");
    let late = reindexed(&segment, |blocks| {
        let mut key = blocks[1].first_key.to_vec();
        key.push(0);
        blocks[1].first_key = key.into();
    });
    let e = refusal(&late);
    assert!(e.message().contains("another key than its index"), "{e}");
}

#[test]
fn damage_in_an_entry_names_the_segment_and_the_block() {
    let segment = two_blocks();
    let region = &segment.meta.regions[0];
    let piece = &segment.bytes[region.offset as usize..];
    let piece = &piece[..(region.index_bytes + region.filter_bytes) as usize];
    let (blocks, _) = region::decode_region(region, HEADER_BYTES as u64, piece).expect("whole");
    let stored = &segment.bytes[HEADER_BYTES..][..blocks[0].stored_bytes as usize];
    let raw_bytes = u32::from_le_bytes(stored[4..8].try_into().expect("four bytes"));
    let mut raw = zstd::bulk::decompress(&stored[8..], raw_bytes as usize).expect("compressed");
    // The first byte behind the header says how much the first key shares with none.
    raw[32] = 1;
    let hostile = [&[0; 4], &raw_bytes.to_le_bytes(), &raw[..]].concat();
    let handle = BlockHandle {
        crc: crc32fast::hash(&hostile),
        ..blocks[0].clone()
    };
    let source = SegmentSource::of_bytes(segment.bytes.clone());
    let mut entries = handle
        .open(Some(&source), &hostile, None)
        .expect("it opens");
    let e = entries.next_entry().expect_err("there is no key before");
    assert_eq!(e.fact("object"), Some("inline segment"), "{e}");
    assert_eq!(e.fact("block_offset"), Some("48"), "{e}");
}

/// A prefix delete fills a block, which would fill a region, and a large put of the same key
/// follows: they stay in one region, so that no two regions begin with one key.
#[test]
fn prefix_delete_that_would_be_a_region_of_its_own_is_read() {
    let mut delete = Owned::put([1], [], []);
    delete.op = Op::DeletePrefix;
    let entries = vec![delete, Owned::put([1], [], vec![1; 2_000])];
    let segment = write(tiny(), &entries);
    let keys: Vec<_> = segment.meta.regions.iter().map(|r| &r.first_key).collect();
    assert_eq!(keys.len(), 1);
    let location = SegmentLocation::Inline(segment.bytes.clone());
    let meta = SegmentMeta::decode(&location, &segment.bytes).expect("the footer is whole");
    assert_eq!(read_all(&meta, &segment.bytes).expect("whole"), entries);
}

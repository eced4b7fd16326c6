//! A segment checked piece by piece.

use super::*;
use crate::segment::check::{Flaw, FlawKind, SegmentCheck};
use crate::segment::footer::encode_footer;

type Lie = fn(&mut SegmentMeta);

fn check(meta: &SegmentMeta, bytes: &Bytes) -> std::result::Result<(), Flaw> {
    let mut check = SegmentCheck::new(Arc::new(meta.clone()), Some(KeyHasher::XXH3_64));
    while let Some(range) = check.wants()? {
        check.take(&bytes[range.start as usize..range.end as usize])?;
    }
    Ok(())
}

fn kind(meta: &SegmentMeta, bytes: &Bytes) -> FlawKind {
    check(meta, bytes).expect_err("it is flawed").kind
}

fn entries(count: u32) -> Vec<Owned> {
    let entries = (0..count).flat_map(|n| {
        let mut put = Owned::put(n.to_be_bytes(), [n as u8 % 3], vec![n as u8; 40]);
        put.expires_ms = (n % 7 == 0).then_some(1_000 + u64::from(n));
        let mut clear = Owned::put(n.to_be_bytes(), [], []);
        clear.op = Op::DeletePrefix;
        [Some(put), (n % 5 == 0).then_some(clear)]
    });
    in_order(entries.flatten().collect())
}

/// The segment with other content before its footer, and a footer and digest that fit `meta`.
fn sealed(bytes: &Bytes, meta: &mut SegmentMeta) -> Bytes {
    let end = meta.regions.last().and_then(Region::end).expect("regions");
    let mut out = bytes[..end as usize].to_vec();
    encode_footer(meta, &mut out).expect("encoded");
    meta.bytes = out.len() as u64;
    meta.digest = crate::ids::Digest::of(&out);
    out.into()
}

#[test]
fn whole_segments_of_any_shape_pass() {
    let no_filter = SegmentOptions {
        filter_bits_per_key: 0,
        ..small()
    };
    for options in [SegmentOptions::default(), small(), tiny(), no_filter] {
        let segment = write(options, &entries(300));
        assert!(check(&segment.meta, &segment.bytes).is_ok());
    }
}

#[test]
fn regions_ascend_although_a_clear_and_a_put_have_one_key() {
    let mut clear = Owned::put(*b"map", [], []);
    clear.op = Op::DeletePrefix;
    let large = Owned::put(*b"map", [], vec![1; 2_000]);
    let segment = write(tiny(), &in_order(vec![large, clear]));
    let firsts: Vec<_> = segment.meta.regions.iter().map(|r| &r.first_key).collect();
    assert!(firsts.is_sorted_by(|a, b| a < b), "{firsts:?}");
    assert!(check(&segment.meta, &segment.bytes).is_ok());
}

#[test]
fn every_flipped_bit_is_a_flaw() {
    let segment = write(tiny(), &entries(60));
    assert!(segment.meta.regions.len() > 2);
    for at in 0..segment.bytes.len() {
        let mut bad = segment.bytes.to_vec();
        bad[at] ^= 1 << (at % 8);
        check(&segment.meta, &bad.into()).expect_err("a flipped bit");
    }
}

#[test]
fn lies_with_right_checksums_are_flaws() {
    let segment = write(tiny(), &entries(60));
    let FinishedSegment { bytes, meta, .. } = &segment;
    // A filter that excludes everything.
    let mut lying = meta.clone();
    let region = &mut lying.regions[1];
    let filter_at = (region.offset + u64::from(region.index_bytes)) as usize;
    let mut bad = bytes.to_vec();
    bad[filter_at..filter_at + region.filter_bytes as usize].fill(0);
    let piece = region.offset as usize..region.end().expect("an end") as usize;
    region.crc = crc32fast::hash(&bad[piece]);
    let bad = sealed(&bad.into(), &mut lying);
    assert_eq!(kind(&lying, &bad), FlawKind::Filter);
    // Figures that are not those of the entries.
    let lies: [(Lie, FlawKind); 6] = [
        (|m| m.puts += 1, FlawKind::Counts),
        (|m| m.delete_prefixes -= 1, FlawKind::Counts),
        (|m| m.shards.0 += 1, FlawKind::Counts),
        (|m| m.expires_ms_min = Some(1), FlawKind::Counts),
        (
            |m| m.regions[1].first_key = Box::new([255; 9]),
            FlawKind::Index,
        ),
        (|m| m.regions[1].first_key = Box::new([0]), FlawKind::Order),
    ];
    for (lie, expected) in lies {
        let mut lying = meta.clone();
        lie(&mut lying);
        let unsealed = kind(&lying, bytes);
        assert!(
            [FlawKind::Footer, expected].contains(&unsealed),
            "{unsealed:?}"
        );
        let resealed = sealed(bytes, &mut lying);
        assert_eq!(kind(&lying, &resealed), expected);
    }
    let mut lying = meta.clone();
    lying.generations.1 = Generation(99);
    assert_eq!(kind(&lying, bytes), FlawKind::Footer);
    lying = meta.clone();
    lying.digest.0[0] ^= 1;
    assert_eq!(kind(&lying, bytes), FlawKind::Digest);
}

#[test]
fn key_in_another_shard_is_a_flaw() {
    let mut writer = SegmentWriter::new(small(), UniqueId(7)).expect("valid");
    let key = Owned::put(*b"key", [], *b"value");
    let mut entry = key.entry();
    entry.key.shard ^= 1;
    writer.push(&entry, 0).expect("in order");
    let segment = writer.finish((Generation(1), Generation(1))).expect("one");
    assert_eq!(kind(&segment.meta, &segment.bytes), FlawKind::Shard);
    let meta = Arc::new(segment.meta);
    let mut unknown = SegmentCheck::new(meta, None);
    while let Some(range) = unknown.wants().expect("in bounds") {
        let piece = &segment.bytes[range.start as usize..range.end as usize];
        unknown.take(piece).expect("nobody knows its hash");
    }
}

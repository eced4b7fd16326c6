//! The manifest's bytes: golden, damaged, cut short, hostile.

mod record;

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::contract::TaskPart;
use crate::descriptor::{CodecId, SchemaVersion, StateDescriptor, TimeToLive};
use crate::error::{Error, ErrorKind};
use crate::generation::Generation;
use crate::hash::HashId;
use crate::ids::{Digest, Epoch, JobId, OperatorId, SnapshotId, TaskIndex, UniqueId};
use crate::manifest::meta::{read_meta, read_operators, write_meta, write_operators};
use crate::manifest::part::{PartReader, index_states, write_part};
use crate::names::{ObjectName, PartsName, SegmentName};
use crate::range::HashRange;
use crate::segment::{Region, SegmentLocation, SegmentMeta, SegmentRef, Tier};
use crate::wire::Reader;

const GOLDEN: &[u8] = include_bytes!("../../tests/golden/manifest-v1.bin");
const GOLDEN_TEXT: &str = include_str!("../../tests/golden/manifest-v1.txt");
const OBJECT: ObjectName = ObjectName::Manifest(Epoch(3), SnapshotId(7));

fn states() -> Vec<StateDescriptor> {
    let mut ttl = TimeToLive::after_write_ms(60_000).expect("above 0");
    ttl.refresh_on_read = true;
    let mut seen = StateDescriptor::map("seen", CodecId::new("utf8"), CodecId::new("u64"))
        .with_namespace(CodecId::new("u32"))
        .with_schema(SchemaVersion(2));
    seen.ttl = Some(ttl);
    vec![StateDescriptor::value("count", CodecId::new("u64")), seen]
}

fn segment(location: SegmentLocation, bytes: u64, clip: HashRange) -> SegmentRef {
    let digest = match &location {
        SegmentLocation::Inline(held) => Digest::of(held),
        _ => Digest([0x5a; 32]),
    };
    let region = |key: &[u8], offset| Region {
        first_key: key.into(),
        offset,
        index_bytes: 30,
        filter_bytes: 10,
        crc: 0xdead_beef,
    };
    let regions = if bytes > 100 {
        vec![region(b"", 20), region(b"m", 60)]
    } else {
        Vec::new()
    };
    SegmentRef {
        meta: Arc::new(SegmentMeta {
            location,
            bytes,
            digest,
            puts: 5,
            deletes: 2,
            delete_prefixes: 1,
            shadowed_bytes: 17,
            generations: (Generation(2), Generation(4)),
            shards: (0, 127),
            expires_ms_min: (bytes > 100).then_some(1_700_000_060_000),
            regions,
        }),
        clip,
        tier: if bytes > 100 { Tier::BASE } else { Tier(0) },
        run: 1,
    }
}

fn sample() -> Manifest {
    let operator = OperatorId::new("count-words").expect("valid");
    let ranges = [HashRange::of_task(0, 2), HashRange::of_task(1, 2)];
    let part = |task: u32, states, segments| {
        ManifestPart::keyed(TaskPart {
            operator: operator.clone(),
            task: TaskIndex(task),
            range: ranges[task as usize],
            key_codec: CodecId::new("utf8"),
            hash: HashId::XXH3_64,
            generation_max: Generation(4),
            states,
            segments,
            engine: Bytes::from(format!("offset {task}")),
        })
    };
    let object = SegmentLocation::Object(SegmentName {
        epoch: Epoch(2),
        snapshot: SnapshotId(5),
        task: TaskIndex(0),
        index: 1,
        unique: UniqueId(0xabcd),
    });
    let packed = SegmentLocation::Packed {
        name: PartsName {
            epoch: Epoch(2),
            snapshot: SnapshotId(5),
            unique: UniqueId(0x77),
        },
        offset: 4_096,
    };
    let inline = SegmentLocation::Inline(Bytes::from_static(b"small state"));
    let mut second = part(
        1,
        states()[..1].to_vec(),
        vec![segment(packed, 90, ranges[1])],
    );
    second.channels.push(ChannelPart {
        side: ChannelSide::Input,
        channel: (0, 3),
        blob: blob(b"message"),
    });
    second.operator_states.push(OperatorStatePart {
        name: "sources".to_owned(),
        redistribution: Redistribution::Union,
        blob: blob(b"partition 4"),
    });
    Manifest {
        meta: ManifestMeta {
            job: JobId::new("words").expect("valid"),
            position: Position::new(Epoch(3), SnapshotId(7)),
            unique: UniqueId(0x0123_4567_89ab_cdef),
            parent: Some(Parent {
                position: Position::new(Epoch(3), SnapshotId(6)),
                unique: UniqueId(9),
                digest: Digest([0xa5; 32]),
            }),
            base: Some(SnapshotId(6)),
            created_ms: 1_700_000_000_000,
            ttl_clock_ms: 1_699_999_999_000,
            kind: SnapshotKind::Unaligned,
            engine: Bytes::from_static(b"transactions 4, 5"),
        },
        operators: vec![OperatorMeta {
            id: operator.clone(),
            parallelism: 2,
            key_codec: CodecId::new("utf8"),
            hash: HashId::XXH3_64,
            states: states()
                .into_iter()
                .map(|descriptor| StateMeta {
                    versions: vec![descriptor.schema],
                    descriptor,
                })
                .collect(),
        }],
        parts: vec![
            part(
                0,
                states(),
                vec![
                    segment(object, 1_000, ranges[0]),
                    segment(inline, 11, ranges[0]),
                ],
            ),
            second,
        ],
    }
}

fn blob(bytes: &'static [u8]) -> Blob {
    Blob {
        location: SegmentLocation::Inline(Bytes::from_static(bytes)),
        bytes: bytes.len() as u64,
        digest: Digest::of(bytes),
    }
}

fn bytes_of(manifest: &Manifest) -> Vec<u8> {
    manifest.encode().expect("valid").bytes.to_vec()
}

#[test]
fn the_writer_reproduces_the_golden_file() {
    let manifest = sample();
    let encoded = manifest.encode().expect("valid");
    let text = format!("digest {}\n{manifest}", encoded.digest);
    if std::env::var_os("STATELINE_WRITE_GOLDEN").is_some() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        std::fs::write(folder.join("manifest-v1.bin"), &encoded.bytes).expect("written");
        std::fs::write(folder.join("manifest-v1.txt"), &text).expect("written");
    }
    assert!(encoded.bytes == GOLDEN, "the bytes of version 1 are fixed");
    assert_eq!(text, GOLDEN_TEXT);
}

#[test]
fn the_golden_file_is_read() {
    let (manifest, digest) = Manifest::decode(OBJECT, GOLDEN).expect("valid");
    assert_eq!(manifest, sample());
    assert_eq!(digest, manifest.encode().expect("valid").digest);
    let first = &manifest.parts[0].task.segments[0];
    assert_eq!(first.meta.regions.len(), 2);
}

fn assert_refused(what: &str, error: &Error) {
    assert_eq!(error.fact("object"), Some(&*OBJECT.to_string()), "{what}");
    assert!(error.fact("section").is_some(), "{what}: {error}");
    assert!(error.fact("offset").is_some(), "{what}: {error}");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
}

#[test]
fn every_flipped_bit_is_found_and_placed() {
    let mut bytes = GOLDEN.to_vec();
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = Manifest::decode(OBJECT, &bytes).expect_err("a bit is wrong");
        assert_refused(&format!("bit {bit}"), &error);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn every_cut_and_every_trailing_byte_is_found() {
    for length in 0..GOLDEN.len() {
        let error = Manifest::decode(OBJECT, &GOLDEN[..length]).expect_err("cut short");
        assert_refused(&format!("{length} bytes"), &error);
    }
    let longer = [GOLDEN, &[0]].concat();
    assert_refused(
        "longer",
        &Manifest::decode(OBJECT, &longer).expect_err("long"),
    );
    let front = [&[0], GOLDEN].concat();
    assert_refused(
        "front",
        &Manifest::decode(OBJECT, &front).expect_err("long"),
    );
}

#[test]
fn another_version_is_unsupported_and_says_which() {
    let mut bytes = GOLDEN.to_vec();
    bytes[8] = 2;
    let crc = crc32fast::hash(&bytes[..28]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    let error = Manifest::decode(OBJECT, &bytes).expect_err("version 2");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        (error.fact("expected"), error.fact("got")),
        (Some("1"), Some("2"))
    );
}

#[test]
fn reserved_bytes_are_refused_even_under_a_right_checksum() {
    for at in 12..28 {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] = 1;
        let crc = crc32fast::hash(&bytes[..28]);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
        let error = Manifest::decode(OBJECT, &bytes).expect_err("reserved");
        assert_eq!(error.message(), "reserved bytes are not zero", "byte {at}");
    }
}

#[test]
fn a_manifest_under_another_name_is_a_mismatch() {
    let other = ObjectName::Manifest(Epoch(3), SnapshotId(8));
    let error = Manifest::decode(other, GOLDEN).expect_err("another snapshot's name");
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert_eq!(error.fact("got"), Some(&*OBJECT.to_string()));
}

#[test]
fn a_part_is_read_from_end_index_and_its_own_bytes() {
    let size = GOLDEN.len() as u64;
    let slice = |range: std::ops::Range<u64>| &GOLDEN[range.start as usize..range.end as usize];
    let footer = Footer::decode(slice(size - MANIFEST_END_BYTES..size), size).expect("valid");
    let operators = footer
        .decode_operators(slice(footer.operators.range()))
        .expect("valid");
    let index = footer
        .decode_index(slice(footer.index.range()))
        .expect("valid");
    let entry = &index[1];
    let part = footer
        .decode_part(entry, &operators, slice(entry.span.range()))
        .expect("valid");
    assert_eq!(part, sample().parts[1]);
    let swapped = footer.decode_part(entry, &operators, slice(index[0].span.range()));
    assert!(swapped.is_err(), "another part's bytes are refused");
}

#[test]
fn the_digest_covers_everything() {
    let digest = sample().encode().expect("valid").digest;
    let changes: [fn(&mut Manifest); 4] = [
        |m| m.meta.created_ms += 1,
        |m| m.operators[0].states[0].versions.push(SchemaVersion(9)),
        |m| Arc::make_mut(&mut m.parts[0].task).engine = Bytes::from_static(b"other"),
        |m| Arc::make_mut(&mut m.parts[1].task).segments.clear(),
    ];
    for change in changes {
        let mut manifest = sample();
        change(&mut manifest);
        assert_ne!(manifest.encode().expect("valid").digest, digest);
    }
}

#[test]
fn parts_that_do_not_fit_are_not_written() {
    let edit = |change: fn(&mut TaskPart)| {
        let mut manifest = sample();
        change(Arc::make_mut(&mut manifest.parts[1].task));
        manifest.encode().expect_err("it does not fit")
    };
    let half = |part: &mut TaskPart| part.range = HashRange::ALL;
    assert_eq!(edit(half).message(), "two tasks own the same hashes");
    let gap = |part: &mut TaskPart| {
        part.segments.clear();
        part.range = HashRange::new(u64::MAX - 1, u64::MAX).expect("valid");
    };
    assert_eq!(edit(gap).message(), "no task owns some hashes");
    let short = |part: &mut TaskPart| {
        part.segments.clear();
        part.range = HashRange::new(1 << 63, u64::MAX - 1).expect("valid");
    };
    assert_eq!(edit(short).message(), "no task owns some hashes");
    let doubled = |part: &mut TaskPart| part.task = TaskIndex(0);
    assert_eq!(edit(doubled).fact("task"), Some("0"));
    let stranger = |part: &mut TaskPart| part.states[0].name = "other".to_owned();
    assert_eq!(edit(stranger).fact("state"), Some("other"));
    let wide = |part: &mut TaskPart| part.segments[0].clip = HashRange::ALL;
    assert_eq!(
        edit(wide).message(),
        "a segment is clipped to more than its task's range"
    );
    let inline = |part: &mut TaskPart| {
        let bytes = Bytes::from(vec![0; 8_193]);
        let meta = Arc::make_mut(&mut part.segments[0].meta);
        meta.bytes = 8_193;
        meta.location = SegmentLocation::Inline(bytes);
    };
    assert_eq!(edit(inline).kind(), ErrorKind::Limit);
    let mut missing = sample();
    missing.parts.pop();
    assert_eq!(
        missing.encode().expect_err("one part").kind(),
        ErrorKind::Invalid
    );
}

/// A prefix delete may be a region of its own, before a put of its key that begins the next one.
#[test]
fn regions_that_begin_with_one_key_are_read() {
    let mut manifest = sample();
    let mut set_key = |index: usize, key: &[u8]| {
        let part = Arc::make_mut(&mut manifest.parts[0].task);
        let meta = Arc::make_mut(&mut part.segments[0].meta);
        meta.regions[index].first_key = key.into();
        manifest.clone()
    };
    let equal = set_key(0, b"m");
    let (again, _) = Manifest::decode(OBJECT, &bytes_of(&equal)).expect("what is written is read");
    assert_eq!(again, equal);
    let falling = set_key(0, b"n");
    let error = Manifest::decode(OBJECT, &bytes_of(&falling)).expect_err("regions fall");
    assert_eq!(error.message(), "a segment's regions do not ascend");
}

#[test]
fn a_state_that_stands_twice_is_refused() {
    let mut manifest = sample();
    let state = manifest.operators[0].states[0].clone();
    manifest.operators[0].states.push(state);
    let error = manifest.encode().expect_err("it has two places");
    assert_eq!(error.fact("state"), Some("count"), "{error}");
    let read =
        super::check::check_structure(&manifest.operators, &manifest.parts, ErrorKind::Corrupt);
    assert_eq!(
        read.expect_err("it has two places").kind(),
        ErrorKind::Corrupt
    );
}

#[test]
fn a_generation_without_a_next_one_is_refused() {
    let mut manifest = sample();
    Arc::make_mut(&mut manifest.parts[0].task).generation_max = Generation(u32::MAX);
    let error = manifest
        .encode()
        .expect_err("a restored store could not begin");
    assert_eq!(error.fact("task"), Some("0"), "{error}");
}

#[test]
fn a_count_beyond_the_section_allocates_nothing() {
    let mut operators = write_operators(&sample().operators).expect("valid");
    operators[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = read_operators(&mut Reader::new("operators", &operators, 0)).expect_err("long");
    assert_eq!(error.message(), "a list is longer than its section");
}

#[test]
fn descriptors_repeated_without_bound_are_refused() {
    let manifest = sample();
    let operator = &manifest.operators[0];
    let bytes =
        write_part(0, operator, &index_states(operator), &manifest.parts[0]).expect("valid");
    let read = |bytes_max| {
        PartReader::default().read(
            &mut Reader::new("part", &bytes, 0),
            &manifest.operators,
            bytes_max,
        )
    };
    assert!(read(1_000).is_ok());
    let error = read(100).expect_err("two descriptors take more");
    assert_eq!(error.fact("bytes_max"), Some("100"));
}

/// A few bytes changed, cut or added, as someone could who also sets the digests right.
fn tampered(mut bytes: Vec<u8>, edits: &[(usize, u8)], keep: usize, extra: &[u8]) -> Vec<u8> {
    for (at, byte) in edits {
        let at = at % bytes.len();
        bytes[at] = *byte;
    }
    if keep < bytes.len() * 4 {
        bytes.truncate(keep);
        bytes.extend_from_slice(extra);
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn hostile_sections_are_refused_or_are_canonical(
        edits in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        keep in 0_usize..4_000,
        extra in prop::collection::vec(any::<u8>(), 0..6),
    ) {
        let manifest = sample();
        let meta = tampered(write_meta(&manifest.meta).expect("valid"), &edits, keep, &extra);
        if let Ok(read) = read_meta(&mut Reader::new("meta", &meta, 0)) {
            prop_assert_eq!(write_meta(&read).expect("valid"), meta);
        }
        let operators = write_operators(&manifest.operators).expect("valid");
        let operators = tampered(operators, &edits, keep, &extra);
        if let Ok(read) = read_operators(&mut Reader::new("operators", &operators, 0)) {
            prop_assert_eq!(write_operators(&read).expect("valid"), operators);
        }
        let operator = &manifest.operators[0];
        let places = index_states(operator);
        for part in &manifest.parts {
            let part = write_part(0, operator, &places, part).expect("valid");
            let part = tampered(part, &edits, keep, &extra);
            let mut input = Reader::new("part", &part, 0);
            let read = PartReader::default().read(&mut input, &manifest.operators, 1 << 20);
            if let Ok(read) = read {
                let again = write_part(0, operator, &places, &read).expect("valid");
                prop_assert_eq!(again, part);
            }
        }
    }
}

#[test]
fn a_manifest_is_a_function_of_its_content() {
    assert_eq!(bytes_of(&sample()), bytes_of(&sample().clone()));
    let shared = sample();
    let (read, _) = Manifest::decode(OBJECT, &bytes_of(&shared)).expect("valid");
    assert_eq!(bytes_of(&read), bytes_of(&shared));
}

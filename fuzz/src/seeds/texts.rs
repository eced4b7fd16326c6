//! Seeds of names, codecs and settings.

use backend_core::codec::KeyCodec;
use backend_core::names::{ObjectName, PartsName, SegmentName};
use backend_core::{Epoch, SnapshotId, TaskIndex, UniqueId};

use crate::seeds::Seed;
use crate::targets::Target;

pub(super) fn seeds() -> Vec<Seed> {
    [names(), codecs(), options()].concat()
}

fn names() -> Vec<Seed> {
    let (epoch, snapshot, unique) = (Epoch(3), SnapshotId(14), UniqueId(0xabc));
    let parts = PartsName {
        epoch,
        snapshot,
        unique,
    };
    let segment = SegmentName {
        epoch,
        snapshot,
        task: TaskIndex(15),
        index: 92,
        unique,
    };
    let names = [
        ("accepted-epoch", ObjectName::Epoch(epoch)),
        ("accepted-manifest", ObjectName::Manifest(epoch, snapshot)),
        ("accepted-parts", ObjectName::Parts(parts)),
        ("accepted-segment", ObjectName::Segment(segment)),
        ("accepted-collect", ObjectName::Collect(epoch, u64::MAX)),
        ("accepted-pin", ObjectName::Pin(unique)),
        ("accepted-claimed", ObjectName::Claimed(epoch, snapshot)),
        ("accepted-probe", ObjectName::Probe(UniqueId(u128::MAX))),
    ];
    let accepted = names.map(|(file, name)| Seed::new(Target::Name, file, name.to_string()));
    let refused = [
        Seed::new(Target::Name, "refused-sign", "epochs/+0000000000000000001"),
        Seed::new(
            Target::Name,
            "refused-beyond",
            "epochs/18446744073709551616",
        ),
        Seed::new(
            Target::Name,
            "refused-upper",
            format!("pins/{:032X}", u128::MAX),
        ),
    ];
    [&accepted[..], &refused[..]].concat()
}

fn codecs() -> Vec<Seed> {
    fn key<K: KeyCodec>(kind: u8, key: &K) -> Vec<u8> {
        let mut bytes = vec![kind];
        key.encode(&mut bytes);
        bytes
    }
    let text = String::from("te\0xt");
    let seed = |name, bytes: Vec<u8>| Seed::new(Target::Codec, name, bytes);
    vec![
        seed("accepted-number", key(1, &77_u64)),
        seed("accepted-pair", key(10, &(text.clone(), -5_i64))),
        seed("accepted-option", key(9, &Some(text.clone()))),
        seed(
            "accepted-nested",
            key(
                11,
                &(
                    b"a\0".to_vec(),
                    Some((7_u16, text.clone())),
                    b"rest".to_vec(),
                ),
            ),
        ),
        seed(
            "accepted-six",
            key(
                12,
                &((), Some(()), ('a', text), [1_u8, 2], true, Some(Some(3_u8))),
            ),
        ),
        seed("accepted-values", vec![17, 2, b'a', b'b', b'c']),
        seed("accepted-array", vec![19, 1, 7, 0, 0, 1, 5, 2, 8, 8, 0]),
        seed(
            "accepted-serde",
            vec![22, 7, 1, 3, b't', b'e', b'a', 2, 1, 9, 1, 1, b'n', 1, 4],
        ),
        seed("accepted-serde-list", vec![23, 1, 0, 0, 0, 0]),
        seed("refused-bool", vec![3, 2]),
        seed(
            "refused-length",
            vec![17, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1],
        ),
    ]
}

const STORE: &str = r#"{"tries_max": 3, "request_ms_max": 1000, "backoff_ms_first": 1,
 "backoff_ms_max": 18446744073709551615, "io_threads": 4}"#;
const SEGMENT: &str = r#"{"block_bytes_target": 1024, "region_blocks": 1,
 "segment_bytes_target": 65536, "compression_level": 22, "filter_bits_per_key": 0}"#;
const CHAIN: &str = r#"{"fanout": 2, "runs_max": 2, "dead_percent_max": 1, "full_bytes_max": 0}"#;
const MEMORY: &str = r#"{"inline_bytes_max": 0, "memory_bytes_max": null, "io_threads": 1,
 "incremental": false, "chain": {"fanout": 20}, "segment": {"compression_level": 1}}"#;

fn options() -> Vec<Seed> {
    let seed = |name, text: &str| Seed::new(Target::Options, name, text);
    vec![
        seed("accepted-defaults", "{}"),
        seed("accepted-store", STORE),
        seed("accepted-segment", SEGMENT),
        seed("accepted-chain", CHAIN),
        seed("accepted-memory", MEMORY),
        seed("refused-list", "[1"),
        seed(
            "refused-all",
            r#"{"io_threads": 0, "compression_level": 23, "fanout": 1}"#,
        ),
    ]
}

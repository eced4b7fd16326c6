//! Seeds of manifests and records.

use std::collections::BTreeSet;
use std::sync::Arc;

use backend_core::generation::Generation;
use backend_core::hash::HashId;
use backend_core::manifest::{
    Condemn, Manifest, ManifestMeta, ManifestPart, OperatorMeta, Parent, Pin, Position,
    SavepointClaim, SnapshotKind, StateMeta,
};
use backend_core::names::{PartsName, SegmentName};
use backend_core::segment::{SegmentLocation, SegmentMeta, SegmentRef, Tier};
use backend_core::{
    CodecId, Digest, Epoch, HashRange, JobId, OperatorId, SchemaVersion, SnapshotId,
    StateDescriptor, TaskIndex, TaskPart, TimeToLive, UniqueId,
};
use bytes::Bytes;

use crate::layout::{self, Layout};
use crate::seeds::segments::{few, finished};
use crate::seeds::{Seed, flipped};
use crate::targets::Target;

const GOLDEN: &[u8] = include_bytes!("../../../backend-core/tests/golden/manifest-v1.bin");
const CLAIM: &[u8] = include_bytes!("../../../backend-core/tests/golden/claim-v1.bin");
const CONDEMN: &[u8] = include_bytes!("../../../backend-core/tests/golden/condemn-v1.bin");

pub(super) fn seeds() -> Vec<Seed> {
    let manifest = |name, bytes: Vec<u8>| Seed::new(Target::Manifest, name, bytes);
    let record = |name, bytes: Vec<u8>| Seed::new(Target::Record, name, bytes);
    vec![
        manifest("accepted-golden", GOLDEN.to_vec()),
        manifest("accepted-new-job", encoded(&empty())),
        manifest("accepted-tasks", encoded(&tasks())),
        manifest("refused-flipped", flipped(GOLDEN, 40)),
        manifest("refused-state-twice", state_twice()),
        manifest("refused-cut", GOLDEN[..GOLDEN.len() - 1].to_vec()),
        record("accepted-claim", CLAIM.to_vec()),
        record("accepted-condemn", CONDEMN.to_vec()),
        record("accepted-condemn-many", condemn()),
        record("accepted-pin", pin()),
        record("accepted-savepoint-claim", savepoint_claim()),
        record("refused-flipped", flipped(CLAIM, 20)),
        record("refused-cut", CONDEMN[..CONDEMN.len() - 1].to_vec()),
    ]
}

fn encoded(manifest: &Manifest) -> Vec<u8> {
    let encoded = manifest.encode().expect("the seed is valid");
    encoded.bytes.to_vec()
}

/// A manifest with one state under two places, which no writer makes.
fn state_twice() -> Vec<u8> {
    let mut manifest = tasks();
    let mut twice = manifest.operators[1].states[0].clone();
    "twice".clone_into(&mut twice.descriptor.name);
    // The task knows the second place, and a writer would find the first.
    Arc::make_mut(&mut manifest.parts[2].task).states = vec![twice.descriptor.clone()];
    manifest.operators[1].states.push(twice);
    let bytes = encoded(&manifest);
    let mut layout = layout::Manifest::take_apart(&bytes).expect("the seed is whole");
    for piece in layout.pieces() {
        let found = piece.windows(5).position(|window| window == b"twice");
        if let Some(at) = found {
            piece[at..at + 5].copy_from_slice(b"value");
        }
    }
    layout.assemble()
}

fn empty() -> Manifest {
    Manifest {
        meta: ManifestMeta {
            job: JobId::new("job").expect("short"),
            position: Position::new(Epoch(2), SnapshotId(9)),
            unique: UniqueId(3),
            parent: Some(Parent {
                position: Position::new(Epoch(1), SnapshotId(8)),
                unique: UniqueId(2),
                digest: Digest([1; 32]),
            }),
            base: Some(SnapshotId(8)),
            created_ms: 1_700_000_000_000,
            ttl_clock_ms: 1_700_000_000_000,
            kind: SnapshotKind::Savepoint,
            engine: Bytes::from_static(b"position=1"),
        },
        operators: Vec::new(),
        parts: Vec::new(),
    }
}

/// Two tasks of one operator and one of another, with segments of every location.
fn tasks() -> Manifest {
    let mut ttl = TimeToLive::after_write_ms(1_000).expect("above 0");
    ttl.refresh_on_read = true;
    let mut map = StateDescriptor::map("map", CodecId::new("utf8"), CodecId::new("u64"))
        .with_namespace(CodecId::new("u32"))
        .with_schema(SchemaVersion(2));
    map.ttl = Some(ttl);
    let states = vec![
        StateDescriptor::value("value", CodecId::new("u64")),
        StateDescriptor::list("list", CodecId::new("bytes")),
        map,
    ];
    let operator = |id: &str, parallelism, states: &[StateDescriptor]| OperatorMeta {
        id: OperatorId::new(id).expect("short"),
        parallelism,
        key_codec: CodecId::new("utf8"),
        hash: HashId::XXH3_64,
        states: states
            .iter()
            .map(|descriptor| StateMeta {
                descriptor: descriptor.clone(),
                versions: vec![SchemaVersion(1), SchemaVersion(2)],
            })
            .collect(),
    };
    let operators = vec![operator("a", 2, &states), operator("b", 1, &states[..1])];
    let part = |operator: &OperatorMeta, task, segments| {
        ManifestPart::keyed(TaskPart {
            operator: operator.id.clone(),
            task: TaskIndex(task),
            range: HashRange::of_task(task, operator.parallelism),
            key_codec: operator.key_codec.clone(),
            hash: operator.hash,
            generation_max: Generation(9),
            states: operator
                .states
                .iter()
                .map(|s| s.descriptor.clone())
                .collect(),
            segments,
            engine: Bytes::from_static(b"offset"),
        })
    };
    let range = |task| HashRange::of_task(task, 2);
    let inline = finished(&few());
    let location = SegmentLocation::Inline(inline.bytes.clone());
    let inline = segment(inline.meta, location, HashRange::ALL, (Tier(0), 0));
    let parts = vec![
        part(&operators[0], 0, chain(range(0))),
        part(&operators[0], 1, Vec::new()),
        part(&operators[1], 0, vec![inline]),
    ];
    Manifest {
        operators,
        parts,
        ..empty()
    }
}

/// A base of two files and two runs.
fn chain(range: HashRange) -> Vec<SegmentRef> {
    let object = |index| {
        SegmentLocation::Object(SegmentName {
            epoch: Epoch(1),
            snapshot: SnapshotId(4),
            task: TaskIndex(0),
            index,
            unique: UniqueId(u128::from(index)),
        })
    };
    let packed = SegmentLocation::Packed {
        name: PartsName {
            epoch: Epoch(1),
            snapshot: SnapshotId(5),
            unique: UniqueId(5),
        },
        offset: 100,
    };
    let meta = finished(&few()).meta;
    vec![
        segment(meta.clone(), object(0), range, (Tier::BASE, 0)),
        segment(meta.clone(), object(1), range, (Tier::BASE, 0)),
        segment(meta.clone(), object(2), range, (Tier(1), 1)),
        segment(meta, packed, range, (Tier(0), 2)),
    ]
}

fn segment(
    meta: SegmentMeta,
    location: SegmentLocation,
    clip: HashRange,
    (tier, run): (Tier, u32),
) -> SegmentRef {
    SegmentRef {
        meta: Arc::new(SegmentMeta { location, ..meta }),
        clip,
        tier,
        run,
    }
}

fn condemn() -> Vec<u8> {
    let position = |epoch, id| Position::new(Epoch(epoch), SnapshotId(id));
    let condemn = Condemn {
        job: JobId::new("job").expect("short"),
        epoch: Epoch(3),
        index: 7,
        unique: UniqueId(1),
        below: position(3, 20),
        except: BTreeSet::from([position(1, 2), position(2, 9), position(3, 19)]),
    };
    condemn.encode().expect("the seed is valid").to_vec()
}

fn pin() -> Vec<u8> {
    let pin = Pin {
        job: JobId::new("job").expect("short"),
        position: Position::new(Epoch(3), SnapshotId(20)),
        unique: UniqueId(5),
        holder: "reader".to_owned(),
        created_ms: 1,
        expires_ms: Some(2),
    };
    pin.encode().expect("the seed is valid").to_vec()
}

fn savepoint_claim() -> Vec<u8> {
    let claim = SavepointClaim {
        job: JobId::new("job").expect("short"),
        position: Position::new(Epoch(3), SnapshotId(20)),
        unique: UniqueId(5),
        by: JobId::new("other").expect("short"),
        created_ms: 1,
    };
    claim.encode().expect("the seed is valid").to_vec()
}

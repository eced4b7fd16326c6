//! Times to live, small segments, states and hashes that do not fit.

use std::collections::BTreeMap;

use futures::executor::block_on;

use super::{Craft, Owned, operator};
use crate::hash::{HashId, KeyHasher};
use crate::ids::UniqueId;
use crate::inspect::{
    DiffOptions, FaultKind, FlattenOptions, Scope, SnapshotReader, VerifyOptions, VerifyReport,
    diff, flatten, verify,
};
use crate::manifest::Manifest;
use crate::names::{ObjectName, PartsName};
use crate::segment::{SegmentLocation, SegmentMeta};
use crate::store::Snapshot;

fn expiring(key: u32, expires_ms: Option<u64>) -> Owned {
    let mut entry = Owned::put("values", key, &[], &[key as u8; 8]);
    entry.expires_ms = expires_ms;
    entry
}

fn verified(craft: &Craft, options: &VerifyOptions) -> VerifyReport {
    block_on(verify(&craft.store, Scope::Store, options)).expect("it answers")
}

/// Which of the first four keys have a value.
fn alive(snapshot: &Snapshot) -> Vec<u32> {
    let reader = SnapshotReader::open(snapshot, &operator()).expect("opened");
    let is_there = |key: &u32| {
        let key = reader.key(key).expect("a key");
        block_on(reader.value("values", &key))
            .expect("read")
            .is_some()
    };
    (1..5).filter(is_there).collect()
}

#[test]
fn expired_entries_are_absent_at_the_clock_of_their_snapshot() {
    let mut craft = Craft::new(1_000, KeyHasher::XXH3_64);
    let trigger = craft.trigger();
    let entries = [Some(900), Some(1_000), Some(1_500), None];
    let entries = (1..).zip(entries).map(|(key, ms)| expiring(key, ms));
    let segment = craft.segment(&trigger, entries.collect());
    let part = craft.part(vec![segment]);
    let old = craft.commit(&trigger, part.clone());
    craft.environment.set_ms(2_000);
    let trigger = craft.trigger();
    let new = craft.commit(&trigger, part);
    assert_eq!((alive(&old), alive(&new)), (vec![3, 4], vec![4]));
    let report = verified(&craft, &VerifyOptions::default());
    assert!(report.is_whole(), "{report}");
    let counts = |snapshot: &Snapshot| {
        let figures = report.snapshot(snapshot.position()).expect("reported");
        let entries = figures.entries.expect("counted");
        (entries.all, entries.live, entries.expired, entries.dead)
    };
    assert_eq!((counts(&old), counts(&new)), ((4, 2, 2, 0), (4, 1, 3, 0)));
    let mut walk = diff(&old, &new, &DiffOptions::default()).expect("comparable");
    let first = block_on(walk.next()).expect("read").expect("one expired");
    assert_eq!(&first.key[..], 3_u32.to_be_bytes());
    assert!(first.old.is_some_and(|v| v.expires_ms == Some(1_500)) && first.new.is_none());
    assert!(block_on(walk.next()).expect("read").is_none());
    let flat = block_on(flatten(&mut craft.coordinator, &FlattenOptions::default()));
    let flat = flat.expect("flattened").snapshot;
    assert_eq!(alive(&flat), [4]);
    let parts = &flat.manifest().parts[0].task;
    assert_eq!(parts.segments[0].meta.entries(), 1, "physically gone");
}

#[test]
fn entry_that_differs_in_expiry_alone_can_be_passed_over() {
    let mut craft = Craft::new(1_000, KeyHasher::XXH3_64);
    let old = craft.snapshot(vec![vec![expiring(1, Some(5_000)), expiring(2, None)]]);
    let new = craft.snapshot(vec![vec![expiring(1, Some(6_000)), expiring(2, None)]]);
    for (ignores_expiry, expected) in [(false, 1), (true, 0)] {
        let options = DiffOptions {
            ignores_expiry,
            ..DiffOptions::default()
        };
        let mut walk = diff(&old, &new, &options).expect("comparable");
        let mut count = 0;
        while block_on(walk.next()).expect("read").is_some() {
            count += 1;
        }
        assert_eq!(count, expected);
    }
}

/// A snapshot whose two segments lie in a parts object, and that object.
fn packed(craft: &mut Craft) -> (Snapshot, ObjectName, Vec<u8>) {
    let first = craft.snapshot(vec![vec![expiring(1, None)]]);
    let mut manifest = first.manifest().clone();
    manifest.meta.position.id = manifest.meta.position.id.next();
    manifest.meta.unique = UniqueId(77);
    let name = PartsName {
        epoch: manifest.meta.position.epoch,
        snapshot: manifest.meta.position.id,
        unique: manifest.meta.unique,
    };
    let mut object = Vec::new();
    let mut part = (*manifest.parts[0].task).clone();
    part.segments.clear();
    for key in [2, 3] {
        let finished = craft.encode(vec![expiring(key, None)]);
        let location = SegmentLocation::Packed {
            name,
            offset: object.len() as u64,
        };
        object.extend_from_slice(&finished.bytes);
        part.segments.push(craft.reference(SegmentMeta {
            location,
            ..finished.meta
        }));
    }
    manifest.parts[0].task = part.into();
    let encoded = manifest.encode().expect("valid");
    let position = manifest.meta.position;
    let parts = ObjectName::Parts(name);
    craft.replace(&parts.to_string(), object.clone());
    craft.replace(&position.object().to_string(), encoded.bytes);
    let snapshot = block_on(craft.store.load(position.epoch, position.id)).expect("read");
    (snapshot, parts, object)
}

#[test]
fn small_segments_in_a_parts_object_are_verified() {
    let mut craft = Craft::new(1_000, KeyHasher::XXH3_64);
    let (snapshot, parts, object) = packed(&mut craft);
    assert_eq!(alive(&snapshot), [2, 3]);
    let report = verified(&craft, &VerifyOptions::default());
    assert!(report.is_whole(), "{report}");
    let figures = report.snapshot(snapshot.position()).expect("reported");
    assert_eq!(figures.bytes_own, Some(object.len() as u64));
    let name = parts.to_string();
    let longer = [&object[..], b"x"].concat();
    let mut flipped = object.clone();
    flipped[60] ^= 1;
    let shorter = object[..object.len() - 1].to_vec();
    let cases = [
        (longer, FaultKind::Size),
        (flipped, FaultKind::Block),
        (shorter, FaultKind::Size),
    ];
    for (bytes, kind) in cases {
        craft.replace(&name, bytes);
        let report = verified(&craft, &VerifyOptions::default());
        let found: Vec<_> = report.faults.iter().map(|f| (&*f.object, f.kind)).collect();
        assert_eq!(found, [(&*name, kind)], "{report}");
        assert_eq!(report.faults[0].hurts, [snapshot.position()], "{report}");
    }
    block_on(craft.storage.delete(&parts)).expect("deleted");
    let report = verified(&craft, &VerifyOptions::default());
    assert_eq!(report.faults.len(), 1, "{report}");
    assert_eq!(report.faults[0].kind, FaultKind::Missing);
}

#[test]
fn damaged_inline_segment_is_laid_at_its_manifest() {
    let mut craft = Craft::new(1_000, KeyHasher::XXH3_64);
    let trigger = craft.trigger();
    let finished = craft.encode(vec![expiring(1, None), expiring(2, None)]);
    let mut bytes = finished.bytes.to_vec();
    bytes[60] ^= 1;
    let meta = SegmentMeta {
        digest: crate::ids::Digest::of(&bytes),
        location: SegmentLocation::Inline(bytes.into()),
        ..finished.meta
    };
    let part = craft.part(vec![craft.reference(meta)]);
    let snapshot = craft.commit(&trigger, part);
    let report = verified(&craft, &VerifyOptions::default());
    let fault = report.faults.first().expect("it is found");
    assert_eq!(fault.object, snapshot.position().object().to_string());
    assert_eq!(fault.kind, FaultKind::Block, "{report}");
    assert_eq!(fault.error.fact("place"), Some("inline"));
}

#[test]
fn entries_that_no_state_can_have_are_found() {
    let unknown = Owned::put("strange", 1, &[], b"12345678");
    let with_sub_key = Owned::put("values", 1, b"x", b"12345678");
    for entry in [unknown, with_sub_key] {
        let mut craft = Craft::new(1_000, KeyHasher::XXH3_64);
        let snapshot = craft.snapshot(vec![vec![expiring(9, None), entry]]);
        let report = verified(&craft, &VerifyOptions::default());
        let fault = report.faults.first().expect("it is found");
        assert_eq!(fault.kind, FaultKind::State, "{report}");
        assert!(fault.object.starts_with("segments/"), "{report}");
        assert_eq!(fault.hurts, [snapshot.position()]);
        let flat = block_on(flatten(&mut craft.coordinator, &FlattenOptions::default()));
        flat.expect_err("it is not carried on");
    }
}

#[test]
fn segments_of_a_run_that_overlap_are_found() {
    let mut craft = Craft::new(1_000, KeyHasher::XXH3_64);
    let trigger = craft.trigger();
    let mut segments = vec![
        craft.segment(&trigger, vec![expiring(1, None), expiring(2, None)]),
        craft.segment(&trigger, vec![expiring(1, None), expiring(3, None)]),
    ];
    for segment in &mut segments {
        segment.run = 5;
    }
    let part = craft.part(segments);
    let snapshot = craft.commit(&trigger, part);
    let report = verified(&craft, &VerifyOptions::default());
    let fault = report.faults.first().expect("it is found");
    assert_eq!(fault.kind, FaultKind::Order, "{report}");
    assert_eq!(fault.hurts, [snapshot.position()]);
}

#[test]
fn own_hash_functions_are_needed_to_count() {
    let hasher = KeyHasher::custom(HashId(1_234), |key| {
        key.iter().fold(7, |h: u64, b| {
            (h ^ u64::from(*b)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    });
    let mut craft = Craft::new(1_000, hasher);
    let snapshot = craft.snapshot(vec![vec![expiring(1, None), expiring(2, None)]]);
    let report = verified(&craft, &VerifyOptions::default());
    assert!(report.is_whole(), "{report}");
    assert_eq!(report.hashes_unknown, [HashId(1_234)]);
    let entries = |report: &VerifyReport| {
        let figures = report.snapshot(snapshot.position()).expect("reported");
        figures.entries.map(|entries| entries.live)
    };
    assert_eq!(entries(&report), None);
    let options = VerifyOptions {
        hashers: vec![hasher],
        ..VerifyOptions::default()
    };
    assert_eq!(entries(&verified(&craft, &options)), Some(2));
    let refused = diff(&snapshot, &snapshot, &DiffOptions::default());
    assert_eq!(
        refused.expect_err("unknown").kind(),
        crate::ErrorKind::Unsupported
    );
}

#[test]
fn condemned_snapshots_are_passed_over() {
    let mut craft = Craft::new(1_000, KeyHasher::XXH3_64);
    let old = craft.snapshot(vec![vec![expiring(1, None)]]);
    let new = craft.snapshot(vec![vec![expiring(2, None)]]);
    let record = crate::manifest::Condemn {
        job: craft.store.job().clone(),
        epoch: new.epoch(),
        index: 0,
        unique: UniqueId(5),
        below: new.position(),
        except: std::collections::BTreeSet::new(),
    };
    let name = ObjectName::Collect(new.epoch(), 0).to_string();
    craft.replace(&name, record.encode().expect("encoded"));
    for object in old.manifest().objects() {
        block_on(craft.storage.delete(&object)).expect("deleted");
    }
    let report = verified(&craft, &VerifyOptions::default());
    assert!(report.is_whole(), "{report}");
    let found: BTreeMap<_, _> = report
        .snapshots
        .iter()
        .map(|s| (s.position, s.objects))
        .collect();
    assert_eq!(found, BTreeMap::from([(new.position(), 1)]));
    let (one, options) = (Scope::Snapshot(old.position()), VerifyOptions::default());
    let refused = block_on(verify(&craft.store, one, &options)).expect_err("condemned");
    assert_eq!(refused.kind(), crate::ErrorKind::NotFound);
    craft.replace(&name, vec![0; 60]);
    let report = verified(&craft, &VerifyOptions::default());
    let records = report.faults.iter().filter(|f| f.kind == FaultKind::Record);
    assert_eq!(records.count(), 1, "{report}");
    assert_eq!(report.newest_whole, Some(new.position()));
    assert!(Manifest::decode(new.position().object(), &[]).is_err());
}

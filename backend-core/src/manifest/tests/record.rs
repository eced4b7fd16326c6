//! The bytes of claims and condemn records.

use std::collections::BTreeSet;

use crate::error::ErrorKind;
use crate::ids::{Epoch, JobId, SnapshotId, UniqueId};
use crate::manifest::{Claim, Condemn, Pin, Position, SavepointClaim};
use crate::names::ObjectName;

const CONDEMN: &[u8] = include_bytes!("../../../tests/golden/condemn-v1.bin");
const CLAIM: &[u8] = include_bytes!("../../../tests/golden/claim-v1.bin");

fn claim() -> Claim {
    Claim {
        job: JobId::new("words").expect("valid"),
        epoch: Epoch(4),
        unique: UniqueId(8),
        created_ms: 1_700_000_000_000,
    }
}

fn condemn() -> Condemn {
    let at = |epoch, id| Position::new(Epoch(epoch), SnapshotId(id));
    Condemn {
        job: JobId::new("words").expect("valid"),
        epoch: Epoch(3),
        index: 2,
        unique: UniqueId(5),
        below: at(3, 4),
        except: BTreeSet::from([at(1, 2), at(2, 3)]),
    }
}

#[test]
fn a_condemn_record_is_a_rule() {
    let record = condemn();
    let at = |epoch, id| Position::new(Epoch(epoch), SnapshotId(id));
    assert!(
        record.condemns(at(1, 99)),
        "one that lands late is condemned"
    );
    assert!(!record.condemns(at(2, 3)), "excepted");
    assert!(!record.condemns(at(3, 4)), "the bound itself stays");
    assert!(record.condemns(at(3, 3)));
}

#[test]
fn records_survive_a_round_trip_and_no_damage() {
    let job = JobId::new("words").expect("valid");
    let record = condemn();
    let name = ObjectName::Collect(Epoch(3), 2);
    let bytes = record.encode().expect("valid");
    assert_eq!(Condemn::decode(name, &job, &bytes).expect("valid"), record);
    let claim = claim();
    let claim_bytes = claim.encode().expect("valid");
    let epoch = ObjectName::Epoch(Epoch(4));
    assert_eq!(
        Claim::decode(epoch, &job, &claim_bytes).expect("valid"),
        claim
    );
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        let error = Condemn::decode(name, &job, &bad).expect_err("a bit is wrong");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "bit {bit}");
        assert!(error.fact("object").is_some());
    }
    for length in 0..claim_bytes.len() {
        assert!(Claim::decode(epoch, &job, &claim_bytes[..length]).is_err());
    }
    let other = JobId::new("others").expect("valid");
    let error = Claim::decode(epoch, &other, &claim_bytes).expect_err("another job's");
    assert_eq!(error.kind(), ErrorKind::Mismatch);
}

#[test]
fn the_writer_reproduces_the_golden_records() {
    let (claim, condemn) = (claim().encode(), condemn().encode());
    let (claim, condemn) = (claim.expect("valid"), condemn.expect("valid"));
    if std::env::var_os("STATELINE_WRITE_GOLDEN").is_some() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        std::fs::write(folder.join("claim-v1.bin"), &claim).expect("written");
        std::fs::write(folder.join("condemn-v1.bin"), &condemn).expect("written");
    }
    assert!(claim == CLAIM, "the bytes of version 1 are fixed");
    assert!(condemn == CONDEMN, "the bytes of version 1 are fixed");
}

#[test]
fn the_golden_records_are_read() {
    let job = JobId::new("words").expect("valid");
    let read = Claim::decode(ObjectName::Epoch(Epoch(4)), &job, CLAIM);
    assert_eq!(read.expect("valid"), claim());
    let read = Condemn::decode(ObjectName::Collect(Epoch(3), 2), &job, CONDEMN);
    assert_eq!(read.expect("valid"), condemn());
}

#[test]
fn pins_and_claims_of_savepoints_survive_a_round_trip_and_no_damage() {
    let job = JobId::new("words").expect("valid");
    let position = Position::new(Epoch(3), SnapshotId(4));
    let pin = Pin {
        job: job.clone(),
        position,
        unique: UniqueId(6),
        holder: "a reader".to_owned(),
        created_ms: 1,
        expires_ms: Some(2),
    };
    assert_eq!((pin.holds_at(1), pin.holds_at(2)), (true, false));
    let name = ObjectName::Pin(UniqueId(6));
    let bytes = pin.encode().expect("valid");
    assert_eq!(Pin::decode(name, &job, &bytes).expect("valid"), pin);
    let claim = SavepointClaim {
        job: job.clone(),
        position,
        unique: UniqueId(7),
        by: JobId::new("letters").expect("valid"),
        created_ms: 9,
    };
    let claimed = ObjectName::Claimed(Epoch(3), SnapshotId(4));
    let claim_bytes = claim.encode().expect("valid");
    let read = SavepointClaim::decode(claimed, &job, &claim_bytes);
    assert_eq!(read.expect("valid"), claim);
    for at in 0..bytes.len() {
        let mut bad = bytes.to_vec();
        bad[at] ^= 1;
        let error = Pin::decode(name, &job, &bad).expect_err("a flipped bit");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(
            Pin::decode(name, &job, &bytes[..at]).is_err(),
            "cut at {at}"
        );
    }
    let other = ObjectName::Pin(UniqueId(8));
    let moved = Pin::decode(other, &job, &bytes).expect_err("another name");
    assert_eq!(moved.kind(), ErrorKind::Mismatch);
    let foreign = SavepointClaim::decode(claimed, &claim.by, &claim_bytes);
    assert_eq!(
        foreign.expect_err("another job").kind(),
        ErrorKind::Mismatch
    );
}

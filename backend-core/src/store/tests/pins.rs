//! Pins, savepoints that change hands, and going on from an older snapshot.

use super::collect::{at, collect, commit_of, extend, last, manifests, segments, stored};
use super::*;
use crate::manifest::{Condemn, Pin};
use crate::names::{Folder, ObjectName};
use crate::store::Retention;
use crate::store::pinning::renew;

#[test]
fn a_pinned_snapshot_stays_until_it_is_released() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    extend(&mut leader, &storage, &[]);
    let store = open(&storage, 2);
    let pinned = block_on(store.pin(at(1, 2), "a reader", None)).expect("it is there");
    assert_eq!(pinned.snapshot().position(), at(1, 2));
    extend(&mut leader, &storage, &[]);
    collect(&mut leader, &Retention::default()).expect("it leads");
    assert_eq!(
        (manifests(&storage), segments(&storage)),
        (vec![2, 3], vec![2, 3])
    );
    let pins = block_on(store.pins()).expect("readable");
    assert_eq!((pins.len(), &*pins[0].holder), (1, "a reader"));
    block_on(pinned.release()).expect("the store answers");
    collect(&mut leader, &Retention::default()).expect("it leads");
    assert_eq!(
        (manifests(&storage), segments(&storage)),
        (vec![3], vec![3])
    );
}

#[test]
fn a_condemned_snapshot_cannot_be_pinned() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    extend(&mut leader, &storage, &[]);
    extend(&mut leader, &storage, &[]);
    let record = Condemn {
        job: job(),
        epoch: Epoch(1),
        index: 0,
        unique: UniqueId(4),
        below: at(1, 3),
        except: [].into(),
    };
    let name = ObjectName::Collect(Epoch(1), 0);
    block_on(storage.create(&name, record.encode().expect("valid"))).expect("created");
    let store = open(&storage, 2);
    let error = block_on(store.pin(at(1, 2), "late", None)).expect_err("condemned");
    assert_eq!(
        (error.kind(), error.fact("snapshot")),
        (ErrorKind::NotFound, Some("1-2"))
    );
    let missing = block_on(store.pin(at(1, 9), "early", None));
    assert_eq!(kind(missing), ErrorKind::NotFound);
    let left = block_on(storage.list(Folder::Pins)).expect("listed");
    assert!(left.is_empty(), "a pin that was refused is removed");
}

#[test]
fn a_pin_that_races_a_record_keeps_its_files() {
    // The reader's pin is there before the collector lists pins for the second time, but after
    // it has chosen what to keep: the snapshot is condemned, and yet not deleted.
    let faulty = super::faulty::Faulty::new();
    let storage = Storage::new(faulty.clone(), "");
    let mut leader = claim(&storage, 1);
    extend(&mut leader, &storage, &[]);
    extend(&mut leader, &storage, &[]);
    let pin = Pin {
        job: job(),
        position: at(1, 2),
        unique: UniqueId(9),
        holder: "reader".to_owned(),
        created_ms: 0,
        expires_ms: None,
    };
    let look = ObjectName::Epoch(Epoch(2)).to_string();
    faulty.arrive(
        look,
        ObjectName::Pin(pin.unique),
        pin.encode().expect("valid"),
    );
    let report = collect(&mut leader, &Retention::default()).expect("it leads");
    assert_eq!(report.condemned, [at(1, 1), at(1, 2)]);
    assert_eq!(manifests(&storage), [2, 3]);
    assert_eq!(
        segments(&storage),
        [2, 3],
        "the pinned one's segment is there"
    );
    // As long as it is pinned it can be pinned for longer, and not once its lease has ended.
    let store = open(&storage, 7);
    let lease = |expires_ms| Pin {
        expires_ms: Some(expires_ms),
        ..pin.clone()
    };
    let ended = block_on(renew(store.remote(), &lease(1), None));
    assert_eq!(kind(ended), ErrorKind::NotFound);
    let longer = block_on(renew(store.remote(), &lease(u64::MAX), None)).expect("it is held");
    block_on(store.unpin(pin.unique)).expect("answers");
    collect(&mut leader, &Retention::default()).expect("it leads");
    assert_eq!(segments(&storage), [2, 3]);
    block_on(store.unpin(longer.unique)).expect("answers");
    collect(&mut leader, &Retention::default()).expect("it leads");
    assert_eq!(segments(&storage), [3]);
}

#[test]
fn a_lease_ends_into_a_named_error() {
    let storage = Storage::memory();
    let clock = Arc::new(ManualEnvironment::new(1_000, 1));
    let store = block_on(SnapshotStore::open(storage.clone(), job(), clock.clone()));
    let store = store.expect("opened");
    let mut leader = block_on(store.claim()).expect("free");
    extend(&mut leader, &storage, &[]);
    let mut pinned = block_on(store.pin(at(1, 2), "reader", Some(500))).expect("it is there");
    extend(&mut leader, &storage, &[]);
    clock.set_ms(1_400);
    block_on(pinned.renew(Some(500))).expect("it still holds");
    clock.set_ms(1_899);
    collect(&mut leader, &Retention::default()).expect("it leads");
    assert_eq!(segments(&storage), [2, 3]);
    clock.set_ms(1_900);
    collect(&mut leader, &Retention::default()).expect("it leads");
    assert_eq!(segments(&storage), [3]);
    let error = block_on(pinned.renew(None)).expect_err("it is gone");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        block_on(store.pins()).expect("readable").is_empty(),
        "ended pins are swept"
    );
}

#[test]
fn g7_a_savepoint_belongs_to_its_job_until_another_claims_it() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    let trigger = leader.trigger(SnapshotMode::Savepoint).expect("it leads");
    let own = stored(&storage, &trigger);
    commit_of(&mut leader, &trigger, &[own]).expect("it leads");
    extend(&mut leader, &storage, &[]);
    let store = open(&storage, 2);
    let other = |name| JobId::new(name).expect("valid");

    // Without a claim, whoever restores from it pins, and releases: the savepoint stays.
    let reader = block_on(store.pin(at(1, 2), "job b", None)).expect("it is there");
    block_on(reader.release()).expect("the store answers");
    collect(&mut leader, &Retention::default()).expect("it leads");
    assert_eq!(segments(&storage), [2, 3]);

    // With a claim it stays as long as its new owner pins it, and goes then.
    let refused = block_on(store.claim_savepoint(at(1, 3), &other("b")));
    assert_eq!(kind(refused), ErrorKind::Invalid, "no savepoint");
    let claimed = block_on(store.claim_savepoint(at(1, 2), &other("b"))).expect("free");
    let again = block_on(store.claim_savepoint(at(1, 2), &other("b"))).expect("its own");
    let third = block_on(store.claim_savepoint(at(1, 2), &other("c"))).expect_err("taken");
    assert_eq!(
        (third.kind(), third.fact("got")),
        (ErrorKind::Mismatch, Some("b"))
    );
    block_on(claimed.release()).expect("the store answers");
    collect(&mut leader, &Retention::default()).expect("it leads");
    assert_eq!(segments(&storage), [2, 3], "the other pin holds");
    block_on(again.release()).expect("the store answers");
    collect(&mut leader, &Retention::default()).expect("it leads");
    assert_eq!(
        (manifests(&storage), segments(&storage)),
        (vec![3], vec![3])
    );
    let left = block_on(storage.list(Folder::Claimed)).expect("listed");
    assert!(left.is_empty(), "the claim goes with its savepoint");
}

#[test]
fn g8_a_savepoint_that_the_job_went_on_from_stays_while_it_is_named() {
    let storage = Storage::memory();
    let mut first = claim(&storage, 1);
    let trigger = first.trigger(SnapshotMode::Savepoint).expect("it leads");
    let own = stored(&storage, &trigger);
    commit_of(&mut first, &trigger, std::slice::from_ref(&own)).expect("it leads");
    let mut second = claim(&storage, 2);
    let released = Retention {
        released: [at(1, 2)].into(),
        ..Retention::default()
    };
    let four = extend(&mut second, &storage, &[own]);
    collect(&mut second, &released).expect("it leads");
    assert_eq!(
        (manifests(&storage), segments(&storage)),
        (vec![4], vec![2, 4])
    );
    extend(&mut second, &storage, &[four]);
    collect(&mut second, &released).expect("it leads");
    assert_eq!(segments(&storage), [4, 5]);
}

#[test]
fn an_operator_goes_on_from_an_older_snapshot() {
    let storage = Storage::memory();
    let mut first = claim(&storage, 1);
    let two = extend(&mut first, &storage, &[]);
    extend(&mut first, &storage, &[]);
    let store = open(&storage, 2);
    let refused = block_on(store.claim_at(at(1, 7))).expect_err("there is none");
    assert_eq!(
        (refused.kind(), refused.fact("newest")),
        (ErrorKind::NotFound, Some("1-3"))
    );
    let mut second = block_on(store.claim_at(at(1, 2))).expect("it is there");
    let parent = second.adopted().manifest().meta.parent.expect("it has one");
    assert_eq!(
        (parent.position, second.adopted().id()),
        (at(1, 2), SnapshotId(4))
    );
    let newest = block_on(store.latest())
        .expect("readable")
        .expect("there is one");
    assert_eq!(
        newest.position(),
        second.adopted().position(),
        "3 is given up"
    );
    extend(&mut second, &storage, &[two]);
    collect(&mut second, &Retention::default()).expect("it leads");
    assert_eq!(segments(&storage), [2, 5], "and goes");
}

#[test]
fn what_was_given_up_does_not_count_among_the_newest() {
    let storage = Storage::memory();
    let mut first = claim(&storage, 1);
    for _ in 0..4 {
        extend(&mut first, &storage, &[]);
    }
    // A record that spares them all says that they were confirmed once.
    collect(&mut first, &last(4)).expect("it leads");
    let mut second = block_on(open(&storage, 2).claim_at(at(1, 3))).expect("it is there");
    extend(&mut second, &storage, &[]);
    let report = collect(&mut second, &last(3)).expect("it leads");
    let kept: Vec<_> = report.kept.keys().map(|p| p.id.0).collect();
    assert_eq!(kept, [2, 3, 7], "{report}");
}

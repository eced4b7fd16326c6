//! Each rule of the protocol, on the machines alone.

mod model;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::contract::SnapshotMode;
use crate::error::{ErrorKind, Result};
use crate::ids::{Attempt, Epoch, JobId, SnapshotId, TaskIndex, UniqueId};
use crate::manifest::{Condemn, Position};
use crate::names::{ObjectName, SegmentName};

const OURS: UniqueId = UniqueId(1);
const OTHERS: UniqueId = UniqueId(2);

fn at(epoch: u64, id: u64) -> Position {
    Position::new(Epoch(epoch), SnapshotId(id))
}

fn segment(epoch: u64, id: u64) -> ObjectName {
    ObjectName::Segment(SegmentName {
        epoch: Epoch(epoch),
        snapshot: SnapshotId(id),
        task: TaskIndex(0),
        index: 0,
        unique: UniqueId(u128::from(id)),
    })
}

fn objects(names: &[ObjectName]) -> ObjectSet {
    Arc::new(names.iter().copied().collect::<BTreeSet<_>>())
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.expect_err("it is refused").kind()
}

/// Epoch 2, which adopted as snapshot 5 what segment 1-3 holds.
fn ledger() -> Ledger {
    Ledger::new(Epoch(2), SnapshotId(5), objects(&[segment(1, 3)]))
}

fn confirm(ledger: &mut Ledger, id: SnapshotId, names: &[ObjectName]) {
    ledger.committable(id).expect("pending");
    ledger.on_commit_begun(id);
    ledger.on_confirmed(id, objects(names));
}

#[test]
fn rule_1_a_claim_takes_the_next_epoch_and_leaves_no_gap() {
    let mut claiming = Claiming::new(OURS);
    assert_eq!(claiming.step(), ClaimStep::ListEpochs);
    claiming.on_epochs(&[Epoch(1), Epoch(2)]).expect("no gap");
    assert_eq!(claiming.step(), ClaimStep::Create(Epoch(3)));
    claiming.on_create(CreateAnswer::Created);
    assert_eq!(claiming.step(), ClaimStep::Claimed(Epoch(3)));

    let mut first = Claiming::new(OURS);
    first.on_epochs(&[]).expect("a new job");
    assert_eq!(first.step(), ClaimStep::Create(Epoch(1)));

    let mut gap = Claiming::new(OURS);
    assert_eq!(
        kind(gap.on_epochs(&[Epoch(1), Epoch(3)])),
        ErrorKind::Corrupt
    );
}

#[test]
fn rule_1_a_doubtful_claim_keeps_its_number_until_it_is_settled() {
    let mut claiming = Claiming::new(OURS);
    claiming.on_epochs(&[Epoch(1)]).expect("no gap");
    for _ in 0..3 {
        claiming.on_create(CreateAnswer::InDoubt);
        assert_eq!(claiming.step(), ClaimStep::ReadBack(Epoch(2)));
        claiming.on_read_back(None);
        assert_eq!(
            claiming.step(),
            ClaimStep::Create(Epoch(2)),
            "not found proves nothing"
        );
        claiming.on_epochs(&[Epoch(1), Epoch(2)]).expect("no gap");
        assert_eq!(claiming.step(), ClaimStep::Create(Epoch(2)));
    }
    let mut lost = claiming.clone();
    claiming.on_create(CreateAnswer::Exists);
    claiming.on_read_back(Some(OURS));
    assert_eq!(claiming.step(), ClaimStep::Claimed(Epoch(2)));
    lost.on_create(CreateAnswer::Exists);
    lost.on_read_back(Some(OTHERS));
    assert_eq!(
        lost.step(),
        ClaimStep::Lost(Epoch(2)),
        "and it does not claim 3"
    );
}

#[test]
fn rule_2_the_base_is_the_newest_of_the_highest_epoch_that_has_one() {
    let manifests = [at(1, 1), at(1, 9), at(2, 4), at(2, 5)];
    let choice = choose_base(Epoch(5), &manifests, &[], Adopt::Newest).expect("there is one");
    assert_eq!(choice.base, Some(at(2, 5)), "id 9 is of an older epoch");
    assert_eq!(choice.next, SnapshotId(10), "but no id is used again");
    let new = choose_base(Epoch(1), &[], &[], Adopt::Newest).expect("a new job");
    assert_eq!((new.base, new.next), (None, SnapshotId(1)));
}

#[test]
fn rule_2_condemned_manifests_are_not_adopted() {
    let record = |below, except: &[Position]| Condemn {
        job: JobId::new("job").expect("valid"),
        epoch: Epoch(2),
        index: 0,
        unique: OURS,
        below,
        except: except.iter().copied().collect(),
    };
    let manifests = [at(1, 1), at(1, 2), at(1, 3)];
    let records = [record(at(2, 4), &[at(1, 2)])];
    let choice = choose_base(Epoch(3), &manifests, &records, Adopt::Newest).expect("one is left");
    assert_eq!(choice.base, Some(at(1, 2)));
    assert_eq!(
        choice.next,
        SnapshotId(4),
        "ids of condemned ones are spent, too"
    );
    let all = [record(at(2, 4), &[])];
    let outcome = choose_base(Epoch(3), &manifests, &all, Adopt::Newest);
    assert_eq!(kind(outcome), ErrorKind::Corrupt, "no fresh start");
}

#[test]
fn rule_2_a_later_epochs_manifest_fences_and_a_last_id_does_not_panic() {
    let outcome = choose_base(Epoch(3), &[at(4, 1)], &[], Adopt::Newest);
    assert_eq!(kind(outcome), ErrorKind::Fenced);
    assert_eq!(
        kind(choose_base(Epoch(3), &[at(3, 1)], &[], Adopt::Newest)),
        ErrorKind::Corrupt
    );
    assert_eq!(
        kind(choose_base(
            Epoch(3),
            &[at(1, u64::MAX)],
            &[],
            Adopt::Newest
        )),
        ErrorKind::Corrupt
    );
}

#[test]
fn rule_3_a_commit_looks_after_it_has_created() {
    let mut committing = Committing::new(at(2, 6), OURS);
    committing.on_look(false);
    assert_eq!(
        committing.step(),
        CommitStep::Create,
        "an early look proves nothing"
    );
    committing.on_create(CreateAnswer::Created);
    assert_eq!(committing.step(), CommitStep::Look(Epoch(3)));
    let mut overtaken = committing.clone();
    committing.on_look(false);
    assert_eq!(committing.step(), CommitStep::Confirmed);
    overtaken.on_look(true);
    assert_eq!(overtaken.step(), CommitStep::Fenced(Epoch(3)));
}

#[test]
fn rule_4_ids_grow_and_are_never_given_out_twice() {
    let mut ledger = ledger();
    let first = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    assert_eq!(first.id, SnapshotId(6));
    ledger.abort(first.id).expect("pending");
    ledger.next_attempt().expect("settled");
    let second = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    assert_eq!((second.id, second.attempt), (SnapshotId(7), Attempt(1)));
}

#[test]
fn rule_5_a_doubtful_manifest_is_settled_by_its_unique_id() {
    let mut committing = Committing::new(at(2, 6), OURS);
    committing.on_create(CreateAnswer::InDoubt);
    assert_eq!(committing.step(), CommitStep::ReadBack);
    committing.on_read_back(None);
    assert_eq!(
        committing.step(),
        CommitStep::Create,
        "not found proves nothing"
    );
    committing.on_create(CreateAnswer::Exists);
    let mut taken = committing.clone();
    committing.on_read_back(Some(OURS));
    assert_eq!(committing.step(), CommitStep::Look(Epoch(3)));
    taken.on_read_back(Some(OTHERS));
    assert_eq!(taken.step(), CommitStep::Taken(OTHERS));
}

#[test]
fn rule_5_while_in_doubt_nothing_is_aborted_restarted_or_committed_beside_it() {
    let mut ledger = ledger();
    let one = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    let two = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    ledger.on_commit_begun(one.id);
    assert_eq!(kind(ledger.abort(one.id)), ErrorKind::InDoubt);
    assert_eq!(kind(ledger.abort(two.id)), ErrorKind::InDoubt);
    assert_eq!(kind(ledger.next_attempt()), ErrorKind::InDoubt);
    assert_eq!(kind(ledger.committable(two.id)), ErrorKind::InDoubt);
    ledger.committable(one.id).expect("the same one may go on");
    ledger.on_confirmed(one.id, objects(&[]));
    ledger.committable(two.id).expect("settled");
}

#[test]
fn rule_6_an_abort_rolls_nothing_back() {
    let mut ledger = ledger();
    let one = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    confirm(&mut ledger, one.id, &[segment(2, 6)]);
    let two = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    ledger.abort(two.id).expect("pending");
    assert_eq!(ledger.confirmed(), one.id);
    assert_eq!(ledger.attempt(), Attempt(0));
    let three = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    let pending = ledger.committable(three.id).expect("pending");
    ledger
        .check_references(&pending, &[segment(2, two.id.0)])
        .expect("what an aborted snapshot wrote above the base can be used");
    assert_eq!(kind(ledger.committable(two.id)), ErrorKind::Declined);
}

#[test]
fn rule_7_a_snapshot_relies_on_its_base_and_on_what_came_after_it() {
    let mut ledger = ledger();
    let one = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    let two = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    confirm(&mut ledger, one.id, &[segment(2, 6)]);
    let three = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    assert_eq!(
        (two.base, three.base),
        (Some(SnapshotId(5)), Some(SnapshotId(6)))
    );
    assert_eq!(ledger.floor(), SnapshotId(5), "two still relies on 5");

    let second = ledger.committable(two.id).expect("pending");
    let third = ledger.committable(three.id).expect("pending");
    let check = |pending, name| ledger.check_references(pending, &[name]);
    check(&second, segment(1, 3)).expect("in the manifest of its base, 5");
    check(&second, segment(2, 6)).expect("above its base");
    check(&second, segment(2, 7)).expect("its own");
    assert_eq!(
        kind(check(&second, segment(2, 8))),
        ErrorKind::Declined,
        "younger"
    );
    assert_eq!(
        kind(check(&second, segment(1, 6))),
        ErrorKind::Declined,
        "another epoch"
    );
    let dropped = check(&third, segment(1, 3)).expect_err("not in its base, 6");
    assert_eq!(dropped.kind(), ErrorKind::Declined);
    assert_eq!(dropped.fact("object"), Some(&*segment(1, 3).to_string()));
    check(&third, segment(2, 6)).expect("in the manifest of its base");
}

#[test]
fn rule_7_acknowledgements_of_another_attempt_or_snapshot_are_declined() {
    let mut ledger = ledger();
    let old = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    assert_eq!(ledger.next_attempt().expect("settled"), Attempt(1));
    assert_eq!(kind(ledger.committable(old.id)), ErrorKind::Declined);
    let new = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    let pending = ledger.committable(new.id).expect("pending");
    let check = |id, attempt| {
        let position = Position::new(ledger.epoch(), id);
        ledger.check_ack(&pending, position, Attempt(attempt))
    };
    check(new.id, 1).expect("its own");
    assert_eq!(kind(check(new.id, 0)), ErrorKind::Declined);
    assert_eq!(kind(check(new.id, 2)), ErrorKind::Declined);
    assert_eq!(kind(check(old.id, 1)), ErrorKind::Declined);
}

#[test]
fn an_older_snapshot_is_subsumed_by_a_newer_one() {
    let mut ledger = ledger();
    let one = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    let two = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    confirm(&mut ledger, two.id, &[]);
    assert_eq!(kind(ledger.committable(one.id)), ErrorKind::Declined);
    assert_eq!(
        kind(ledger.committable(two.id)),
        ErrorKind::Invalid,
        "confirmed already"
    );
    assert_eq!(kind(ledger.committable(SnapshotId(99))), ErrorKind::Invalid);
    assert_eq!(ledger.pending().count(), 0);
}

#[test]
fn increments_pass_over_savepoints_unless_the_job_restored_from_one() {
    let mut ledger = ledger();
    let save = ledger.trigger(SnapshotMode::Savepoint, 0).expect("leads");
    let pending = ledger.committable(save.id).expect("pending");
    let old = ledger.check_references(&pending, &[segment(1, 3)]);
    assert_eq!(
        kind(old),
        ErrorKind::Declined,
        "a savepoint contains itself"
    );
    confirm(&mut ledger, save.id, &[segment(2, 6)]);
    assert_eq!(ledger.confirmed(), save.id);

    let next = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    assert_eq!(next.base, Some(SnapshotId(5)));
    let pending = ledger.committable(next.id).expect("pending");
    ledger
        .check_references(&pending, &[segment(1, 3)])
        .expect("the chain goes on from before the savepoint");
    let users = ledger.check_references(&pending, &[segment(2, 6)]);
    assert_eq!(kind(users), ErrorKind::Declined, "the user may delete it");

    ledger.next_attempt().expect("settled");
    let next = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    assert_eq!(next.base, Some(save.id));
    let pending = ledger.committable(next.id).expect("pending");
    ledger
        .check_references(&pending, &[segment(2, 6)])
        .expect("the job was restored from it");
}

#[test]
fn a_fenced_ledger_does_nothing_more() {
    let mut ledger = ledger();
    let one = ledger.trigger(SnapshotMode::Incremental, 0).expect("leads");
    ledger.on_fenced(Epoch(3));
    let error = ledger.committable(one.id).expect_err("fenced");
    assert_eq!(error.kind(), ErrorKind::Fenced);
    assert_eq!(error.fact("fenced_by"), Some("3"));
    assert_eq!(
        kind(ledger.trigger(SnapshotMode::Full, 0)),
        ErrorKind::Fenced
    );
    assert_eq!(kind(ledger.abort(one.id)), ErrorKind::Fenced);
    assert_eq!(kind(ledger.next_attempt()), ErrorKind::Fenced);
}

#[test]
fn pending_snapshots_are_bounded() {
    let mut ledger = ledger();
    for _ in 0..PENDING_MAX {
        ledger.trigger(SnapshotMode::Full, 0).expect("room");
    }
    assert_eq!(
        kind(ledger.trigger(SnapshotMode::Full, 0)),
        ErrorKind::Limit
    );
}

//! Stores that are full or deny access: nothing is in doubt, and nothing is lost.

use super::collect::{at, collect, extend, last};
use super::faulty::{Fault, Faulty};
use super::*;

#[test]
fn a_full_directory_refuses_a_commit_and_leaves_nothing_in_doubt() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "job").pretend_local();
    let mut leader = claim(&storage, 1);
    snapshot(&mut leader, "one").expect("there is space");
    faulty.plan(Fault::PutFull, "snapshots/", 1);
    let full = trigger(&mut leader);
    assert_eq!(kind(commit(&mut leader, &full, "two")), ErrorKind::Refused);
    assert_eq!(leader.in_doubt(), None);
    leader.next_attempt().expect("it is known what to restore");
    snapshot(&mut leader, "three").expect("there is space again");
}

#[test]
fn a_refusal_after_a_try_without_answer_stays_in_doubt() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "job").pretend_local();
    let mut leader = claim_hasty(&storage, 1);
    faulty.plan(Fault::PutStall, "snapshots/", 1);
    faulty.plan(Fault::PutFull, "snapshots/", 1);
    let late = trigger(&mut leader);
    assert_eq!(kind(commit(&mut leader, &late, "one")), ErrorKind::InDoubt);
    faulty.plan(Fault::PutFull, "snapshots/", 1);
    assert_eq!(kind(commit(&mut leader, &late, "one")), ErrorKind::InDoubt);
    assert_eq!(kind(leader.abort(late.id)), ErrorKind::InDoubt);
    block_on(faulty.land());
    commit(&mut leader, &late, "one").expect("it has landed");
}

#[test]
fn what_another_store_denies_is_in_doubt() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "job");
    let mut leader = claim(&storage, 1);
    faulty.plan(Fault::PutFull, "snapshots/", 3);
    let denied = trigger(&mut leader);
    assert_eq!(
        kind(commit(&mut leader, &denied, "one")),
        ErrorKind::InDoubt
    );
    commit(&mut leader, &denied, "one").expect("there is space again");
}

#[test]
fn a_full_directory_refuses_segments_claims_and_records() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "job").pretend_local();
    let mut leader = claim(&storage, 1);
    extend(&mut leader, &storage, &[]);
    faulty.plan(Fault::PutFull, "collect/", 1);
    assert_eq!(kind(collect(&mut leader, &last(1))), ErrorKind::Refused);
    let store = open(&storage, 2);
    faulty.plan(Fault::PutFull, "epochs/", 1);
    assert_eq!(kind(block_on(store.claim())), ErrorKind::Refused);
    faulty.plan(Fault::PutFull, "pins/", 1);
    let pin = block_on(store.pin(at(1, 2), "a reader", None));
    assert_eq!(kind(pin), ErrorKind::Refused);
    collect(&mut leader, &last(1)).expect("it still leads, and there is space");
}

#[test]
fn a_denied_read_is_not_tried_again() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "job");
    let mut leader = claim(&storage, 1);
    snapshot(&mut leader, "one").expect("it leads");
    let store = open(&storage, 2);
    faulty.plan(Fault::Deny, "snapshots/", 2);
    assert_eq!(kind(block_on(store.latest())), ErrorKind::Refused);
    assert_eq!(faulty.left(), 1, "once is enough");
}

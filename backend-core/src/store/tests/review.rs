//! Mix-ups between epochs and jobs, and what an operator's decision leaves behind.

use super::collect::{at, collect, commit_of, extend, last, stored};
use super::faulty::{Fault, Faulty};
use super::*;
use crate::inspect::{VerifyOptions, claim_newest_whole};
use crate::names::Folder;

#[test]
fn an_acknowledgement_of_an_older_epoch_is_declined_though_its_id_is_the_same() {
    let storage = Storage::memory();
    let mut first = claim(&storage, 1);
    snapshot(&mut first, "one").expect("it leads");
    trigger(&mut first);
    let stale = trigger(&mut first);
    let mut second = claim(&storage, 2);
    let fresh = trigger(&mut second);
    assert_eq!((fresh.id, fresh.attempt), (stale.id, stale.attempt));
    let inline = part("count", 0, 1, vec![inline("of epoch 1", HashRange::ALL)]);
    let acks = vec![ack(&stale, inline)];
    let error = block_on(second.commit(fresh.id, acks, Bytes::new())).expect_err("stale");
    assert_eq!(
        (error.kind(), error.fact("expected"), error.fact("got")),
        (ErrorKind::Declined, Some("2-4"), Some("1-4"))
    );
}

#[test]
fn a_mistyped_job_does_not_stop_the_one_that_runs() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    let typo = JobId::new("wrods").expect("valid");
    let other = block_on(SnapshotStore::open(storage.clone(), typo, env(2))).expect("opened");
    let error = block_on(other.claim()).expect_err("another job's directory");
    assert_eq!(
        (error.kind(), error.fact("got")),
        (ErrorKind::Mismatch, Some("words"))
    );
    snapshot(&mut leader, "one").expect("it still leads");
}

#[test]
fn a_savepoint_survives_going_back_to_before_it() {
    let storage = Storage::memory();
    let mut first = claim(&storage, 1);
    extend(&mut first, &storage, &[]);
    let save = first.trigger(SnapshotMode::Savepoint).expect("it leads");
    let own = stored(&storage, &save);
    commit_of(&mut first, &save, &[own]).expect("it leads");
    extend(&mut first, &storage, &[]);
    let mut second = block_on(open(&storage, 2).claim_at(at(1, 2))).expect("it is there");
    let report = collect(&mut second, &last(1)).expect("it leads");
    assert!(report.kept.contains_key(&at(1, 3)), "{report}");
    assert!(report.condemned.contains(&at(1, 4)), "{report}");
}

#[test]
fn a_job_that_went_past_a_damaged_manifest_collects_it() {
    let storage = Storage::memory();
    let mut first = claim(&storage, 1);
    for _ in 0..2 {
        let trigger = trigger(&mut first);
        commit_of(&mut first, &trigger, &[]).expect("it leads");
    }
    let damaged = at(1, 3).object();
    block_on(storage.delete(&damaged)).expect("deleted");
    block_on(storage.create(&damaged, Bytes::from_static(b"rubbish"))).expect("created");
    let store = open(&storage, 2);
    let fallback = block_on(claim_newest_whole(&store, &VerifyOptions::default()));
    let mut second = fallback.expect("one is whole").coordinator;
    assert_eq!(kind(block_on(store.list())), ErrorKind::Corrupt);
    let report = collect(&mut second, &last(1)).expect("nothing holds it up");
    assert_eq!(
        block_on(storage.size(&damaged)).expect("answers"),
        None,
        "{report}"
    );
    block_on(store.list()).expect("all that is left can be read");
    // A damaged one that the last snapshot goes on from holds everything up.
    let parent = at(1, 2).object();
    block_on(storage.delete(&parent)).expect("deleted");
    block_on(storage.create(&parent, Bytes::from_static(b"rubbish"))).expect("created");
    let mut third = claim(&storage, 3);
    assert_eq!(kind(collect(&mut third, &last(1))), ErrorKind::Corrupt);
}

#[test]
fn a_fallback_passes_over_what_was_never_confirmed() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "job");
    let mut first = claim_hasty(&storage, 1);
    let one = trigger(&mut first);
    commit_of(&mut first, &one, &[]).expect("it leads");
    let late = trigger(&mut first);
    faulty.plan(Fault::PutStall, "snapshots/", 3);
    assert_eq!(kind(commit_of(&mut first, &late, &[])), ErrorKind::InDoubt);
    claim(&storage, 2);
    block_on(faulty.land());
    let store = open(&storage, 3);
    let positions = block_on(store.live_positions()).expect("listed");
    assert_eq!(
        positions,
        [at(1, 1), at(1, 2), at(2, 3)],
        "1-3 has landed late"
    );
}

#[test]
fn records_do_not_pile_up_while_a_collection_fails() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "job");
    let mut leader = claim(&storage, 1);
    extend(&mut leader, &storage, &[]);
    for _ in 0..5 {
        faulty.plan(Fault::List, "segments", 1);
        let error = collect(&mut leader, &last(1)).expect_err("it cannot list");
        assert_eq!(error.fact("folder"), Some("segments"));
    }
    let records = block_on(storage.list(Folder::Collect)).expect("listed");
    assert_eq!(records.len(), 1);
}

#[test]
fn a_store_whose_answers_are_lost_is_not_refused() {
    let faulty = Faulty::new();
    // The answer to each creation is lost and it is sent again, as clients of real stores do.
    faulty.plan(Fault::PutTwice, "probe", 8);
    let storage = Storage::new(faulty, "job");
    block_on(SnapshotStore::open(storage, job(), env(1))).expect("it does what it must");
}

#[test]
fn a_savepoint_whose_claim_is_in_doubt_stays() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "job");
    let mut leader = claim_hasty(&storage, 1);
    let save = leader.trigger(SnapshotMode::Savepoint).expect("it leads");
    let own = stored(&storage, &save);
    commit_of(&mut leader, &save, &[own]).expect("it leads");
    extend(&mut leader, &storage, &[]);
    let store = open_with(&storage, 2, 150);
    let by = JobId::new("other").expect("valid");
    faulty.plan(Fault::PutAfter, "claimed/", 1);
    faulty.plan(Fault::Read, "claimed/", 6);
    let doubtful = block_on(store.claim_savepoint(at(1, 2), &by));
    assert_eq!(kind(doubtful), ErrorKind::InDoubt);
    faulty.forget();
    collect(&mut leader, &last(1)).expect("it leads");
    let claimed = block_on(store.claim_savepoint(at(1, 2), &by)).expect("it is there, and ours");
    assert_eq!(claimed.snapshot().position(), at(1, 2));
}

//! Commits and claims whose outcome is not clear.

use super::faulty::{Fault, Faulty};
use super::*;
use crate::names::Folder;

fn job_on(faulty: &Arc<Faulty>) -> Storage {
    Storage::new(faulty.clone(), "jobs/words")
}

#[test]
fn a_put_that_failed_before_or_after_it_took_effect_is_settled_within_the_call() {
    for fault in [Fault::PutBefore, Fault::PutAfter, Fault::PutStall] {
        let faulty = Faulty::new();
        let mut coordinator = claim_hasty(&job_on(&faulty), 1);
        faulty.plan(fault, "snapshots/", 1);
        let confirmed = snapshot(&mut coordinator, "one").expect("settled");
        assert_eq!(faulty.left(), 0, "{fault:?} has happened");
        block_on(faulty.land());
        let latest = block_on(open(&job_on(&faulty), 2).latest()).expect("readable");
        assert_eq!(latest.expect("one").digest(), confirmed.snapshot.digest());
    }
}

#[test]
fn a_claim_that_failed_before_or_after_it_took_effect_is_settled() {
    for fault in [Fault::PutBefore, Fault::PutAfter, Fault::PutStall] {
        let faulty = Faulty::new();
        let storage = job_on(&faulty);
        claim(&storage, 1);
        faulty.plan(fault, "epochs/", 1);
        let mut coordinator = claim_hasty(&storage, 2);
        assert_eq!((coordinator.epoch(), faulty.left()), (Epoch(2), 0));
        block_on(faulty.land());
        snapshot(&mut coordinator, "one").expect("a late copy of its own claim changes nothing");
        let epochs = block_on(storage.list(Folder::Epochs)).expect("listed");
        assert_eq!(epochs.len(), 2);
    }
}

#[test]
fn a_lasting_doubt_blocks_everything_until_the_same_commit_is_called_again() {
    let faulty = Faulty::new();
    let mut coordinator = claim_hasty(&job_on(&faulty), 1);
    let one = trigger(&mut coordinator);
    let two = trigger(&mut coordinator);
    faulty.plan(Fault::PutStall, "snapshots/", 3);
    let error = commit(&mut coordinator, &one, "one").expect_err("no answer");
    assert_eq!(error.kind(), ErrorKind::InDoubt);
    assert_eq!(coordinator.in_doubt(), Some(one.id));
    assert_eq!(kind(coordinator.abort(one.id)), ErrorKind::InDoubt);
    assert_eq!(kind(coordinator.next_attempt()), ErrorKind::InDoubt);
    assert_eq!(
        kind(commit(&mut coordinator, &two, "two")),
        ErrorKind::InDoubt
    );
    assert!(coordinator.confirmed().is_empty(), "nothing is confirmed");

    block_on(faulty.land());
    let settle = coordinator.commit(one.id, Vec::new(), Bytes::from_static(b"not looked at"));
    let confirmed = block_on(settle).expect("it landed");
    assert_eq!(
        confirmed.snapshot.engine(),
        "one",
        "the bytes of the first call"
    );
    assert_eq!(coordinator.in_doubt(), None);
    commit(&mut coordinator, &two, "two").expect("the way is free");
}

#[test]
fn a_look_that_fails_leaves_the_commit_in_doubt_and_confirms_nothing() {
    let faulty = Faulty::new();
    let storage = job_on(&faulty);
    let mut first = claim_hasty(&storage, 1);
    let one = trigger(&mut first);
    faulty.plan(Fault::Read, "epochs/", 3);
    assert_eq!(kind(commit(&mut first, &one, "one")), ErrorKind::InDoubt);
    assert!(first.confirmed().is_empty());
    let second = claim_hasty(&storage, 2);
    assert_eq!(
        second.adopted().engine(),
        "one",
        "it was put, so it is adopted"
    );
    let settled = commit(&mut first, &one, "one");
    assert_eq!(kind(settled), ErrorKind::Fenced, "the look is done again");
}

#[test]
fn a_commit_that_is_dropped_half_way_goes_on_at_the_next_call() {
    let faulty = Faulty::new();
    let mut coordinator = claim_hasty(&job_on(&faulty), 1);
    let one = trigger(&mut coordinator);
    faulty.plan(Fault::PutStall, "snapshots/", 1);
    {
        let future = coordinator.commit(one.id, acks(&one, 2), "one".into());
        futures::pin_mut!(future);
        let waker = futures::task::noop_waker();
        let mut context = std::task::Context::from_waker(&waker);
        assert!(future.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(coordinator.in_doubt(), Some(one.id));
    let confirmed = commit(&mut coordinator, &one, "other").expect("settled");
    assert_eq!(confirmed.snapshot.engine(), "one");
}

#[test]
fn small_state_that_cannot_be_stored_leaves_the_snapshot_pending() {
    let faulty = Faulty::new();
    let mut coordinator = claim(&job_on(&faulty), 1);
    let one = trigger(&mut coordinator);
    let tasks = 8_200;
    let acks: Vec<_> = (0..tasks)
        .map(|task| {
            let range = HashRange::of_task(task, tasks);
            let segment = inline(vec![task as u8; 8 << 10], range);
            ack(&one, part("count", task, tasks, vec![segment]))
        })
        .collect();
    faulty.plan(Fault::PutBefore, "parts/", 3);
    let failed = block_on(coordinator.commit(one.id, acks.clone(), Bytes::new()));
    assert_eq!(kind(failed), ErrorKind::Transient);
    assert_eq!(coordinator.in_doubt(), None);
    let confirmed = block_on(coordinator.commit(one.id, acks, Bytes::new())).expect("room");
    let manifest = confirmed.snapshot.manifest();
    let packed = &manifest.parts[8_193].task.segments[0].meta;
    let SegmentLocation::Packed { offset, .. } = packed.location else {
        panic!("beyond 64 MiB small state is packed");
    };
    let object = packed.location.object().expect("an object");
    let range = offset..offset + packed.bytes;
    let bytes = block_on(confirmed.snapshot.source().get_range(&object, range)).expect("stored");
    assert_eq!(Digest::of(&bytes), packed.digest);
    assert_eq!(manifest.objects().len(), 1);
    let first = &manifest.parts[0].task.segments[0].meta.location;
    assert!(matches!(first, SegmentLocation::Inline(_)));
}

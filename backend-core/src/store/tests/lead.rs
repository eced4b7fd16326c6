//! Claims, adoption and fencing.

use super::*;
use crate::manifest::{Condemn, Position, SnapshotKind};
use crate::names::{Folder, ObjectName};

#[test]
fn a_new_jobs_first_coordinator_adopts_nothing() {
    let storage = Storage::memory();
    let coordinator = claim(&storage, 1);
    assert_eq!(
        (coordinator.epoch(), coordinator.attempt()),
        (Epoch(1), FIRST_ATTEMPT)
    );
    let adopted = coordinator.adopted();
    assert!(adopted.is_empty());
    assert_eq!(
        (adopted.id(), adopted.kind()),
        (SnapshotId(1), SnapshotKind::Aligned)
    );
    assert_eq!(adopted.manifest().meta.parent, None);
    let stored = block_on(open(&storage, 2).latest()).expect("readable");
    assert_eq!(stored.expect("it is there").digest(), adopted.digest());
}

#[test]
fn the_second_coordinator_adopts_and_the_first_learns_it_at_its_next_commit() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("new/job");
    let storage = Storage::local(&root).expect("created");
    let mut first = claim(&storage, 1);
    let confirmed = snapshot(&mut first, "one").expect("it leads");

    let again = Storage::local(&root).expect("opened");
    let mut second = claim(&again, 2);
    assert_eq!(second.epoch(), Epoch(2));
    let adopted = second.adopted().clone();
    assert_eq!(adopted.engine(), "one");
    assert_eq!(adopted.id(), confirmed.snapshot.id().next());
    assert_eq!(
        adopted.manifest().parts,
        confirmed.snapshot.manifest().parts
    );
    let parent = adopted.manifest().meta.parent.expect("it has one");
    assert_eq!(parent.digest, confirmed.snapshot.digest());

    let error = snapshot(&mut first, "two").expect_err("it was overtaken");
    assert_eq!(
        (error.kind(), error.fact("fenced_by")),
        (ErrorKind::Fenced, Some("2"))
    );
    assert_eq!(first.confirmed().engine(), "one");
    assert_eq!(kind(first.trigger(SnapshotMode::Full)), ErrorKind::Fenced);
    assert_eq!(kind(first.next_attempt()), ErrorKind::Fenced);

    // What the first one put without confirming it does not count.
    let latest = block_on(open(&again, 3).latest()).expect("readable");
    assert_eq!(latest.expect("there is one").digest(), adopted.digest());
    let permit = snapshot(&mut second, "three").expect("it leads").permit;
    assert_eq!(permit.position(), Position::new(Epoch(2), SnapshotId(4)));
}

#[test]
fn ids_grow_over_epochs_and_the_list_is_in_order() {
    let storage = Storage::memory();
    for seed in 1..=3 {
        let mut coordinator = claim(&storage, seed);
        snapshot(&mut coordinator, "x").expect("it leads");
    }
    let list = block_on(open(&storage, 9).list()).expect("readable");
    let ids: Vec<_> = list.iter().map(|s| s.position.id.0).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6]);
    let epochs: Vec<_> = list.iter().map(|s| s.position.epoch.0).collect();
    assert_eq!(epochs, [1, 1, 2, 2, 3, 3]);
    for pair in list.windows(2) {
        let parent = pair[1].parent.expect("all but the first have one");
        assert_eq!(
            (parent.position, parent.digest),
            (pair[0].position, pair[0].digest)
        );
    }
    let newest = list.last().expect("six");
    let loaded = block_on(open(&storage, 9).load(Epoch(3), SnapshotId(6))).expect("readable");
    assert_eq!((loaded.digest(), newest.tasks), (newest.digest, 2));
}

#[test]
fn a_put_of_a_fenced_leader_that_lands_late_is_never_picked() {
    let faulty = faulty::Faulty::new();
    let storage = Storage::new(faulty.clone(), "jobs/words");
    let mut first = claim_hasty(&storage, 1);
    snapshot(&mut first, "one").expect("it leads");
    faulty.plan(faulty::Fault::PutStall, "snapshots/", 3);
    assert_eq!(kind(snapshot(&mut first, "late")), ErrorKind::InDoubt);

    let second = claim(&storage, 2);
    block_on(faulty.land());
    let listed = block_on(storage.list(Folder::Snapshots)).expect("listed");
    assert_eq!(listed.len(), 4, "the late one is there");
    let third = claim(&storage, 3);
    let parent = third.adopted().manifest().meta.parent.expect("it has one");
    assert_eq!(parent.digest, second.adopted().digest());
    assert_eq!(third.adopted().engine(), "one");
    assert!(third.adopted().id() > SnapshotId(3));
}

#[test]
fn condemned_snapshots_are_neither_adopted_nor_listed() {
    let storage = Storage::memory();
    let mut first = claim(&storage, 1);
    snapshot(&mut first, "two").expect("it leads");
    snapshot(&mut first, "three").expect("it leads");
    let at = |id| Position::new(Epoch(1), SnapshotId(id));
    let record = Condemn {
        job: job(),
        epoch: Epoch(1),
        index: 0,
        unique: UniqueId(4),
        below: at(4),
        except: [at(2)].into(),
    };
    let name = ObjectName::Collect(Epoch(1), 0);
    block_on(storage.create(&name, record.encode().expect("valid"))).expect("created");
    let store = open(&storage, 2);
    assert_eq!(block_on(store.list()).expect("readable").len(), 1);
    let second = block_on(store.claim()).expect("free");
    assert_eq!(second.adopted().engine(), "two");
    assert_eq!(
        second.adopted().id(),
        SnapshotId(4),
        "condemned ids are spent"
    );
}

#[test]
fn a_savepoint_is_adopted_as_the_jobs_own() {
    let storage = Storage::memory();
    let mut first = claim(&storage, 1);
    let trigger = first.trigger(SnapshotMode::Savepoint).expect("it leads");
    let confirmed = commit(&mut first, &trigger, "saved").expect("it leads");
    assert_eq!(confirmed.snapshot.kind(), SnapshotKind::Savepoint);
    let plan = confirmed.snapshot.restore_plan(&operator("count"), 3);
    assert_eq!(plan.expect("known").len(), 3);
    let second = claim(&storage, 2);
    assert_eq!(second.adopted().engine(), "saved");
    assert_eq!(second.adopted().kind(), SnapshotKind::Aligned);
}

#[test]
fn stores_that_lie_are_refused_with_what_they_did() {
    let refused = |fault| {
        let faulty = faulty::Faulty::new();
        faulty.plan(fault, "probe", 2);
        let storage = Storage::new(faulty.clone(), "job");
        let error = block_on(SnapshotStore::open(storage, job(), env(1))).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        error.message()
    };
    assert_eq!(
        refused(faulty::Fault::Replace),
        "the store replaced an object that was to be created only"
    );
    assert_eq!(
        refused(faulty::Fault::HideList),
        "the store does not list what it has created"
    );
    assert_eq!(
        refused(faulty::Fault::Invent),
        "the store finds an object that nobody created"
    );
    // It replaces an object only when several create it at once.
    let hasty = faulty::Faulty::new();
    hasty.look_then_put();
    let storage = Storage::new(hasty, "job");
    let error = block_on(SnapshotStore::open(storage, job(), env(1))).expect_err("refused");
    assert_eq!(
        error.message(),
        "the store let several requests create the same object"
    );
    let storage = Storage::memory();
    open(&storage, 1);
    let left = block_on(storage.list(Folder::Probe)).expect("listed");
    assert!(left.is_empty(), "the probe removes what it wrote");
}

#[test]
fn the_time_to_live_clock_stays_where_clocks_differ_and_not_where_one_was_wrong() {
    let storage = Storage::memory();
    let clock = Arc::new(ManualEnvironment::new(5_000, 1));
    let store = block_on(SnapshotStore::open(storage, job(), clock.clone())).expect("opened");
    let mut coordinator = block_on(store.claim()).expect("free");
    clock.set_ms(9_000);
    let first = trigger(&mut coordinator);
    clock.set_ms(12_000);
    let confirmed = commit(&mut coordinator, &first, "")
        .expect("it leads")
        .snapshot;
    let meta = &confirmed.manifest().meta;
    assert_eq!(
        (meta.ttl_clock_ms, meta.created_ms),
        (9_000, 12_000),
        "the clock of the trigger"
    );
    clock.set_ms(1_000);
    let back = snapshot(&mut coordinator, "").expect("it leads").snapshot;
    assert_eq!(back.manifest().meta.ttl_clock_ms, 9_000);
    // A machine whose clock was a year ahead, and is right again.
    let (now, year) = (1_000_000, 31_536_000_000);
    for (clock_ms, expected) in [(now + year, now + year), (now, now), (now - 1, now)] {
        clock.set_ms(clock_ms);
        let next = snapshot(&mut coordinator, "").expect("it leads").snapshot;
        assert_eq!(next.manifest().meta.ttl_clock_ms, expected);
    }
}

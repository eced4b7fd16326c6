//! Collections that are stopped, limited, tried out, or run by somebody who leads no more.

use std::num::{NonZeroU32, NonZeroUsize};

use super::collect::{at, collect, commit_of, extend, last, manifests, segments, stored};
use super::faulty::{Fault, Faulty};
use super::*;
use crate::manifest::Condemn;
use crate::names::{Folder, ObjectName};
use crate::store::{CollectOptions, CollectReport};

#[test]
fn orphans_of_crashed_and_fenced_writers_are_swept() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = Storage::local(directory.path()).expect("created");
    let mut first = claim(&storage, 1);
    let two = extend(&mut first, &storage, &[]);
    let crashed = trigger(&mut first);
    stored(&storage, &crashed);
    let staged = segment(1, 3, 7, HashRange::ALL).meta.location.object();
    let staged = staged.expect("an object").to_string() + "#4";
    std::fs::write(directory.path().join(staged), "half").expect("written");

    let mut second = claim(&storage, 2);
    let zombie = trigger(&mut first);
    let report = collect(&mut second, &last(1)).expect("it leads");
    assert_eq!(
        (report.objects, report.bytes > 4),
        (2, true),
        "the orphan and the half one"
    );
    assert_eq!(segments(&storage), [2]);
    assert_eq!(
        std::fs::read_dir(directory.path().join("segments"))
            .expect("there")
            .count(),
        1
    );

    // A zombie writes on, is refused, and its segment goes, too.
    let late = stored(&storage, &zombie);
    let refused = commit_of(&mut first, &zombie, &[two.clone(), late]);
    assert_eq!(kind(refused), ErrorKind::Fenced);
    extend(&mut second, &storage, &[two]);
    collect(&mut second, &last(1)).expect("it leads");
    assert_eq!(segments(&storage), [2, 4]);
    assert_eq!(
        manifests(&storage),
        [4],
        "the zombie's manifest is condemned by rule"
    );
}

#[test]
fn g12_a_fenced_coordinator_deletes_nothing() {
    let storage = Storage::memory();
    let mut first = claim(&storage, 1);
    extend(&mut first, &storage, &[]);
    extend(&mut first, &storage, &[]);
    let mut woken = first
        .collection(&last(1), CollectOptions::default())
        .expect("it leads");
    let second = claim(&storage, 2);
    let error = block_on(woken.run()).expect_err("it was overtaken");
    assert_eq!(
        (error.kind(), error.fact("fenced_by")),
        (ErrorKind::Fenced, Some("2"))
    );
    assert_eq!(
        (manifests(&storage), segments(&storage)),
        (vec![1, 2, 3, 4], vec![2, 3])
    );
    // It has not even said what it would delete, which would narrow what its successor keeps.
    let records = block_on(storage.list(Folder::Collect)).expect("listed");
    assert_eq!(records.len(), 0);
    let third = claim(&storage, 3);
    let parent = third.adopted().manifest().meta.parent.expect("it has one");
    assert_eq!(parent.position, second.adopted().position());
}

#[test]
fn a_zombie_that_wakes_after_a_collection_confirms_nothing() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "jobs/words");
    let mut first = claim_hasty(&storage, 1);
    let two = extend(&mut first, &storage, &[]);
    let late = trigger(&mut first);
    faulty.plan(Fault::PutStall, "snapshots/", 3);
    let put = commit_of(&mut first, &late, &[two.clone(), stored(&storage, &late)]);
    assert_eq!(kind(put), ErrorKind::InDoubt);
    let doubtful = first.collection(&last(1), CollectOptions::default());
    assert_eq!(
        kind(doubtful),
        ErrorKind::InDoubt,
        "nothing is collected while in doubt"
    );

    let mut second = claim(&storage, 2);
    let four = extend(&mut second, &storage, &[two]);
    extend(&mut second, &storage, &[four]);
    collect(&mut second, &last(1)).expect("it leads");
    block_on(faulty.land());
    assert_eq!(manifests(&storage), [3, 5], "the late one has landed");
    assert_eq!(kind(commit_of(&mut first, &late, &[])), ErrorKind::Fenced);
    let third = claim(&storage, 3);
    let parent = third.adopted().manifest().meta.parent.expect("it has one");
    assert_eq!(parent.position, at(2, 5));
}

#[test]
fn a_dry_run_says_what_a_run_does_and_changes_nothing() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    extend(&mut leader, &storage, &[]);
    extend(&mut leader, &storage, &[]);
    let (puts, deletes) = (storage.requests().puts, storage.requests().deletes);
    let plan = leader.collection(&last(1), CollectOptions::default());
    let planned = block_on(plan.expect("it leads").dry_run()).expect("readable");
    let requests = storage.requests();
    assert_eq!((requests.puts, requests.deletes), (puts, deletes));
    let offline = block_on(open(&storage, 2).plan_collection(&last(1))).expect("readable");
    assert_eq!(offline.as_ref(), Some(&planned));
    let said = planned.to_string();
    assert!(
        said.contains("would delete 2 manifests and 1 objects"),
        "{said}"
    );
    let done = collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(
        CollectReport {
            is_dry: true,
            ..done
        },
        planned
    );
}

#[test]
fn a_collection_that_is_limited_or_fails_is_ended_by_the_next() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "job");
    let mut leader = claim_hasty(&storage, 1);
    for _ in 0..6 {
        extend(&mut leader, &storage, &[]);
    }
    let options = CollectOptions {
        batch: NonZeroUsize::new(2).expect("above 0"),
        deletes_per_s: NonZeroU32::new(1_000),
        deletes_max: Some(3),
    };
    let mut limited = leader.collection(&last(1), options).expect("it leads");
    let report = block_on(limited.run()).expect("it leads");
    assert_eq!(
        (report.manifests, report.objects, report.is_complete),
        (3, 0, false)
    );
    assert_eq!(manifests(&storage).len(), 4);
    for (fault, folder) in [
        (Fault::List, "snapshots"),
        (Fault::Read, "snapshots/"),
        (Fault::List, "collect"),
        (Fault::Read, "collect/"),
        (Fault::List, "pins"),
        (Fault::Read, "epochs/"),
        (Fault::Delete, ""),
        (Fault::List, "segments"),
    ] {
        // There is something new to read. A read that fails is followed by a look, which fails, too.
        extend(&mut leader, &storage, &[]);
        faulty.plan(fault, folder, 24);
        let outcome = collect(&mut leader, &last(1)).map_err(|e| e.kind());
        assert!(
            matches!(outcome, Err(ErrorKind::Transient | ErrorKind::InDoubt)),
            "{fault:?} in {folder}: {outcome:?}"
        );
        faulty.forget();
    }
    collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(
        (manifests(&storage), segments(&storage)),
        (vec![15], vec![15])
    );
}

#[test]
fn a_collection_fails_closed_where_it_cannot_read() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    let two = extend(&mut leader, &storage, &[]);
    extend(&mut leader, &storage, &[two]);
    let bad = ObjectName::Pin(UniqueId(5));
    block_on(storage.create(&bad, Bytes::from_static(b"no pin"))).expect("created");
    assert_eq!(kind(collect(&mut leader, &last(1))), ErrorKind::Corrupt);
    block_on(storage.delete(&bad)).expect("deleted");
    assert_eq!(manifests(&storage), [1, 2, 3]);
    block_on(storage.delete(&at(1, 3).object())).expect("deleted");
    let error = collect(&mut leader, &last(1)).expect_err("the last snapshot is gone");
    assert_eq!(
        (error.kind(), manifests(&storage)),
        (ErrorKind::NotFound, vec![1, 2])
    );
}

#[test]
fn a_collection_that_a_later_one_overtook_says_so() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "");
    let mut leader = claim_hasty(&storage, 1);
    for _ in 0..3 {
        extend(&mut leader, &storage, &[]);
    }
    let mut slow = leader
        .collection(&last(2), CollectOptions::default())
        .expect("it leads");
    let mut slower = leader
        .collection(&last(3), CollectOptions::default())
        .expect("it leads");
    faulty.plan(Fault::List, "segments", 1);
    assert_eq!(kind(block_on(slow.run())), ErrorKind::Transient);
    faulty.plan(Fault::List, "pins", 3);
    assert_eq!(kind(block_on(slower.run())), ErrorKind::Transient);
    extend(&mut leader, &storage, &[]);
    collect(&mut leader, &last(1)).expect("it leads");
    assert_eq!(manifests(&storage), [5]);
    assert_eq!(kind(block_on(slow.run())), ErrorKind::Declined);
    assert_eq!(kind(block_on(slower.run())), ErrorKind::Declined);
    assert_eq!(segments(&storage), [5]);
}

#[test]
fn a_base_that_a_successor_has_collected_is_no_loss() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "");
    let mut first = claim(&storage, 1);
    extend(&mut first, &storage, &[]);
    // Just before the second coordinator reads its base a third one has claimed and collected.
    let base = at(1, 2).object();
    faulty.vanish(base.to_string(), base);
    let third = ObjectName::Epoch(Epoch(3));
    faulty.arrive(base.to_string(), third, Bytes::from_static(b"claimed"));
    let error = block_on(open(&storage, 2).claim()).expect_err("it was overtaken");
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");

    // Without a successor it is a loss.
    let storage = Storage::new(faulty.clone(), "");
    let lost = at(1, 1).object();
    faulty.vanish(lost.to_string(), lost);
    let error = block_on(open(&storage, 3).load(Epoch(1), SnapshotId(1)));
    assert_eq!(kind(error), ErrorKind::NotFound);
}

#[test]
fn a_listing_passes_over_what_is_collected_meanwhile() {
    let faulty = Faulty::new();
    let storage = Storage::new(faulty.clone(), "");
    let mut leader = claim(&storage, 1);
    extend(&mut leader, &storage, &[]);
    let gone = at(1, 1).object();
    faulty.vanish(gone.to_string(), gone);
    let lost = block_on(open(&storage, 2).list());
    assert_eq!(kind(lost), ErrorKind::NotFound, "nobody has condemned it");
    extend(&mut leader, &storage, &[]);
    let record = Condemn {
        job: job(),
        epoch: Epoch(1),
        index: 0,
        unique: UniqueId(4),
        below: at(1, 3),
        except: [].into(),
    };
    let read = at(1, 2).object();
    faulty.vanish(read.to_string(), read);
    let name = ObjectName::Collect(Epoch(1), 0);
    faulty.arrive(read.to_string(), name, record.encode().expect("valid"));
    let listed = block_on(open(&storage, 2).list()).expect("readable");
    let ids: Vec<_> = listed.iter().map(|s| s.position.id.0).collect();
    assert_eq!(ids, [3]);
}

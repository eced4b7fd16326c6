use super::*;
use crate::ids::{Attempt, Digest, Epoch, TaskIndex, UniqueId};
use crate::names::SegmentName;
use crate::range::HashRange;
use crate::segment::{SegmentLocation, SegmentMeta, Tier};

/// A segment of the changes after `delta.newer_than` up to `upto`.
fn segment(id: u64, delta: &Delta, upto: Generation) -> SegmentRef {
    let name = SegmentName {
        epoch: Epoch(1),
        snapshot: SnapshotId(id),
        task: TaskIndex(0),
        index: 0,
        unique: UniqueId(u128::from(id)),
    };
    let meta = SegmentMeta {
        location: SegmentLocation::Object(name),
        bytes: 100_000,
        digest: Digest::of(&[]),
        puts: 1,
        deletes: 0,
        delete_prefixes: 0,
        shadowed_bytes: 0,
        generations: (delta.newer_than.unwrap_or_default().next(), upto),
        shards: (0, 255),
        expires_ms_min: None,
        regions: Vec::new(),
    };
    let tier = if delta.newer_than.is_none() {
        Tier::BASE
    } else {
        Tier::default()
    };
    SegmentRef {
        meta: meta.into(),
        clip: HashRange::ALL,
        tier,
        run: delta.run,
    }
}

/// The snapshot ids in the names of `refs`.
fn ids(refs: &[SegmentRef]) -> Vec<u64> {
    let id = |segment: &SegmentRef| match &segment.meta.location {
        SegmentLocation::Object(name) => name.snapshot.0,
        _ => panic!("only objects here"),
    };
    refs.iter().map(id).collect()
}

/// A lineage whose snapshot 1, full, is durable: generation 1 is covered.
fn started() -> Lineage {
    let lineage = Lineage::empty(ChainPolicy::default());
    let frozen = lineage.freeze(Generation(1), &trigger(1, None, SnapshotMode::Incremental));
    let delta = frozen.start_write();
    assert_eq!(delta.newer_than, None, "the first snapshot is full");
    let written = segment(1, &delta, Generation(1));
    frozen.complete(&delta, &[written]);
    assert_eq!(lineage.covered(), Generation(1));
    lineage
}

fn freeze(lineage: &Lineage, generation: u32) -> FrozenGeneration {
    let trigger = trigger(generation, None, SnapshotMode::Incremental);
    lineage.freeze(Generation(generation), &trigger)
}

/// Freezes for a snapshot whose last confirmed one is `base`.
fn freeze_above(lineage: &Lineage, base: u64, generation: u32) -> FrozenGeneration {
    let trigger = trigger(generation, Some(base), SnapshotMode::Incremental);
    lineage.freeze(Generation(generation), &trigger)
}

/// Snapshots here have the number of the generation that they freeze.
fn trigger(generation: u32, base: Option<u64>, mode: SnapshotMode) -> Trigger {
    Trigger {
        epoch: Epoch(1),
        id: SnapshotId(u64::from(generation)),
        base: base.map(SnapshotId),
        attempt: Attempt(0),
        mode,
    }
}

#[test]
fn increments_build_on_what_is_durable() {
    let lineage = started();
    for id in 2..5 {
        let frozen = freeze(&lineage, id);
        let delta = frozen.start_write();
        assert_eq!(delta.newer_than, Some(Generation(id - 1)));
        assert_eq!(ids(&delta.base), (1..u64::from(id)).collect::<Vec<_>>());
        let written = segment(u64::from(id), &delta, Generation(id));
        frozen.complete(&delta, &[written]);
    }
    assert_eq!(ids(lineage.chain().refs()), [1, 2, 3, 4]);
}

#[test]
fn failed_snapshot_makes_the_next_increment_wider() {
    let lineage = started();
    drop(freeze(&lineage, 2));
    let frozen = freeze(&lineage, 3);
    assert_eq!(frozen.start_write().newer_than, Some(Generation(1)));
}

#[test]
fn overlapping_snapshots_do_not_wait_and_the_wider_one_stays() {
    let lineage = started();
    let (second, third) = (freeze(&lineage, 2), freeze(&lineage, 3));
    let delta_2 = second.start_write();
    let delta_3 = third.start_write();
    assert_eq!(
        delta_3.newer_than,
        Some(Generation(1)),
        "2 is not durable yet"
    );
    let written = segment(2, &delta_2, Generation(2));
    second.complete(&delta_2, &[written]);
    let written = segment(3, &delta_3, Generation(3));
    third.complete(&delta_3, &[written]);
    assert_eq!(
        ids(lineage.chain().refs()),
        [1, 3],
        "3 holds all changes of 2"
    );
    assert_eq!(lineage.covered(), Generation(3));
}

#[test]
fn older_snapshot_that_ends_last_changes_nothing() {
    let lineage = started();
    let (second, third) = (freeze(&lineage, 2), freeze(&lineage, 3));
    let delta_2 = second.start_write();
    let delta_3 = third.start_write();
    let written = segment(3, &delta_3, Generation(3));
    third.complete(&delta_3, &[written]);
    let written = segment(2, &delta_2, Generation(2));
    second.complete(&delta_2, &[written]);
    assert_eq!(ids(lineage.chain().refs()), [1, 3]);
    assert_eq!(lineage.covered(), Generation(3));
}

#[test]
fn write_that_begins_late_does_not_see_a_younger_generation() {
    let lineage = started();
    let (second, third) = (freeze(&lineage, 2), freeze(&lineage, 3));
    let delta_3 = third.start_write();
    let written = segment(3, &delta_3, Generation(3));
    third.complete(&delta_3, &[written]);
    let delta_2 = second.start_write();
    assert_eq!(delta_2.newer_than, Some(Generation(1)));
    assert_eq!(ids(&delta_2.base), [1], "3 is newer than what 2 shows");
}

#[test]
fn full_snapshot_replaces_the_chain() {
    let lineage = started();
    let frozen = lineage.freeze(Generation(2), &trigger(2, None, SnapshotMode::Full));
    let delta = frozen.start_write();
    assert_eq!((delta.newer_than, delta.base.len()), (None, 0));
    let written = segment(2, &delta, Generation(2));
    frozen.complete(&delta, &[written]);
    assert_eq!(ids(lineage.chain().refs()), [2]);
}

#[test]
fn savepoint_is_full_and_nothing_builds_on_it() {
    let lineage = started();
    let frozen = lineage.freeze(Generation(2), &trigger(2, None, SnapshotMode::Savepoint));
    let delta = frozen.start_write();
    assert_eq!((delta.newer_than, delta.base.len()), (None, 0));
    let written = segment(2, &delta, Generation(2));
    frozen.complete(&delta, &[written]);
    let delta = freeze(&lineage, 3).start_write();
    assert_eq!(
        (delta.newer_than, ids(&delta.base)),
        (Some(Generation(1)), vec![1])
    );
}

#[test]
fn pending_generations_hold_the_anchor_until_they_end() {
    let lineage = started();
    let anchor = |generation| lineage.write_context(Generation(generation), true).anchor;
    let second = freeze(&lineage, 2);
    let third = freeze(&lineage, 3);
    assert_eq!(anchor(4), Generation(3));
    drop(third);
    assert_eq!(anchor(4), Generation(2));
    drop(second);
    assert_eq!(anchor(4), Generation(1), "only what is covered is left");
}

/// A lineage of a base and 16 runs, whose chain is due for a merge of `fanout` of them.
fn due_for_a_merge_of(fanout: u32) -> Lineage {
    let policy = ChainPolicy {
        fanout,
        dead_percent_max: 10_000,
        ..ChainPolicy::default()
    };
    let lineage = Lineage::empty(policy);
    for id in 1..=17 {
        let frozen = freeze(&lineage, id);
        let delta = frozen.start_write();
        let written = segment(u64::from(id), &delta, Generation(id));
        frozen.complete(&delta, &[written]);
    }
    lineage
}

fn due_for_a_merge() -> Lineage {
    due_for_a_merge_of(16)
}

fn merged(claim: &MergeClaim, from: SnapshotId) -> SegmentRef {
    let plan = claim.plan();
    let delta = Delta {
        newer_than: None,
        base: Vec::new(),
        run: claim.run(),
    };
    let mut output = segment(from.0, &delta, plan.generations.1);
    let meta = SegmentMeta {
        generations: plan.generations,
        ..(*output.meta).clone()
    };
    output.meta = meta.into();
    output.tier = plan.tier;
    output
}

#[test]
fn merge_output_enters_the_first_snapshot_that_may_refer_to_it() {
    let lineage = due_for_a_merge();
    let claim = lineage.claim_merge(HashRange::ALL).expect("a merge is due");
    assert!(
        lineage.claim_merge(HashRange::ALL).is_none(),
        "one merge at a time"
    );
    let from = SnapshotId(claim.output_id().0 + 1);
    assert_eq!(from, SnapshotId(19));
    assert_eq!(
        claim.stage(vec![merged(&claim, from)], from),
        MergeOutcome::Staged
    );
    drop(claim);
    let delta = freeze(&lineage, 18).start_write();
    assert_eq!(
        ids(&delta.base),
        (1..=17).collect::<Vec<_>>(),
        "18 may not refer to 19's file"
    );
    let delta = freeze(&lineage, 19).start_write();
    assert_eq!(ids(&delta.base), [1, 19]);
}

#[test]
fn merge_that_misses_its_snapshot_is_too_late() {
    let lineage = due_for_a_merge();
    let claim = lineage.claim_merge(HashRange::ALL).expect("a merge is due");
    let from = claim.output_id();
    drop(freeze(&lineage, 18).start_write());
    assert_eq!(
        claim.stage(vec![merged(&claim, from)], from),
        MergeOutcome::TooLate
    );
    assert_eq!(
        claim.output_id(),
        SnapshotId(20),
        "the next try leaves more time"
    );
    drop(claim);
    assert!(
        lineage.claim_merge(HashRange::ALL).is_some(),
        "it can be tried again"
    );
}

#[test]
fn staged_merge_whose_inputs_are_gone_is_forgotten() {
    let lineage = due_for_a_merge();
    let claim = lineage.claim_merge(HashRange::ALL).expect("a merge is due");
    let from = SnapshotId(claim.output_id().0 + 1);
    assert_eq!(
        claim.stage(vec![merged(&claim, from)], from),
        MergeOutcome::Staged
    );
    drop(claim);
    let frozen = lineage.freeze(Generation(18), &trigger(18, None, SnapshotMode::Full));
    let delta = frozen.start_write();
    let written = segment(18, &delta, Generation(18));
    frozen.complete(&delta, &[written]);
    let delta = freeze(&lineage, 19).start_write();
    assert_eq!(ids(&delta.base), [18], "the full snapshot stands alone");
}

#[test]
fn merge_behind_one_that_waits_does_not_enter_before_it() {
    let lineage = due_for_a_merge_of(8);
    let first = lineage
        .claim_merge(HashRange::ALL)
        .expect("eight runs are due");
    let from = SnapshotId(21);
    assert_eq!(
        first.stage(vec![merged(&first, from)], from),
        MergeOutcome::Staged
    );
    drop(first);
    let second = lineage
        .claim_merge(HashRange::ALL)
        .expect("eight more are due");
    assert_eq!(
        second.output_id(),
        SnapshotId(21),
        "not 18, which would come and go without it"
    );
}

#[test]
fn chain_that_the_base_does_not_hold_is_not_referred_to() {
    let lineage = started();
    let complete = |frozen: FrozenGeneration, delta: &Delta, id: u32| {
        let written = segment(u64::from(id), delta, Generation(id));
        frozen.complete(delta, &[written]);
    };
    let (second, third) = (freeze_above(&lineage, 1, 2), freeze_above(&lineage, 1, 3));
    let (delta_2, delta_3) = (second.start_write(), third.start_write());
    complete(second, &delta_2, 2);
    let fourth = freeze_above(&lineage, 1, 4);
    let delta_4 = fourth.start_write();
    assert_eq!(ids(&delta_4.base), [1, 2]);
    complete(fourth, &delta_4, 4);
    complete(third, &delta_3, 3);
    assert_eq!(ids(lineage.chain().refs()), [1, 2, 4]);

    // 3 is confirmed, and its part is 1 and 3: nothing holds 2's segment.
    let fifth = freeze_above(&lineage, 3, 5);
    assert_eq!(fifth.newer_than(), None, "the freeze keeps all pages");
    let delta_5 = fifth.start_write();
    assert_eq!((delta_5.newer_than, delta_5.base.len()), (None, 0));
    drop(fifth);

    // 4 is confirmed, and its part holds 2's segment.
    let delta_6 = freeze_above(&lineage, 4, 6).start_write();
    assert_eq!(ids(&delta_6.base), [1, 2, 4]);
}

#[test]
fn write_that_begins_late_does_not_refer_to_a_later_merge() {
    let lineage = due_for_a_merge();
    let claim = lineage.claim_merge(HashRange::ALL).expect("a merge is due");
    let from = SnapshotId(19);
    claim.stage(vec![merged(&claim, from)], from);
    let (earlier, later) = (
        freeze_above(&lineage, 17, 18),
        freeze_above(&lineage, 17, 19),
    );
    assert_eq!(ids(&later.start_write().base), [1, 19]);
    assert_eq!(
        ids(&earlier.start_write().base),
        (1..=17).collect::<Vec<_>>(),
        "18 may not refer to 19's file"
    );
}

#[test]
fn base_that_is_not_known_costs_a_full_snapshot() {
    let lineage = started();
    assert_eq!(freeze_above(&lineage, 7, 8).newer_than(), None);
}

#[test]
fn parts_do_not_pile_up_while_nothing_is_confirmed() {
    let lineage = started();
    for id in 2..200 {
        let frozen = freeze_above(&lineage, 1, id);
        let delta = frozen.start_write();
        assert!(delta.newer_than.is_some(), "1 is still known as the base");
        let written = segment(u64::from(id), &delta, Generation(id));
        frozen.complete(&delta, &[written]);
    }
    assert!(lineage.state.lock().parts.len() <= 64);
}

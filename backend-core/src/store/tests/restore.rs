//! Who restores what.

use super::*;
use crate::contract::TaskRestore;
use crate::store::Snapshot;

/// A confirmed snapshot of one operator, whose tasks have two segments each.
fn snapshot_of(parallelism: u32) -> Snapshot {
    let mut coordinator = claim(&Storage::memory(), 1);
    let trigger = trigger(&mut coordinator);
    let mut acks = acks(&trigger, parallelism);
    for ack in &mut acks {
        let segment = inline("small", ack.part.range);
        ack.part.segments.push(segment);
    }
    block_on(coordinator.commit(trigger.id, acks, Bytes::new()))
        .expect("it leads")
        .snapshot
}

/// The ranges that the plan reads, of segment number `index` of each part.
fn read_ranges(plan: &[TaskRestore], index: usize) -> Vec<HashRange> {
    let mut ranges: Vec<_> = plan
        .iter()
        .flat_map(|task| &task.parts)
        .filter_map(|part| part.segments.get(index))
        .map(|segment| segment.clip)
        .collect();
    ranges.sort_unstable();
    ranges
}

fn assert_covered_once(ranges: &[HashRange]) {
    assert_eq!(ranges.first().map(|r| r.first()), Some(0));
    assert_eq!(ranges.last().map(|r| r.last()), Some(u64::MAX));
    for pair in ranges.windows(2) {
        assert_eq!(pair[0].last().checked_add(1), Some(pair[1].first()));
    }
}

#[test]
fn r1_r2_r4_every_hash_is_restored_once_at_any_parallelism() {
    for (old, new) in [(4, 2), (2, 4), (2, 2), (15, 77), (77, 15), (3, 1_000)] {
        let snapshot = snapshot_of(old);
        let plan = snapshot
            .restore_plan(&operator("count"), new)
            .expect("known");
        assert_eq!(plan.len(), new as usize);
        for index in [0, 1] {
            assert_covered_once(&read_ranges(&plan, index));
        }
        for (task, restore) in plan.iter().enumerate() {
            assert_eq!(
                restore.range,
                HashRange::of_task(task as u32, new),
                "{old} -> {new}"
            );
            assert_eq!(restore.key_codec, CodecId::new("utf8"));
            assert_eq!(restore.snapshot, snapshot.id());
            for part in &restore.parts {
                assert!(
                    part.range.intersect(restore.range).is_some(),
                    "only what touches it"
                );
                for segment in &part.segments {
                    assert!(restore.range.covers(segment.clip), "clipped");
                }
            }
            let touching = snapshot.manifest().parts.iter();
            let touching = touching.filter(|p| p.task.range.intersect(restore.range).is_some());
            assert_eq!(restore.parts.len(), touching.count(), "all that touches it");
        }
    }
}

#[test]
fn r10_unchanged_tasks_get_exactly_their_own_parts() {
    let mut coordinator = claim(&Storage::memory(), 1);
    let trigger = trigger(&mut coordinator);
    let mut acks = Vec::new();
    for name in (0..10).map(|i| format!("operator {i}")) {
        for task in 0..100 {
            let range = HashRange::of_task(task, 100);
            let segments = vec![inline(format!("{name}/{task}"), range)];
            acks.push(ack(&trigger, part(&name, task, 100, segments)));
        }
    }
    let sent: Vec<_> = acks.iter().map(|a| a.part.clone()).collect();
    let confirmed = block_on(coordinator.commit(trigger.id, acks, Bytes::new()));
    let snapshot = confirmed.expect("it leads").snapshot;
    for own in &sent {
        let plan = snapshot.restore_plan(&own.operator, 100).expect("known");
        let restore = &plan[own.task.0 as usize];
        assert_eq!(restore.parts.len(), 1);
        assert_eq!(*restore.parts[0], *own);
        let engine = snapshot.task_engine(&own.operator, own.task);
        assert_eq!(engine, Some(&own.engine));
    }
}

#[test]
fn r4_segments_that_have_nothing_in_the_range_are_left_out() {
    let mut coordinator = claim(&Storage::memory(), 1);
    let trigger = trigger(&mut coordinator);
    let low = HashRange::new(0, (64 << 56) - 1).expect("valid");
    let mut narrow = segment(1, trigger.id.0, 0, HashRange::ALL);
    Arc::make_mut(&mut narrow.meta).shards = (200, 210);
    let segments = vec![segment(1, trigger.id.0, 1, low), narrow];
    let acks = vec![ack(&trigger, part("count", 0, 1, segments))];
    let confirmed = block_on(coordinator.commit(trigger.id, acks, Bytes::new()));
    let snapshot = confirmed.expect("it leads").snapshot;
    let plan = snapshot.restore_plan(&operator("count"), 4).expect("known");
    let counts: Vec<_> = plan.iter().map(|t| t.parts[0].segments.len()).collect();
    assert_eq!(counts, [1, 0, 0, 1]);
    assert_eq!(
        plan[1].parts[0].generation_max,
        Generation(9),
        "a restored store starts above"
    );
}

#[test]
fn r4_no_state_gives_parts_without_segments() {
    let mut coordinator = claim(&Storage::memory(), 1);
    let trigger = trigger(&mut coordinator);
    let acks = vec![ack(&trigger, part("count", 0, 1, Vec::new()))];
    let confirmed = block_on(coordinator.commit(trigger.id, acks, Bytes::new()));
    let snapshot = confirmed.expect("it leads").snapshot;
    let plan = snapshot
        .restore_plan(&operator("count"), 3)
        .expect("no error");
    assert!(
        plan.iter()
            .all(|t| t.parts.iter().all(|p| p.segments.is_empty()))
    );
}

#[test]
fn r12_unknown_operators_are_named_new_ones_start_empty_and_drops_are_noticed() {
    let snapshot = snapshot_of(2);
    let new = operator("new");
    let error = snapshot.restore_plan(&new, 2).expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.fact("known"), Some("[count]"));
    assert!(
        snapshot
            .restore_plan_or_new(&new, 2)
            .expect("opted in")
            .is_none()
    );
    assert_eq!(
        kind(snapshot.restore_plan(&operator("count"), 0)),
        ErrorKind::Invalid
    );
    let dropped = snapshot
        .check_none_dropped(&[new])
        .expect_err("count is dropped");
    assert_eq!(dropped.fact("operators"), Some("[count]"));
    snapshot
        .check_none_dropped(&[operator("count")])
        .expect("kept");
}

//! What a commit takes and what it refuses.

use super::*;

#[test]
fn pending_snapshots_commit_in_any_order_and_older_ones_are_subsumed() {
    let mut coordinator = claim(&Storage::memory(), 1);
    let one = trigger(&mut coordinator);
    let two = trigger(&mut coordinator);
    let three = trigger(&mut coordinator);
    commit(&mut coordinator, &two, "two").expect("out of order");
    let late = commit(&mut coordinator, &one, "one").expect_err("subsumed");
    assert_eq!(late.kind(), ErrorKind::Declined);
    assert_eq!(late.fact("confirmed"), Some("3"));
    let confirmed = commit(&mut coordinator, &three, "three").expect("newer");
    let meta = &confirmed.snapshot.manifest().meta;
    assert_eq!(meta.base, Some(SnapshotId(1)), "the base of its trigger");
    assert_eq!(meta.parent.expect("one").position.id, two.id);
    assert_eq!(coordinator.confirmed().id(), three.id);
}

#[test]
fn a_reference_to_what_the_base_does_not_hold_is_declined_and_named() {
    let storage = Storage::memory();
    let mut coordinator = claim(&storage, 1);
    let one = trigger(&mut coordinator);
    commit(&mut coordinator, &one, "").expect("it leads");
    let two = trigger(&mut coordinator);
    commit(&mut coordinator, &two, "").expect("it leads");
    let three = trigger(&mut coordinator);
    let mut acks = acks(&three, 2);
    let range = acks[1].part.range;
    acks[1]
        .part
        .segments
        .insert(0, segment(1, one.id.0, 1, range));
    let error = block_on(coordinator.commit(three.id, acks.clone(), Bytes::new()))
        .expect_err("snapshot 3 holds no segment of 2");
    assert_eq!(error.kind(), ErrorKind::Declined);
    let name = acks[1].part.segments[0]
        .meta
        .location
        .object()
        .expect("one");
    assert_eq!(error.fact("object"), Some(&*name.to_string()));
    acks[1].part.segments[0] = segment(1, two.id.0, 1, range);
    block_on(coordinator.commit(three.id, acks, Bytes::new())).expect("its base holds it");
}

#[test]
fn acknowledgements_of_an_older_attempt_are_declined() {
    let mut coordinator = claim(&Storage::memory(), 1);
    let old = trigger(&mut coordinator);
    let stale = acks(&old, 2);
    coordinator.next_attempt().expect("settled");
    assert_eq!(
        kind(commit(&mut coordinator, &old, "")),
        ErrorKind::Declined
    );
    let new = trigger(&mut coordinator);
    let mut mixed = acks(&new, 2);
    mixed[0].attempt = stale[0].attempt;
    let error = block_on(coordinator.commit(new.id, mixed, Bytes::new())).expect_err("stale");
    assert_eq!(error.kind(), ErrorKind::Declined);
    assert_eq!(
        (error.fact("task"), error.fact("expected")),
        (Some("0"), Some("1"))
    );
    commit(&mut coordinator, &new, "").expect("all of its own attempt");
}

#[test]
fn parts_that_do_not_fit_together_are_refused_and_the_snapshot_stays_pending() {
    let mut coordinator = claim(&Storage::memory(), 1);
    let one = trigger(&mut coordinator);
    let mut refuse = |edit: &dyn Fn(&mut Vec<TaskSnapshot>)| {
        let mut acks = acks(&one, 2);
        edit(&mut acks);
        let outcome = block_on(coordinator.commit(one.id, acks, Bytes::new()));
        outcome.expect_err("they do not fit")
    };
    let twice = refuse(&|acks| acks.push(acks[0].clone()));
    assert_eq!(twice.message(), "a task acknowledged twice");
    let missing = refuse(&|acks| acks.truncate(1));
    assert_eq!(missing.kind(), ErrorKind::Invalid);
    let hash = refuse(&|acks| acks[1].part.hash = HashId(1_000));
    assert_eq!(
        (hash.kind(), hash.fact("field")),
        (ErrorKind::Mismatch, Some("hash"))
    );
    let codec = refuse(&|acks| acks[1].part.key_codec = CodecId::new("u64"));
    assert_eq!(codec.fact("field"), Some("key codec"));
    let state = refuse(&|acks| acks[1].part.states[0].value_codec = CodecId::new("utf8"));
    assert_eq!(
        (state.kind(), state.fact("state")),
        (ErrorKind::Mismatch, Some("count"))
    );
    let large = refuse(&|acks| {
        let range = acks[0].part.range;
        acks[0].part.segments = vec![inline(vec![1; 8_193], range)];
    });
    assert_eq!(large.kind(), ErrorKind::Limit);
    let untrue = refuse(&|acks| {
        let range = acks[0].part.range;
        let mut segment = inline("abc", range);
        Arc::make_mut(&mut segment.meta).digest = Digest([0; 32]);
        acks[0].part.segments = vec![segment];
    });
    assert_eq!(untrue.kind(), ErrorKind::Invalid);
    let backwards = refuse(&|acks| {
        Arc::make_mut(&mut acks[0].part.segments[0].meta).shards = (9, 1);
    });
    assert_eq!(
        backwards.kind(),
        ErrorKind::Invalid,
        "what cannot be read is not written"
    );
    commit(&mut coordinator, &one, "").expect("still pending");
}

#[test]
fn an_aborted_snapshot_cannot_be_committed_and_others_can() {
    let mut coordinator = claim(&Storage::memory(), 1);
    let one = trigger(&mut coordinator);
    let two = trigger(&mut coordinator);
    coordinator.abort(one.id).expect("pending");
    assert_eq!(
        kind(commit(&mut coordinator, &one, "")),
        ErrorKind::Declined
    );
    commit(&mut coordinator, &two, "").expect("not affected");
    assert_eq!(
        kind(coordinator.abort(two.id)),
        ErrorKind::Invalid,
        "it is confirmed"
    );
    coordinator.abort(one.id).expect("it is dead already");
}

#[test]
fn tasks_may_differ_in_states_and_in_time_to_live() {
    let storage = Storage::memory();
    let mut coordinator = claim(&storage, 1);
    let one = trigger(&mut coordinator);
    let mut acks = acks(&one, 2);
    let ttl = crate::descriptor::TimeToLive::after_write_ms(5).expect("above 0");
    acks[1].part.states[0].ttl = Some(ttl);
    let other = StateDescriptor::list("other", CodecId::new("u8"));
    acks[1].part.states.push(other);
    let sent = [acks[0].part.states.clone(), acks[1].part.states.clone()];
    block_on(coordinator.commit(one.id, acks, Bytes::new())).expect("compatible");
    let latest = block_on(open(&storage, 2).latest())
        .expect("readable")
        .expect("one");
    assert_eq!(latest.operators()[0].states.len(), 3);
    for (part, sent) in latest.manifest().parts.iter().zip(&sent) {
        assert_eq!(part.task.states, *sent, "each task gets back what it said");
    }
}

#[test]
fn one_commit_costs_one_put_and_one_look() {
    let storage = Storage::memory();
    let mut coordinator = claim(&storage, 1);
    let before = storage.requests();
    snapshot(&mut coordinator, "").expect("it leads");
    let after = storage.requests();
    assert_eq!(after.puts - before.puts, 1);
    assert_eq!(after.gets - before.gets, 1);
    assert_eq!(after.lists, before.lists);
}

#[test]
fn c1_a_snapshot_is_confirmed_once_when_all_have_acknowledged() {
    let storage = Storage::memory();
    let mut coordinator = claim(&storage, 1);
    let one = trigger(&mut coordinator);
    let some = acks(&one, 2)[..1].to_vec();
    let partly = block_on(coordinator.commit(one.id, some, Bytes::new()));
    assert_eq!(kind(partly), ErrorKind::Invalid);
    assert_eq!(coordinator.confirmed().id(), SnapshotId(1), "nothing is");
    let permit = commit(&mut coordinator, &one, "").expect("all have").permit;
    assert_eq!(permit.position().id, one.id);
    let again = commit(&mut coordinator, &one, "");
    assert_eq!(kind(again), ErrorKind::Invalid, "one permit a snapshot");
    let two = snapshot(&mut coordinator, "").expect("it leads").snapshot;
    assert_eq!(coordinator.confirmed().digest(), two.digest());
}

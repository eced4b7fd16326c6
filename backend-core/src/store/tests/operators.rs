//! Which operators a snapshot has: none is lost by mistake.

use std::collections::BTreeSet;

use super::*;

fn commit_of_operators(coordinator: &mut Coordinator, operators: &[&str]) -> Result<Confirmed> {
    let trigger = trigger(coordinator);
    let acks = operators
        .iter()
        .map(|name| ack(&trigger, part(name, 0, 1, Vec::new())));
    let acks = acks.collect();
    block_on(coordinator.commit(trigger.id, acks, Bytes::new()))
}

fn operators_of(confirmed: &Confirmed) -> BTreeSet<&str> {
    let operators = &confirmed.snapshot.manifest().operators;
    operators
        .iter()
        .map(|operator| operator.id.as_str())
        .collect()
}

#[test]
fn r12_an_operator_is_left_out_only_if_its_state_was_dropped() {
    let storage = Storage::memory();
    let mut first = claim(&storage, 1);
    commit_of_operators(&mut first, &["count", "join"]).expect("a new job");
    commit_of_operators(&mut first, &["count", "join", "new"]).expect("it has one more");
    // Also by a coordinator that has seen the operators in its predecessor's snapshot only.
    for mut leader in [first, claim(&storage, 2)] {
        for operators in [&["count", "new"][..], &[]] {
            let error = commit_of_operators(&mut leader, operators).expect_err("one is missing");
            assert_eq!(error.kind(), ErrorKind::Mismatch);
            assert!(error.fact("operator").is_some(), "{error}");
        }
    }
    let mut third = claim(&storage, 3);
    third.drop_operator(operator("join"));
    let confirmed = commit_of_operators(&mut third, &["count", "new"]).expect("it was dropped");
    assert_eq!(operators_of(&confirmed), BTreeSet::from(["count", "new"]));
    let error = commit_of_operators(&mut third, &["new"]).expect_err("this one was not");
    assert_eq!(error.fact("operator"), Some("count"));
}

#[test]
fn a_job_that_names_its_operators_gets_exactly_those() {
    let storage = Storage::memory();
    let mut leader = claim(&storage, 1);
    let both = [operator("count"), operator("join")];
    leader.name_operators(both.clone()).expect("a new job");
    let error = commit_of_operators(&mut leader, &["count"]).expect_err("the first one, too");
    assert_eq!(error.fact("operator"), Some("join"));
    let error = commit_of_operators(&mut leader, &["count", "join", "typo"]).expect_err("three");
    assert_eq!(error.fact("operator"), Some("typo"));
    commit_of_operators(&mut leader, &["join", "count"]).expect("both");
    let error = leader
        .name_operators([operator("count")])
        .expect_err("it has state");
    assert_eq!(
        (error.kind(), error.fact("operator")),
        (ErrorKind::Mismatch, Some("join"))
    );
    leader.drop_operator(operator("join"));
    commit_of_operators(&mut leader, &["count"]).expect("the other was dropped");
}

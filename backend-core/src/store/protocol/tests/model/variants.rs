//! Each rule of the protocol is needed: without it some property breaks.

use stateright::{Checker, HasDiscoveries, Model};

use super::bounds::{Bounds, Doubtful, LEAST, Variant};
use super::machine::{Action, Protocol};
use super::objects::segment;
use super::quiet;
use super::truth::{Fault, property};
use super::world::{Answer, Phase, World};
use crate::contract::SnapshotMode::{Full, Incremental};
use crate::ids::{Epoch, SnapshotId};

/// Commits only, by several coordinators.
const COMMITS: Bounds = Bounds {
    name: "commits",
    coordinators: 3,
    is_coarse: true,
    doubts: 1,
    doubtful: &[Doubtful::Claim, Doubtful::Manifest],
    sample: 0,
    ..LEAST
};

/// One epoch whose snapshots overlap each other and a collection.
const OVERLAP: Bounds = Bounds {
    name: "overlap",
    snapshots: 3,
    pending: 2,
    aborts: 1,
    collections: 1,
    sample: 0,
    ..LEAST
};

/// Collections by two epochs.
const COLLECT: Bounds = Bounds {
    name: "collect",
    coordinators: 2,
    snapshots: 2,
    modes: &[Full],
    is_coarse: true,
    doubts: 1,
    doubtful: &[Doubtful::Manifest],
    collections: 1,
    in_batches: true,
    sample: 0,
    ..LEAST
};

/// A reader beside a collection.
const READ: Bounds = Bounds {
    name: "read",
    snapshots: 2,
    modes: &[Full],
    is_coarse: true,
    collections: 1,
    pins: 1,
    sample: 0,
    ..LEAST
};

/// Asserts that `variant` breaks the property of `fault`, and answers by which steps.
fn caught(variant: Variant, bounds: Bounds, fault: Fault) -> Vec<Action> {
    let name = property(fault);
    let model = Protocol { bounds, variant };
    let only = HasDiscoveries::AnyOf([name].into());
    let checker = model.checker().threads(2).finish_when(only).spawn_bfs();
    let checker = checker.join();
    let path = checker.discovery(name);
    let path = path.unwrap_or_else(|| panic!("{variant:?} went unnoticed"));
    let actions = path.into_actions();
    println!("{variant:?}: \"{name}\" after {} steps", actions.len());
    for action in &actions {
        println!("    {action:?}");
    }
    actions
}

#[test]
fn without_a_look_two_chains_are_confirmed() {
    caught(Variant::NoLook, COMMITS, Fault::Forked);
}

#[test]
fn without_an_adoption_manifest_a_stalled_put_revives_what_was_rolled_back() {
    caught(Variant::NoAdoptionManifest, COMMITS, Fault::Revived);
}

#[test]
fn what_is_given_up_in_doubt_is_revived() {
    let bounds = Bounds {
        snapshots: 2,
        ..COMMITS
    };
    caught(Variant::GivesUpInDoubt, bounds, Fault::Revived);
}

#[test]
fn with_gaps_between_claims_a_look_finds_nobody() {
    caught(Variant::ClaimsWithGaps, COMMITS, Fault::Forked);
}

#[test]
fn who_claims_again_by_itself_takes_epochs_that_nobody_asked_for() {
    let bounds = Bounds {
        coordinators: 2,
        doubts: 0,
        ..COMMITS
    };
    caught(Variant::ClaimsAgain, bounds, Fault::Unasked);
}

#[test]
fn an_abort_that_deletes_takes_what_a_later_snapshot_shares() {
    let bounds = Bounds {
        collections: 0,
        ..OVERLAP
    };
    caught(Variant::AbortDeletes, bounds, Fault::Hollow);
}

#[test]
fn dead_ids_are_not_dead_segments() {
    caught(Variant::CollectsDeadIds, OVERLAP, Fault::Lost);
}

#[test]
fn a_floor_at_the_last_confirmed_snapshot_is_too_high() {
    caught(Variant::FloorIsConfirmed, OVERLAP, Fault::Lost);
}

#[test]
fn without_a_condemn_record_a_fallback_restores_what_is_gone() {
    let bounds = Bounds {
        fallbacks: 1,
        ..COLLECT
    };
    caught(Variant::NoCondemnRecord, bounds, Fault::Lost);
}

#[test]
fn without_a_condemn_record_a_reader_misses_what_is_gone() {
    caught(Variant::NoCondemnRecord, READ, Fault::Unpinned);
}

#[test]
fn a_record_that_lists_names_misses_a_late_manifest() {
    caught(Variant::RecordListsNames, COLLECT, Fault::Hollow);
}

#[test]
fn records_are_forgotten_only_for_wider_ones() {
    caught(Variant::ForgetsRecords, COLLECT, Fault::Pardoned);
}

#[test]
fn a_sweep_without_a_look_takes_what_a_fallback_restores() {
    let bounds = Bounds {
        fallbacks: 1,
        doubts: 0,
        ..COLLECT
    };
    caught(Variant::SweepsUnlooked, bounds, Fault::Lost);
}

#[test]
fn pins_that_were_listed_before_the_record_miss_a_reader() {
    caught(Variant::PinsBeforeRecord, READ, Fault::Unpinned);
}

#[test]
fn a_reader_that_trusts_its_pin_reads_what_is_condemned() {
    caught(Variant::NoReread, READ, Fault::Unpinned);
}

#[test]
fn a_kept_manifest_that_is_gone_does_not_name_nothing() {
    let bounds = Bounds {
        modes: &[Incremental],
        doubts: 0,
        ..COLLECT
    };
    caught(Variant::GoneNamesNothing, bounds, Fault::Lost);
}

/// Not every rule of order is needed for safety: the record already keeps everybody away.
#[test]
fn segments_may_go_before_the_manifests_that_a_record_condemns() {
    let model = Protocol {
        bounds: COLLECT,
        variant: Variant::SegmentsFirst,
    };
    model
        .checker()
        .threads(2)
        .spawn_bfs()
        .join()
        .assert_properties();
}

#[test]
fn two_that_claim_again_by_themselves_fence_each_other_without_end() {
    let bounds = Bounds {
        coordinators: 2,
        doubts: 0,
        ..COMMITS
    };
    let mut world = World::new(&bounds, Variant::ClaimsAgain);
    let lead = |world: &mut World, index| {
        for action in [
            Action::Start(index),
            Action::Claim(index, Answer::Clear),
            Action::List(index),
            Action::Choose(index, None),
            Action::Publish(index, Answer::Clear),
        ] {
            world.step(action);
        }
    };
    lead(&mut world, 0);
    for round in 1..100 {
        lead(&mut world, round % 2);
        world.step(Action::Look((round + 1) % 2));
        assert!(matches!(world.nodes[(round + 1) % 2].phase, Phase::Idle));
        assert_eq!(world.truth.last, None, "nothing is ever confirmed");
    }
}

#[test]
fn garbage_that_nobody_may_collect_is_noticed() {
    let mut world = World::new(&LEAST, Variant::Whole);
    quiet::check(&world).expect("a new job can begin");
    world
        .store
        .segments
        .edit()
        .insert(segment(Epoch(1), SnapshotId(1), 0));
    world.store.seal();
    quiet::check(&world).expect("what is of a past id goes");
    world
        .store
        .segments
        .edit()
        .insert(segment(Epoch(9), SnapshotId(1), 0));
    world.store.seal();
    let stuck = quiet::check(&world).expect_err("nobody has claimed epoch 9");
    assert_eq!(stuck, "a segment is left that no manifest names");
}

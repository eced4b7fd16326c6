//! The whole protocol holds, within these bounds.

use stateright::{Checker, Model};

use super::bounds::{Bounds, Doubtful, LEAST, Variant};
use super::machine::Protocol;
use crate::contract::SnapshotMode::{Full, Incremental};

/// Whether larger bounds were asked for.
fn is_large() -> bool {
    std::env::var_os("STATELINE_MODEL").is_some_and(|value| value == "large")
}

/// Explores all states within bounds: every property holds, and what should be reached is.
fn holds(small: Bounds, large: Bounds) {
    let bounds = if is_large() { large } else { small };
    #[expect(clippy::disallowed_methods, reason = "how long it takes is for people")]
    let started = std::time::Instant::now();
    let model = Protocol {
        bounds,
        variant: Variant::Whole,
    };
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!(
        "| {} | {} | {} | {} | {:.1} |",
        bounds.name,
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed().as_secs_f64()
    );
    for property in checker.model().properties() {
        let found = checker.discovery(property.name);
        if let Some(path) = found.filter(|_| property.expectation.discovery_is_failure()) {
            for action in path.into_actions() {
                println!("    {action:?}");
            }
        }
    }
    checker.assert_properties();
}

#[test]
fn three_coordinators_commit_two_snapshots_each() {
    let small = Bounds {
        name: "commits, 3 x 2",
        coordinators: 3,
        snapshots: 2,
        is_coarse: true,
        doubts: 2,
        doubtful: &[Doubtful::Claim, Doubtful::Manifest],
        ..LEAST
    };
    let large = Bounds {
        name: "commits, 3 x 3",
        snapshots: 3,
        doubts: 3,
        sample: 1_024,
        ..small
    };
    holds(small, large);
}

#[test]
fn two_coordinators_commit_three_snapshots_each() {
    let small = Bounds {
        name: "commits, 2 x 3",
        coordinators: 2,
        snapshots: 3,
        is_coarse: true,
        doubts: 4,
        doubtful: &[Doubtful::Claim, Doubtful::Manifest],
        ..LEAST
    };
    let large = Bounds {
        name: "commits, 4 x 2",
        coordinators: 4,
        snapshots: 2,
        doubts: 1,
        sample: 1_024,
        ..small
    };
    holds(small, large);
}

#[test]
fn two_coordinators_overlap_three_snapshots_each() {
    let small = Bounds {
        name: "overlapping snapshots, 2 x 3",
        coordinators: 2,
        snapshots: 3,
        pending: 2,
        sample: 1_024,
        ..LEAST
    };
    let large = Bounds {
        name: "overlapping snapshots with doubts, 2 x 3",
        doubts: 1,
        doubtful: &[Doubtful::Manifest],
        sample: 4_096,
        ..small
    };
    holds(small, large);
}

#[test]
fn snapshots_overlap_aborts_restarts_and_a_collection_of_their_epoch() {
    let small = Bounds {
        name: "overlap with aborts, restarts and a collection, 1 x 3",
        snapshots: 3,
        pending: 2,
        aborts: 1,
        restarts: 1,
        doubts: 1,
        doubtful: &[Doubtful::Segment],
        collections: 1,
        sample: 1_024,
        ..LEAST
    };
    let large = Bounds {
        name: "overlap with aborts, restarts and two collections, 1 x 3",
        collections: 2,
        sample: 4_096,
        ..small
    };
    holds(small, large);
}

#[test]
fn two_coordinators_collect_around_three_increments_each() {
    let small = Bounds {
        name: "collections of increments, 2 x 3",
        coordinators: 2,
        snapshots: 3,
        is_coarse: true,
        doubts: 1,
        doubtful: &[Doubtful::Manifest, Doubtful::Record],
        collections: 1,
        in_batches: true,
        sample: 1_024,
        ..LEAST
    };
    let large = Bounds {
        name: "two collections each of increments, 2 x 3",
        collections: 2,
        sample: 4_096,
        ..small
    };
    holds(small, large);
}

#[test]
fn two_coordinators_collect_around_three_full_snapshots_each() {
    let small = Bounds {
        name: "collections of full and incremental snapshots, 2 x 3",
        coordinators: 2,
        snapshots: 3,
        modes: &[Full, Incremental],
        is_coarse: true,
        doubts: 1,
        doubtful: &[Doubtful::Manifest, Doubtful::Record],
        collections: 1,
        in_batches: true,
        sample: 1_024,
        ..LEAST
    };
    let large = Bounds {
        name: "collections with two doubts, 2 x 3",
        doubts: 2,
        sample: 4_096,
        ..small
    };
    holds(small, large);
}

#[test]
fn three_coordinators_collect_around_two_snapshots_each() {
    let small = Bounds {
        name: "a collection, 3 x 2",
        coordinators: 3,
        snapshots: 2,
        modes: &[Full, Incremental],
        is_coarse: true,
        collections: 1,
        collections_all: 1,
        in_batches: true,
        sample: 1_024,
        ..LEAST
    };
    let large = Bounds {
        name: "two collections, 3 x 2",
        collections_all: 2,
        sample: 4_096,
        ..small
    };
    holds(small, large);
}

#[test]
fn collections_and_requests_overtake_each_other_object_by_object() {
    let small = Bounds {
        name: "late records and deletions, 2 x 1",
        coordinators: 2,
        snapshots: 1,
        modes: &[Full],
        is_coarse: true,
        doubts: 2,
        doubtful: &[Doubtful::Record, Doubtful::Deletion, Doubtful::Segment],
        collections: 2,
        sample: 1_024,
        ..LEAST
    };
    let large = Bounds {
        name: "late records and deletions, 2 x 2",
        snapshots: 2,
        doubts: 1,
        sample: 4_096,
        ..small
    };
    holds(small, large);
}

#[test]
fn a_reader_pins_while_two_coordinators_collect() {
    let small = Bounds {
        name: "a pin beside collections, 2 x 2",
        coordinators: 2,
        snapshots: 2,
        modes: &[Full, Incremental],
        is_coarse: true,
        collections: 1,
        in_batches: true,
        pins: 1,
        sample: 1_024,
        ..LEAST
    };
    let large = Bounds {
        name: "a late pin beside collections, 2 x 3",
        snapshots: 3,
        doubts: 1,
        doubtful: &[Doubtful::Pin],
        sample: 4_096,
        ..small
    };
    holds(small, large);
}

#[test]
fn three_coordinators_fall_back() {
    let small = Bounds {
        name: "fallbacks, 3 x 2",
        coordinators: 3,
        snapshots: 2,
        is_coarse: true,
        doubts: 1,
        doubtful: &[Doubtful::Claim, Doubtful::Manifest],
        fallbacks: 2,
        sample: 256,
        ..LEAST
    };
    let large = Bounds {
        name: "fallbacks with two doubts, 3 x 2",
        doubts: 2,
        sample: 4_096,
        ..small
    };
    holds(small, large);
}

#[test]
fn fallbacks_meet_collections() {
    let small = Bounds {
        name: "a fallback beside collections, 3 x 1",
        coordinators: 3,
        snapshots: 1,
        is_coarse: true,
        collections: 1,
        in_batches: true,
        fallbacks: 1,
        sample: 1_024,
        ..LEAST
    };
    let large = Bounds {
        name: "a fallback beside collections with a doubt, 3 x 1",
        doubts: 1,
        doubtful: &[Doubtful::Manifest, Doubtful::Record],
        sample: 4_096,
        ..small
    };
    holds(small, large);
}

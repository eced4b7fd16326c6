//! The protocol, model-checked: the machines are driven through every order of steps within
//! bounds, over a store that answers late, twice or not at all.

mod bounds;
mod collect;
mod lead;
mod machine;
mod objects;
mod quiet;
mod read;
mod sealed;
mod truth;
mod world;

use stateright::{Checker, HasDiscoveries, Model};

use bounds::{Bounds, LEAST, Variant};
use machine::Protocol;

fn explore(bounds: Bounds) {
    let model = Protocol {
        bounds,
        variant: Variant::Whole,
    };
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!(
        "{}: {} generated, {} unique, depth {}",
        bounds.name,
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth()
    );
    for (name, path) in checker.discoveries() {
        let p = path.into_actions();
        println!("  {name}: {}", p.len());
    }
    for p in checker.model().properties() {
        if p.expectation.discovery_is_failure() {
            if let Some(path) = checker.discovery(p.name) {
                for a in path.into_actions() {
                    println!("     {a:?}");
                }
                panic!("{}", p.name);
            }
        }
    }
    checker.assert_properties();
}

#[test]
fn trial() {
    let v = |n: &str, d: u64| std::env::var(n).ok().map_or(d, |s| s.parse().unwrap());
    use crate::contract::SnapshotMode::{Full, Incremental};
    let modes: &'static [_] = match v("MODES", 0) {
        0 => &[Incremental],
        1 => &[Full],
        2 => &[Full, Incremental],
        _ => &[Incremental, Full],
    };
    explore(Bounds {
        coordinators: v("COORD", 2) as usize,
        snapshots: v("SNAP", 2) as u8,
        pending: v("PEND", 1) as usize,
        modes,
        is_coarse: v("COARSE", 0) == 1,
        in_batches: v("BATCH", 0) == 1,
        doubtful: {
            use bounds::Doubtful::{Claim, Deletion, Manifest, Pin, Record, Segment};
            match v("KIND", 0) {
                0 => &[Claim, Manifest, Segment, Record, Pin, Deletion],
                1 => &[Claim, Manifest],
                2 => &[Manifest, Record],
                3 => &[Segment],
                4 => &[Claim, Manifest, Record],
                5 => &[Pin, Deletion, Record],
                6 => &[Manifest],
                _ => &[],
            }
        },
        doubts: v("DOUBT", 0) as u8,
        aborts: v("ABORT", 0) as u8,
        restarts: v("RESTART", 0) as u8,
        collections: v("COLL", 0) as u8,
        pins: v("PINS", 0) as u8,
        fallbacks: v("FALL", 0) as u8,
        sample: v("SAMPLE", 64),
        ..LEAST
    });
}

//! A thousand seeds, in parts that run beside each other.

use simulation::simulate;

fn run(from: u64) {
    (from..from + 100).for_each(run_one);
}

fn run_one(seed: u64) {
    if let Err(failure) = simulate(seed) {
        panic!(
            "seed {seed}: {}\nAgain: cargo xtask soak --from {seed} --seeds 1",
            failure.violation.0
        );
    }
}

#[test]
fn x9_seeds_0() {
    run(0);
}

#[test]
fn x9_seeds_100() {
    run(100);
}

#[test]
fn x9_seeds_200() {
    run(200);
}

#[test]
fn x9_seeds_300() {
    run(300);
}

#[test]
fn x9_seeds_400() {
    run(400);
}

#[test]
fn x9_seeds_500() {
    run(500);
}

#[test]
fn x9_seeds_600() {
    run(600);
}

#[test]
fn x9_seeds_700() {
    run(700);
}

#[test]
fn x9_seeds_800() {
    run(800);
}

#[test]
fn x9_seeds_900() {
    run(900);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let mut confirmed = 0;
    for seed in [3, 14, 159] {
        let first = simulate(seed).expect("nothing is lost");
        let again = simulate(seed).expect("nothing is lost");
        assert_eq!(first, again, "seed {seed}");
        confirmed += first.confirmed;
    }
    assert!(confirmed > 30, "they do something: {confirmed}");
}

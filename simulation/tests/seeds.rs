//! A thousand seeds, in parts that run beside each other.

use simulation::simulate;

fn run(from: u64) {
    for seed in from..from + 100 {
        if let Err(failure) = simulate(seed) {
            panic!(
                "seed {seed}: {}\nAgain: cargo xtask soak --from {seed} --seeds 1",
                failure.violation.0
            );
        }
    }
}

macro_rules! hundreds {
    ($($name:ident: $from:expr;)*) => {
        $(
            #[test]
            fn $name() {
                run($from);
            }
        )*
    };
}

hundreds! {
    x9_seeds_0: 0;
    x9_seeds_100: 100;
    x9_seeds_200: 200;
    x9_seeds_300: 300;
    x9_seeds_400: 400;
    x9_seeds_500: 500;
    x9_seeds_600: 600;
    x9_seeds_700: 700;
    x9_seeds_800: 800;
    x9_seeds_900: 900;
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 14, 159] {
        let first = simulate(seed).expect("nothing is lost");
        let again = simulate(seed).expect("nothing is lost");
        assert_eq!(first, again, "seed {seed}");
        assert!(
            first.requests > 300,
            "seed {seed} does something: {first:?}"
        );
    }
}

//! libFuzzer over one target, which the variable `STATELINE_FUZZ_TARGET` names.
//!
//! `cargo xtask fuzz` builds it with coverage and runs it.
#![no_main]

use std::sync::OnceLock;

use fuzz::Target;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fn target() -> Target {
    static TARGET: OnceLock<Target> = OnceLock::new();
    *TARGET.get_or_init(|| {
        let name = std::env::var("STATELINE_FUZZ_TARGET");
        let name = name.expect("STATELINE_FUZZ_TARGET names a target");
        name.parse().expect("STATELINE_FUZZ_TARGET names a target")
    })
}

fuzz_target!(|bytes: &[u8]| {
    target().run(bytes);
});

fuzz_mutator!(|data: &mut [u8], len: usize, len_max: usize, seed: u32| {
    target().mutate(data, len, len_max, seed, &mut fuzzer_mutate)
});

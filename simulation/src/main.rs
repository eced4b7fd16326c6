//! Simulations from the command line: one seed with its trace, a range, or as many as fit a time.

use std::process::ExitCode;

use backend_core::clock::SystemEnvironment;
use clap::Parser;
use simulation::{Failure, Summary, simulate_with_trace};

/// Runs whole jobs on a store that fails, stalls and crashes, and says what must not be.
#[derive(Debug, Parser)]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Goes on with further seeds until this many minutes are over.
    #[arg(long, conflicts_with = "seeds")]
    minutes: Option<u64>,
    /// Prints all that happens.
    #[arg(long)]
    trace: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let environment = SystemEnvironment::shared();
    let started = environment.monotonic();
    let goes_on = |done: u64| match arguments.minutes {
        Some(minutes) => {
            let passed = environment.monotonic().saturating_sub(started);
            passed.as_secs() < minutes * 60
        }
        None => done < arguments.seeds,
    };
    let mut total = Summary::default();
    let mut done = 0;
    while goes_on(done) {
        let seed = arguments.from + done;
        match simulate_with_trace(seed) {
            Ok((summary, trace)) => {
                total.requests += summary.requests;
                total.faults += summary.faults;
                total.crashes += summary.crashes;
                total.late += summary.late;
                total.confirmed += summary.confirmed;
                if arguments.trace {
                    for line in &trace {
                        println!("{line}");
                    }
                }
            }
            Err(failure) => {
                report(seed, &failure);
                return ExitCode::FAILURE;
            }
        }
        done += 1;
        if done.is_multiple_of(1_000) {
            println!("{done} seeds, none failed");
        }
    }
    println!(
        "{done} seeds from {}: {} requests, {} faults, {} crashes, {} late changes, {} snapshots confirmed; nothing lost",
        arguments.from, total.requests, total.faults, total.crashes, total.late, total.confirmed
    );
    ExitCode::SUCCESS
}

fn report(seed: u64, failure: &Failure) {
    for line in &failure.trace {
        println!("{line}");
    }
    println!("\nseed {seed} FAILED: {}", failure.violation.0);
    println!("Again: cargo xtask soak --from {seed} --seeds 1");
    println!("Once it is mended, its cause becomes a named test that needs no seed.");
}

//! Measurements of Stateline against what a user would pick instead.
//!
//! `cargo run --release -p benches -- gate` measures the hot paths and holds them against their
//! targets, as ratios in one run where a peer is named.

mod gate;
mod measure;
mod report;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "benches", about = "Measures Stateline")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures the hot paths and holds them against their targets.
    Gate {
        /// Entries of the large state.
        #[arg(long, default_value_t = 5_000_000)]
        entries: u64,
        /// Rounds of each figure; the median counts.
        #[arg(long, default_value_t = 7)]
        rounds: usize,
        /// Measures one part only.
        #[arg(long)]
        only: Option<gate::Part>,
    },
}

fn main() -> std::process::ExitCode {
    let Command::Gate {
        entries,
        rounds,
        only,
    } = Arguments::parse().command;
    match gate::run(entries, rounds, only) {
        Ok(report) => {
            println!(
                "\n{} of {} figures hold",
                report.len() - report.missed(),
                report.len()
            );
            if report.missed() == 0 {
                0.into()
            } else {
                1.into()
            }
        }
        Err(e) => {
            eprintln!("error: {e}");
            2.into()
        }
    }
}

//! The `stateline` command.

mod demo;
mod job;
mod list;
mod print;
mod size;
mod tools;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use stateline::Position;

use crate::job::JobArguments;

#[derive(Parser)]
#[command(
    name = "stateline",
    version,
    about = "State for stream engines: demo and tools"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Counts daily active aircraft over real flights, crashes, recovers, rescales, and checks.
    Demo(demo::DemoArguments),
    /// Lists the snapshots of a job in a local directory.
    Ls(JobArguments),
    /// Reads every object of a job's snapshots and says what is damaged, which snapshots that
    /// hurts, and which is the newest whole one. Status 1 if anything is.
    Verify {
        #[command(flatten)]
        job: JobArguments,
        /// Only this snapshot, as in 2-17.
        #[arg(long, value_parser = job::position)]
        snapshot: Option<Position>,
    },
    /// Says what no kept snapshot needs; with --apply, deletes it.
    Gc {
        #[command(flatten)]
        job: JobArguments,
        /// How many of the newest snapshots to keep, besides savepoints and pinned ones.
        #[arg(long, default_value = "1")]
        keep_last: NonZeroU32,
        /// Claims the job, which stops one that runs, and deletes.
        #[arg(long)]
        apply: bool,
    },
    /// Verifies all; with --apply, claims the job and goes on from the newest whole snapshot.
    Fallback {
        #[command(flatten)]
        job: JobArguments,
        /// Gives up newer snapshots that are damaged.
        #[arg(long)]
        apply: bool,
    },
    /// Copies a snapshot to another directory, every byte verified; goes on where it was stopped.
    Copy {
        #[command(flatten)]
        job: JobArguments,
        /// The other directory.
        dest: PathBuf,
        /// The snapshot, as in 2-17; the newest if none is named.
        #[arg(long, value_parser = job::position)]
        snapshot: Option<Position>,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Ls(job) => list::run(&job).map(|()| true),
        Command::Verify { job, snapshot } => tools::verify(&job, snapshot),
        Command::Gc {
            job,
            keep_last,
            apply,
        } => tools::gc(&job, keep_last, apply).map(|()| true),
        Command::Fallback { job, apply } => tools::fallback(&job, apply),
        Command::Copy {
            job,
            dest,
            snapshot,
        } => tools::copy(&job, &dest, snapshot).map(|()| true),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

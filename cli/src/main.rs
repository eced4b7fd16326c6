//! The `stateline` command.

mod demo;
mod list;
mod print;
mod size;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    Ls {
        /// The job's directory.
        dir: PathBuf,
        /// The job's name.
        #[arg(long, default_value = demo::JOB)]
        job: String,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Ls { dir, job } => list::run(&dir, &job).map(|()| true),
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

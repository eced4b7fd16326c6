//! What the demo may be told.

use std::path::PathBuf;

use clap::Args;
use stateline::{Error, ErrorKind, Result};

/// Settings of the demo.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArguments {
    /// Events to process; all flights if it is not given.
    #[arg(long)]
    pub(crate) events: Option<u64>,
    /// Where snapshots go. It is emptied first if an earlier demo made it.
    #[arg(long, default_value = "stateline-demo")]
    pub(crate) dir: PathBuf,
    /// Events between two snapshots.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) snapshot_every: u64,
    /// Moves the crash to another event near the middle.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The event before which everything in memory is lost; near the middle if not given.
    #[arg(long)]
    pub(crate) crash_at: Option<u64>,
    /// Parallel tasks at first.
    #[arg(long, default_value_t = 4)]
    pub(crate) tasks: u32,
    /// Parallel tasks after three quarters of the events.
    #[arg(long, default_value_t = 7)]
    pub(crate) rescale_to: u32,
    /// Prints JSON lines for machines.
    #[arg(long)]
    pub(crate) json: bool,
    /// Prints the verdict alone, for scripts.
    #[arg(long)]
    pub(crate) check: bool,
}

/// Where things happen, in events from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Course {
    pub(crate) events: u64,
    pub(crate) snapshot_every: u64,
    pub(crate) crash_at: u64,
    pub(crate) rescale_at: u64,
}

impl DemoArguments {
    /// The course over a source of `available` events.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] names the argument, what it may be, and what it is.
    pub(crate) fn course(&self, available: u64) -> Result<Course> {
        let bad = |argument: &'static str, expected: String, got: u64| {
            Error::new(ErrorKind::Invalid, "an argument is out of bounds")
                .with("argument", argument)
                .expected_got(expected, got)
        };
        let events = self.events.unwrap_or(available);
        if events < 4 || events > available {
            return Err(bad("--events", format!("4 to {available}"), events));
        }
        if self.snapshot_every == 0 {
            return Err(bad("--snapshot-every", "at least 1".to_owned(), 0));
        }
        for (argument, tasks) in [("--tasks", self.tasks), ("--rescale-to", self.rescale_to)] {
            if !(1..=64).contains(&tasks) {
                return Err(bad(argument, "1 to 64".to_owned(), u64::from(tasks)));
            }
        }
        let rescale_at = events / 4 * 3;
        // A tenth of the events around the middle, wherever the seed says.
        let spread = (events / 10).max(1);
        let offset = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let near_middle = events / 2 - spread / 2 + offset % spread;
        let crash_at = self.crash_at.unwrap_or(near_middle);
        if crash_at > events {
            return Err(bad("--crash-at", format!("0 to {events}"), crash_at));
        }
        Ok(Course {
            events,
            snapshot_every: self.snapshot_every,
            crash_at,
            rescale_at,
        })
    }
}

//! What the demo prints: lines for people, or JSON lines for machines.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use stateline::{SnapshotId, SnapshotStats};

use crate::print;
use crate::size::Size;

/// What a restart read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovery {
    pub(crate) snapshot: u64,
    pub(crate) epoch: u64,
    pub(crate) position: u64,
    pub(crate) size: Size,
    pub(crate) reads: u64,
    pub(crate) took: Duration,
}

/// How much is printed, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// A person at a terminal, or reading a log.
    Person,
    /// A program: JSON lines.
    Machine,
    /// A script that wants the verdict alone.
    Script,
}

/// Prints as the job runs.
#[derive(Debug)]
pub(crate) struct Report {
    audience: Audience,
    bar: ProgressBar,
    colours: bool,
}

impl Report {
    pub(crate) fn new(audience: Audience, events: u64) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let bar = if audience == Audience::Person && on_terminal {
            let style = ProgressStyle::with_template(
                "  {bar:32} {human_pos:>9} of {human_len} events  {per_sec:.0}",
            );
            ProgressBar::new(events)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        } else {
            ProgressBar::hidden()
        };
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self {
            audience,
            bar,
            colours,
        }
    }

    /// A line for people.
    pub(crate) fn line(&self, text: &str) {
        if self.audience == Audience::Person {
            self.bar.suspend(|| print::line(text));
        }
    }

    /// A line for programs.
    pub(crate) fn record(&self, record: &Value) {
        if self.audience == Audience::Machine {
            print::line(record);
        }
    }

    /// A number that is not the expected one, for everybody.
    pub(crate) fn difference(&self, text: &str) {
        match self.audience {
            Audience::Machine => self.record(&json!({"kind": "difference", "text": text})),
            Audience::Person | Audience::Script => {
                self.bar.suspend(|| print::line(format_args!("  {text}")));
            }
        }
    }

    /// A snapshot that will not be; the job goes on, and the next one is wider.
    pub(crate) fn declined(&self, id: SnapshotId, why: &stateline::Error) {
        self.line(&format!("  snapshot {id:>3} {why}"));
        self.record(&json!({"kind": "declined", "id": id.0, "why": why.to_string()}));
    }

    /// The verdict, for everybody.
    pub(crate) fn verdict(&self, is_equal: bool, text: &str) {
        self.bar.finish_and_clear();
        match self.audience {
            Audience::Machine => {
                self.record(&json!({"kind": "verdict", "equal": is_equal, "text": text}));
            }
            Audience::Person | Audience::Script if self.colours => {
                let colour = if is_equal { 32 } else { 31 };
                print::line(format_args!("\x1b[1;{colour}m{text}\x1b[0m"));
            }
            Audience::Person | Audience::Script => print::line(text),
        }
    }

    pub(crate) fn progress(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// What a snapshot of all tasks cost.
    pub(crate) fn snapshot(
        &self,
        id: SnapshotId,
        position: u64,
        stats: &[SnapshotStats],
        size: Size,
        took: Duration,
    ) {
        let pause = stats.iter().map(|s| s.pause).max().unwrap_or_default();
        let sum = |of: fn(&SnapshotStats) -> u64| stats.iter().map(of).sum::<u64>();
        let bytes = sum(|s| s.bytes_new);
        // Each once: after a rescale several tasks refer to the same segment.
        let referenced = size.bytes.saturating_sub(bytes);
        let (entries, puts) = (sum(|s| s.entries_new), sum(|s| u64::from(s.puts)));
        let full = stats.iter().filter(|s| s.is_full).count();
        let mode = match full {
            0 => "incremental".to_owned(),
            n if n == stats.len() => "full".to_owned(),
            n => format!("{n} of {} full", stats.len()),
        };
        self.line(&format!(
            "  snapshot {id:>3} at {:>7}  {mode:<13} pause {:>8}  {:>9} new + {:>9} kept  {entries:>7} entries  {puts:>3} puts  {:>7}",
            position,
            time(pause),
            bytes_text(bytes),
            bytes_text(referenced),
            time(took),
        ));
        self.record(&json!({
            "kind": "snapshot", "id": id.0, "position": position, "mode": mode,
            "pause_ns": pause.as_nanos() as u64, "bytes_new": bytes, "bytes_referenced": referenced,
            "entries": entries, "puts": puts, "took_us": took.as_micros() as u64,
        }));
    }

    /// What a restart read.
    pub(crate) fn recovery(&self, what: &str, tasks: u32, recovery: &Recovery) {
        self.line(&format!(
            "  {what}: epoch {}, snapshot {}, {tasks} tasks; read {} in {} segments ({} reads, {}); on from event {}",
            recovery.epoch,
            recovery.snapshot,
            bytes_text(recovery.size.bytes),
            recovery.size.segments,
            recovery.reads,
            time(recovery.took),
            recovery.position,
        ));
        self.record(&json!({
            "kind": "restore", "why": what, "epoch": recovery.epoch, "snapshot": recovery.snapshot,
            "tasks": tasks, "position": recovery.position, "segments": recovery.size.segments,
            "bytes": recovery.size.bytes, "reads": recovery.reads,
            "took_us": recovery.took.as_micros() as u64,
        }));
    }
}

fn time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        m if m < 1_000.0 => format!("{m:.1} µs"),
        m if m < 1_000_000.0 => format!("{:.1} ms", m / 1e3),
        m => format!("{:.2} s", m / 1e6),
    }
}

fn bytes_text(bytes: u64) -> String {
    match bytes {
        b if b < 1 << 10 => format!("{b} B"),
        b if b < 1 << 20 => format!("{:.1} KiB", b as f64 / 1024.0),
        b => format!("{:.1} MiB", b as f64 / (1024.0 * 1024.0)),
    }
}

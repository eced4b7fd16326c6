//! A report as text, for an operator.

use std::fmt;

use crate::inspect::verify::fault::Fault;
use crate::inspect::verify::report::{SnapshotFigures, VerifyReport};
use crate::manifest::Position;

/// Positions that a line names before it only counts.
const POSITIONS_SHOWN: usize = 8;
/// Orphans that are named.
const ORPHANS_SHOWN: usize = 20;

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "job {}: {} snapshots, {} objects, {} bytes read",
            self.job,
            self.snapshots.len(),
            self.objects,
            self.bytes
        )?;
        self.snapshots.iter().try_for_each(|s| snapshot(f, s))?;
        match self.newest_whole {
            Some(position) => writeln!(f, "newest whole snapshot: {position}")?,
            None => writeln!(f, "newest whole snapshot: none")?,
        }
        let faults = self.faults.len() as u64 + self.faults_left_out;
        writeln!(f, "faults: {faults}")?;
        self.faults.iter().try_for_each(|x| fault(f, x))?;
        if self.faults_left_out > 0 {
            writeln!(f, "  .. and {} more", self.faults_left_out)?;
        }
        let (orphans, bytes) = self.orphans_all;
        if orphans > 0 {
            writeln!(
                f,
                "orphans, for collection: {orphans} objects, {bytes} bytes"
            )?;
            if self.orphans_uncertain {
                writeln!(f, "  some may belong to a manifest that cannot be read")?;
            }
            for orphan in self.orphans.iter().take(ORPHANS_SHOWN) {
                writeln!(f, "  {}, {} bytes", orphan.object, orphan.bytes)?;
            }
            let shown = self.orphans.len().min(ORPHANS_SHOWN) as u64;
            if orphans > shown {
                writeln!(f, "  .. and {} more", orphans - shown)?;
            }
        }
        let (pending, bytes) = self.maybe_pending;
        if pending > 0 {
            writeln!(f, "may be pending: {pending} objects, {bytes} bytes")?;
        }
        for hash in &self.hashes_unknown {
            writeln!(
                f,
                "hash {hash} is not known: shards and live entries were not looked at"
            )?;
        }
        Ok(())
    }
}

fn snapshot(f: &mut fmt::Formatter<'_>, snapshot: &SnapshotFigures) -> fmt::Result {
    write!(f, "  snapshot {}: ", snapshot.position)?;
    match snapshot.faults {
        0 => write!(f, "whole")?,
        faults => write!(f, "HURT by {faults} faults")?,
    }
    if let Some(entries) = snapshot.entries {
        write!(
            f,
            ", {} entries ({} live, {} expired, {} dead; of keys and values {}, {}, {} bytes)",
            entries.all,
            entries.live,
            entries.expired,
            entries.dead,
            entries.live_bytes,
            entries.expired_bytes,
            entries.dead_bytes
        )?;
    }
    write!(
        f,
        ", {} objects, {} bytes",
        snapshot.objects, snapshot.bytes_referenced
    )?;
    match snapshot.bytes_own {
        Some(bytes) => writeln!(f, ", {bytes} its own"),
        None => writeln!(f),
    }
}

fn fault(f: &mut fmt::Formatter<'_>, fault: &Fault) -> fmt::Result {
    writeln!(f, "  {}: {}: {}", fault.object, fault.kind, fault.error)?;
    if fault.hurts.is_empty() {
        return writeln!(f, "    hurts no snapshot");
    }
    let shown = fault.hurts.iter().take(POSITIONS_SHOWN);
    let shown: Vec<String> = shown.map(Position::to_string).collect();
    write!(f, "    hurts {}", shown.join(", "))?;
    match fault.hurts.len().saturating_sub(POSITIONS_SHOWN) {
        0 => writeln!(f),
        more => writeln!(f, " and {more} more"),
    }
}

//! Settings of a collection, and what it did.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use crate::manifest::Position;
use crate::store::protocol::KeepReason;

/// How hard a collection may press its store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectOptions {
    /// Objects that are deleted with one request, where the store can. Default: 1,000.
    pub batch: NonZeroUsize,
    /// The most objects that are deleted in a second. Default: as fast as it goes.
    pub deletes_per_s: Option<NonZeroU32>,
    /// The most objects that are deleted in all; the next collection goes on. Default: all.
    pub deletes_max: Option<u64>,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            batch: NonZeroUsize::new(1_000).expect("it is above 0"),
            deletes_per_s: None,
            deletes_max: None,
        }
    }
}

impl CollectOptions {
    /// The pause that keeps the rate, after `count` objects.
    pub(super) fn pause_after(&self, count: u32) -> Option<Duration> {
        let rate = self.deletes_per_s?;
        Some(Duration::from_secs(1) * count / rate.get())
    }
}

/// What a collection did, or would do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectReport {
    /// Whether it only says what would be deleted.
    pub is_dry: bool,
    /// The snapshots that are kept, and why.
    pub kept: BTreeMap<Position, KeepReason>,
    /// The snapshots that are condemned by this collection.
    pub condemned: Vec<Position>,
    /// Manifests deleted: also of snapshots that an earlier collection condemned.
    pub manifests: u64,
    /// Objects of state deleted: of condemned snapshots, and of writers that crashed or were
    /// fenced.
    pub objects: u64,
    /// The bytes of all that was deleted.
    pub bytes: u64,
    /// Things among the objects of state that no version of this crate writes. They stay.
    pub strangers: u64,
    /// One of them.
    pub stranger: Option<String>,
    /// Whether nothing is left to be deleted.
    pub is_complete: bool,
}

impl CollectReport {
    pub(super) fn new(
        kept: &BTreeMap<Position, KeepReason>,
        condemned: &[Position],
        is_dry: bool,
    ) -> Self {
        Self {
            is_dry,
            kept: kept.clone(),
            condemned: condemned.to_vec(),
            manifests: 0,
            objects: 0,
            bytes: 0,
            strangers: 0,
            stranger: None,
            is_complete: true,
        }
    }
}

impl CollectReport {
    pub(super) fn add_stranger(&mut self, name: String) {
        self.strangers += 1;
        self.stranger.get_or_insert(name);
    }
}

impl fmt::Display for CollectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, reason) in &self.kept {
            writeln!(f, "keep    {position}  {reason}")?;
        }
        for position in &self.condemned {
            writeln!(f, "condemn {position}")?;
        }
        if let Some(name) = &self.stranger {
            let count = self.strangers;
            writeln!(
                f,
                "left    {count} not of this job among the objects, such as {name}"
            )?;
        }
        let verb = if self.is_dry {
            "would delete"
        } else {
            "deleted"
        };
        let left = if self.is_complete {
            ""
        } else {
            "; more is left"
        };
        write!(
            f,
            "{verb} {} manifests and {} objects, {} bytes{left}",
            self.manifests, self.objects, self.bytes
        )
    }
}

//! Which snapshots a collection keeps, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;

use crate::manifest::{Condemn, Position, SnapshotKind};
use crate::store::protocol::ledger::Holds;

/// What an operator wants to keep beyond what the protocol needs.
///
/// Savepoints and pinned snapshots are kept in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The newest snapshots that are kept. Savepoints, and what a new coordinator adopted, do
    /// not count.
    pub last: NonZeroU32,
    /// Snapshots that are younger are kept, too, in milliseconds. It only ever adds: a clock
    /// that is wrong keeps more or fewer old snapshots, never loses one that is needed.
    pub age_ms: Option<u64>,
    /// Savepoints that their user has let go of.
    pub released: BTreeSet<Position>,
}

impl Default for Retention {
    fn default() -> Self {
        Self::last(NonZeroU32::MIN)
    }
}

impl Retention {
    /// The newest `last` snapshots.
    pub fn last(last: NonZeroU32) -> Self {
        Self {
            last,
            age_ms: None,
            released: BTreeSet::new(),
        }
    }
}

/// Why a snapshot is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KeepReason {
    /// It is the last confirmed one.
    Confirmed,
    /// Pending snapshots build on it.
    Base,
    /// It is among the newest.
    Last,
    /// It is young.
    Age,
    /// It is a savepoint.
    Savepoint,
    /// Somebody has pinned it.
    Pinned,
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Confirmed => "the last confirmed",
            Self::Base => "a base",
            Self::Last => "among the newest",
            Self::Age => "young",
            Self::Savepoint => "a savepoint",
            Self::Pinned => "pinned",
        })
    }
}

/// What is known of a snapshot that is not condemned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its place.
    pub position: Position,
    /// The one before it.
    pub parent: Option<Position>,
    /// What its cut is like.
    pub kind: SnapshotKind,
    /// When it was committed.
    pub created_ms: u64,
}

impl Candidate {
    /// Whether it repeats what a coordinator found when it took over.
    fn is_adoption(&self) -> bool {
        self.parent
            .is_none_or(|parent| parent.epoch < self.position.epoch)
    }
}

/// What others have a say in.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// Snapshots with a pin that holds.
    pub pinned: BTreeSet<Position>,
    /// Savepoints that belong to another job by now.
    pub claimed: BTreeSet<Position>,
}

/// The snapshots to keep, of `candidates` that are not condemned, with the first reason that
/// holds. `condemned` are the records so far.
///
/// Only a snapshot that was confirmed is kept for its age or its newness. Those are the ancestors
/// of the last one; where ancestors have been deleted, what an earlier record spared was one,
/// unless the job went past it.
pub fn retain(
    holds: &Holds,
    candidates: &[Candidate],
    condemned: &[Condemn],
    retention: &Retention,
    others: &Others,
    now_ms: u64,
) -> BTreeMap<Position, KeepReason> {
    let confirmed = confirmed_among(holds.confirmed, candidates, condemned);
    let mut newest = candidates
        .iter()
        .filter(|c| confirmed.contains(&c.position))
        .filter(|c| c.kind != SnapshotKind::Savepoint && !c.is_adoption())
        .map(|c| c.position)
        .collect::<Vec<_>>();
    newest.sort_unstable();
    let first = newest.len().saturating_sub(retention.last.get() as usize);
    let newest: BTreeSet<_> = newest.split_off(first).into_iter().collect();
    let reason_of = |c: &Candidate| {
        let position = c.position;
        let is_young = |age_ms: u64| now_ms.saturating_sub(c.created_ms) < age_ms;
        let is_users = c.kind == SnapshotKind::Savepoint
            && !retention.released.contains(&position)
            && !others.claimed.contains(&position);
        if position >= holds.confirmed {
            Some(KeepReason::Confirmed)
        } else if holds.bases.contains(&position) {
            Some(KeepReason::Base)
        } else if others.pinned.contains(&position) {
            Some(KeepReason::Pinned)
        } else if c.kind == SnapshotKind::Savepoint {
            // Its user may have it in a note: it is kept even where the job went on from before it.
            is_users.then_some(KeepReason::Savepoint)
        } else if !confirmed.contains(&position) {
            None
        } else if newest.contains(&position) {
            Some(KeepReason::Last)
        } else {
            let age = retention.age_ms.filter(|age_ms| is_young(*age_ms));
            age.map(|_| KeepReason::Age)
        }
    };
    let kept = candidates.iter().map(|c| (c.position, reason_of(c)));
    kept.filter_map(|(p, reason)| Some((p, reason?))).collect()
}

fn confirmed_among(
    last: Position,
    candidates: &[Candidate],
    condemned: &[Condemn],
) -> BTreeSet<Position> {
    let parents: BTreeMap<_, _> = candidates.iter().map(|c| (c.position, c.parent)).collect();
    let spared = condemned.iter().flat_map(|record| &record.except);
    let mut confirmed: BTreeSet<Position> = spared
        .filter(|p| parents.contains_key(p) && !is_passed_over(**p, candidates))
        .copied()
        .collect();
    let mut next = Some(last);
    while let Some(position) = next {
        confirmed.insert(position);
        next = parents.get(&position).copied().flatten();
        // A parent is older; one that is not would walk in a circle.
        next = next.filter(|parent| *parent < position);
    }
    confirmed
}

/// Whether a chain of snapshots goes past `position`: some candidate above it goes on from one
/// below it, so that `position` is no ancestor of any that follows.
pub fn is_passed_over(position: Position, candidates: &[Candidate]) -> bool {
    candidates.iter().any(|c| {
        let goes_on_from = c.parent.is_some_and(|parent| parent < position);
        goes_on_from && position < c.position
    })
}

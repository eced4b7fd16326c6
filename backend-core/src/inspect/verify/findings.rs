//! Faults as they come in: a bounded number is kept, all are counted.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::error::{Error, ErrorKind};
use crate::inspect::verify::fault::{Fault, FaultKind};
use crate::manifest::Position;

/// The faults so far.
#[derive(Debug)]
pub(super) struct Findings {
    faults_max: usize,
    kept: Vec<Fault>,
    /// Where the fault of an object and kind lies in `kept`.
    places: BTreeMap<(String, FaultKind), usize>,
    left_out: u64,
    /// The number of faults that hurt a snapshot.
    hurts: BTreeMap<Position, u64>,
}

impl Findings {
    pub(super) fn new(faults_max: usize) -> Self {
        Self {
            faults_max,
            kept: Vec::new(),
            places: BTreeMap::new(),
            left_out: 0,
            hurts: BTreeMap::new(),
        }
    }

    /// Adds a fault of `object` that hurts the snapshots `hurts`, ascending. Faults of one object
    /// and kind are one.
    pub(super) fn add(
        &mut self,
        object: impl Display,
        kind: FaultKind,
        error: Error,
        mut hurts: Vec<Position>,
    ) {
        let object = object.to_string();
        let place = self.places.get(&(object.clone(), kind));
        let before = place.map(|place| &mut self.kept[*place]);
        if let Some(before) = &before {
            hurts.retain(|position| !before.hurts.contains(position));
        }
        for position in &hurts {
            *self.hurts.entry(*position).or_default() += 1;
        }
        if let Some(before) = before {
            before.hurts.extend(hurts);
            before.hurts.sort_unstable();
            return;
        }
        if self.kept.len() >= self.faults_max {
            self.left_out += 1;
            return;
        }
        self.places.insert((object.clone(), kind), self.kept.len());
        let error = match error.fact("object") {
            Some(_) => error,
            None => error.with("object", &object),
        };
        self.kept.push(Fault {
            object,
            kind,
            error,
            hurts,
        });
    }

    /// How many faults hurt the snapshot at `position`.
    pub(super) fn hurting(&self, position: Position) -> u64 {
        self.hurts.get(&position).copied().unwrap_or(0)
    }

    /// Forgets what hurts only snapshots that `is_gone`: they were collected meanwhile. Nothing is
    /// added afterwards.
    pub(super) fn forget(&mut self, is_gone: impl Fn(Position) -> bool) {
        for fault in &mut self.kept {
            let was_hurting = !fault.hurts.is_empty();
            fault.hurts.retain(|position| !is_gone(*position));
            if was_hurting && fault.hurts.is_empty() {
                fault.object.clear();
            }
        }
        self.kept.retain(|fault| !fault.object.is_empty());
        self.hurts.retain(|position, _| !is_gone(*position));
    }

    /// The faults that were kept, by object, and the number of the others.
    pub(super) fn into_faults(mut self) -> (Vec<Fault>, u64) {
        self.kept
            .sort_by(|a, b| (&a.object, a.kind).cmp(&(&b.object, b.kind)));
        (self.kept, self.left_out)
    }
}

/// Whether an error says something of the object, not of the store that was asked.
///
/// # Errors
/// The error, if it is the store's.
pub(super) fn of_object(e: Error) -> Result<Error, Error> {
    match e.kind() {
        ErrorKind::Corrupt
        | ErrorKind::NotFound
        | ErrorKind::Mismatch
        | ErrorKind::Unsupported
        | ErrorKind::Limit
        | ErrorKind::Invalid => Ok(e),
        _ => Err(e),
    }
}

//! What is true whoever knows it, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet};

use super::objects::{Link, Manifest, Store};
use crate::ids::{Epoch, UniqueId};
use crate::manifest::Position;
use crate::store::protocol::ObjectSet;

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A confirmed snapshot that is not condemned is not whole.
    Lost,
    /// A manifest that is not condemned is not whole.
    Hollow,
    /// A snapshot is not whole while it is read under a pin that was confirmed.
    Unpinned,
    /// A confirmed snapshot does not descend from the last one.
    Forked,
    /// What was rolled back is built upon.
    Revived,
    /// The id of a confirmed snapshot is not above the last one's.
    Shrunk,
    /// Two contents are confirmed at one position.
    Twice,
    /// An epoch was claimed although nobody started a coordinator.
    Unasked,
    /// What a task that follows the rules refers to is declined.
    Declined,
    /// What was condemned is not any more.
    Pardoned,
}

/// The faults, with the property that each breaks.
const FAULTS: [(Fault, &str); 10] = [
    (Fault::Lost, "a confirmed snapshot is whole until condemned"),
    (Fault::Hollow, "a manifest is whole until condemned"),
    (
        Fault::Unpinned,
        "a pinned snapshot is whole while it is read",
    ),
    (Fault::Forked, "confirmed snapshots form one chain"),
    (Fault::Revived, "what was rolled back is not built upon"),
    (Fault::Shrunk, "ids of confirmed snapshots grow"),
    (Fault::Twice, "a position is confirmed with one content"),
    (
        Fault::Unasked,
        "an epoch is claimed only by who was started",
    ),
    (
        Fault::Declined,
        "tasks that follow the rules are not declined",
    ),
    (Fault::Pardoned, "what is condemned stays condemned"),
];

/// The name of the property that `fault` breaks.
pub(super) fn property(fault: Fault) -> &'static str {
    let of = FAULTS.iter().find(|(other, _)| *other == fault);
    of.expect("each fault has a property").1
}

/// What was told to the world outside, and the faults so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Truth {
    /// The snapshots for which a permit was given out.
    pub(super) confirmed: BTreeMap<Position, UniqueId>,
    pub(super) last: Option<Position>,
    /// The epoch in which the job was last restored, and the chain of what it was restored from.
    restored: Option<(Epoch, Vec<Position>)>,
    /// What was rolled back within an epoch, as nothing should be.
    pub(super) dropped: BTreeSet<Position>,
    faults: u16,
}

impl Truth {
    pub(super) fn fault(&mut self, fault: Fault) {
        self.faults |= 1 << fault as u16;
    }

    pub(super) fn has(&self, fault: Fault) -> bool {
        self.faults & (1 << fault as u16) != 0
    }

    pub(super) fn is_broken(&self) -> bool {
        self.faults != 0
    }

    /// A permit is given out for `manifest`.
    pub(super) fn confirm(&mut self, manifest: &Manifest) {
        let position = tip(&manifest.chain);
        let asked = self.continues(&manifest.chain);
        if self.last.is_some_and(|last| position.id <= last.id) {
            self.fault(Fault::Shrunk);
        }
        if !asked {
            self.check_restored(&manifest.chain);
        }
        let twin = self.confirmed.insert(position, manifest.unique);
        if twin.is_some_and(|unique| unique != manifest.unique) {
            self.fault(Fault::Twice);
        }
        self.last = Some(position);
    }

    /// Whether `chain` goes on from something that an operator asked for since the last
    /// confirmed snapshot. Otherwise it has to go on from that one.
    fn continues(&mut self, chain: &[Link]) -> bool {
        let Some(last) = self.last else {
            return false;
        };
        let since = chain.iter().filter(|link| link.position > last);
        if since.into_iter().any(|link| link.is_asked) {
            return true;
        }
        if !chain.iter().any(|link| link.position == last) {
            self.fault(Fault::Forked);
        }
        false
    }

    fn check_restored(&mut self, chain: &[Link]) {
        let is_passed_over = |p: &Position| {
            let restored = self.restored.as_ref();
            restored.is_some_and(|(epoch, allowed)| p.epoch < *epoch && !allowed.contains(p))
        };
        let mut positions = chain.iter().map(|link| link.position);
        if positions.any(|p| is_passed_over(&p) || self.dropped.contains(&p)) {
            self.fault(Fault::Revived);
        }
    }

    /// The job is restored from the last of `chain` in `epoch`: what lies in older epochs and not
    /// in the chain is rolled back.
    pub(super) fn restore(&mut self, epoch: Epoch, chain: &[Link]) {
        let positions = chain.iter().map(|link| link.position);
        self.restored = Some((epoch, positions.collect()));
    }

    /// Checks that what must be whole is.
    pub(super) fn check_whole(&mut self, store: &Store, read: Option<&ObjectSet>) {
        if store
            .manifests
            .iter()
            .any(|(p, m)| !store.is_whole(&m.names) && !store.is_given_up(*p))
        {
            self.fault(Fault::Hollow);
        }
        let is_whole = |p: &Position| {
            let manifest = store.manifests.get(p);
            manifest.is_some_and(|m| store.is_whole(&m.names)) || store.is_given_up(*p)
        };
        if !self.confirmed.keys().all(is_whole) {
            self.fault(Fault::Lost);
        }
        if read.is_some_and(|names| !store.is_whole(names)) {
            self.fault(Fault::Unpinned);
        }
    }
}

fn tip(chain: &[Link]) -> Position {
    chain.last().expect("a chain ends in its snapshot").position
}

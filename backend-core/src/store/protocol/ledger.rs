//! What a coordinator remembers between commits: ids, pending snapshots, bases, references.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::contract::{SnapshotMode, Trigger};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Attempt, Epoch, SnapshotId};
use crate::manifest::Position;
use crate::names::ObjectName;
use crate::store::protocol::adopt::fenced;

/// The most snapshots that are pending at a time.
pub const PENDING_MAX: usize = 1_024;

/// A snapshot that was triggered and is neither confirmed nor dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    /// What its tasks were told.
    pub trigger: Trigger,
    /// The job's time-to-live clock at its trigger, in milliseconds since 1970.
    pub ttl_clock_ms: u64,
}

/// What a coordinator may not let go of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holds {
    /// The last confirmed snapshot.
    pub confirmed: Position,
    /// The lowest base of any pending snapshot, and of those to come: objects of this epoch with
    /// a higher id may be referred to.
    pub floor: SnapshotId,
    /// The snapshots that pending ones, and those to come, build on.
    pub bases: BTreeSet<Position>,
}

/// The objects that a manifest names.
pub type ObjectSet = Arc<BTreeSet<ObjectName>>;

/// The state of a coordinator whose adoption is confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ledger {
    epoch: Epoch,
    attempt: Attempt,
    next: SnapshotId,
    confirmed: SnapshotId,
    /// The last confirmed snapshot that increments may build on: savepoints belong to the user
    /// and are passed over, unless an attempt restored from one.
    base: SnapshotId,
    pending: BTreeMap<SnapshotId, Pending>,
    in_doubt: Option<SnapshotId>,
    fenced_by: Option<Epoch>,
    /// Of the base, the last confirmed snapshot, and the bases of pending ones.
    objects: BTreeMap<SnapshotId, ObjectSet>,
    /// Of confirmed savepoints above the lowest base: increments must not refer to them.
    savepoints: BTreeMap<SnapshotId, ObjectSet>,
}

impl Ledger {
    /// The ledger of `epoch` after its adoption manifest `adopted`, which names `objects`, was
    /// confirmed.
    pub fn new(epoch: Epoch, adopted: SnapshotId, objects: ObjectSet) -> Self {
        Self {
            epoch,
            attempt: Attempt(0),
            next: adopted.next(),
            confirmed: adopted,
            base: adopted,
            pending: BTreeMap::new(),
            in_doubt: None,
            fenced_by: None,
            objects: BTreeMap::from([(adopted, objects)]),
            savepoints: BTreeMap::new(),
        }
    }

    /// The coordinator's epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The running attempt.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// The last confirmed snapshot.
    pub fn confirmed(&self) -> SnapshotId {
        self.confirmed
    }

    /// The pending snapshots, ascending.
    pub fn pending(&self) -> impl Iterator<Item = &Pending> {
        self.pending.values()
    }

    /// The lowest base of any pending snapshot, else that of the next one: nothing that it names
    /// may be collected.
    pub fn floor(&self) -> SnapshotId {
        let bases = self.pending.values().filter_map(|p| p.trigger.base);
        bases.min().unwrap_or(self.base)
    }

    /// What a collection that begins now has to spare.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`]; [`ErrorKind::InDoubt`] while it is not known which snapshot is the
    /// last.
    pub fn holds(&self) -> Result<Holds> {
        self.check_leads()?;
        self.check_settled(None)?;
        let at = |id: &SnapshotId| Position::new(self.epoch, *id);
        Ok(Holds {
            confirmed: at(&self.confirmed),
            floor: self.floor(),
            bases: self.objects.keys().map(at).collect(),
        })
    }

    /// Gives out the next id.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`]; [`ErrorKind::Limit`] if too many snapshots are pending.
    pub fn trigger(&mut self, mode: SnapshotMode, ttl_clock_ms: u64) -> Result<Trigger> {
        self.check_leads()?;
        if self.pending.len() >= PENDING_MAX {
            return Err(
                Error::new(ErrorKind::Limit, "too many snapshots are pending")
                    .with("pending_max", PENDING_MAX),
            );
        }
        let trigger = Trigger {
            epoch: self.epoch,
            id: self.next,
            base: Some(self.base),
            attempt: self.attempt,
            mode,
        };
        let pending = Pending {
            trigger,
            ttl_clock_ms,
        };
        self.pending.insert(self.next, pending);
        self.next = self.next.next();
        Ok(trigger)
    }

    /// The pending snapshot `id`, if it may be committed now.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`]; [`ErrorKind::InDoubt`] while another commit is in doubt;
    /// [`ErrorKind::Declined`] if `id` was subsumed by a newer one, aborted, or is of an older
    /// attempt; [`ErrorKind::Invalid`] if it was never triggered.
    pub fn committable(&self, id: SnapshotId) -> Result<Pending> {
        self.check_leads()?;
        self.check_settled(Some(id))?;
        if let Some(pending) = self.pending.get(&id) {
            return Ok(*pending);
        }
        let (kind, message) = if id >= self.next {
            (ErrorKind::Invalid, "the snapshot was never triggered")
        } else if id == self.confirmed {
            (ErrorKind::Invalid, "the snapshot is confirmed already")
        } else if id < self.confirmed {
            (ErrorKind::Declined, "a newer snapshot has been confirmed")
        } else {
            (
                ErrorKind::Declined,
                "the snapshot was aborted or its attempt ended",
            )
        };
        Err(Error::new(kind, message)
            .with("snapshot", id)
            .with("confirmed", self.confirmed))
    }

    /// Whether an acknowledgement of `position` under `attempt` belongs to `pending`. Two epochs
    /// may have given out one id, if the older one confirmed nothing under it.
    ///
    /// # Errors
    /// [`ErrorKind::Declined`] that says what was expected.
    pub fn check_ack(&self, pending: &Pending, position: Position, attempt: Attempt) -> Result<()> {
        let trigger = &pending.trigger;
        let (expected, got) = (Position::new(trigger.epoch, trigger.id), position);
        if expected != got {
            return Err(
                declined("an acknowledgement is of another snapshot").expected_got(expected, got)
            );
        }
        if attempt != trigger.attempt {
            return Err(declined("an acknowledgement is of another attempt")
                .with("snapshot", position)
                .expected_got(trigger.attempt.0, attempt.0));
        }
        Ok(())
    }

    /// Whether `pending` may refer to all of `objects`: those of its base, and those that were
    /// written in this epoch for ids above the base and up to its own.
    ///
    /// # Errors
    /// [`ErrorKind::Declined`] that names the object.
    pub fn check_references<'a>(
        &self,
        pending: &Pending,
        objects: impl IntoIterator<Item = &'a ObjectName>,
    ) -> Result<()> {
        let trigger = &pending.trigger;
        let base = trigger.base.expect("a ledger's triggers have a base");
        let of_base = self
            .objects
            .get(&base)
            .expect("the objects of a pending snapshot's base are kept");
        let is_savepoint = trigger.mode == SnapshotMode::Savepoint;
        let lowest = if is_savepoint {
            trigger.id
        } else {
            base.next()
        };
        for object in objects {
            let (epoch, id) = written_for(object);
            let is_new = epoch == self.epoch && lowest <= id && id <= trigger.id;
            let is_users = self.savepoints.values().any(|names| names.contains(object));
            let may = if is_savepoint {
                is_new
            } else {
                of_base.contains(object) || (is_new && !is_users)
            };
            if !may {
                return Err(
                    declined("a snapshot refers to an object that it may not rely on")
                        .with("object", object)
                        .with("snapshot", trigger.id)
                        .with("base", base),
                );
            }
        }
        Ok(())
    }

    /// The manifest of `id` is about to be created: until the outcome is known, it is in doubt.
    pub fn on_commit_begun(&mut self, id: SnapshotId) {
        self.in_doubt = Some(id);
    }

    /// The commit that was begun last has done nothing.
    pub fn on_commit_refused(&mut self) {
        self.in_doubt = None;
    }

    /// The snapshot in doubt.
    pub fn in_doubt(&self) -> Option<SnapshotId> {
        self.in_doubt
    }

    /// The snapshot `id`, whose manifest names `objects`, is confirmed. Older pending ones are
    /// subsumed.
    pub fn on_confirmed(&mut self, id: SnapshotId, objects: ObjectSet) {
        self.in_doubt = None;
        let Some(pending) = self.pending.remove(&id) else {
            return;
        };
        self.pending = self.pending.split_off(&id);
        self.confirmed = id;
        if pending.trigger.mode == SnapshotMode::Savepoint {
            self.savepoints.insert(id, Arc::clone(&objects));
        } else {
            self.base = id;
        }
        self.objects.insert(id, objects);
        self.forget();
    }

    /// A later epoch exists: nothing is confirmed any more.
    pub fn on_fenced(&mut self, by: Epoch) {
        self.in_doubt = None;
        self.pending.clear();
        self.fenced_by = Some(by);
    }

    /// Gives up a pending snapshot. It rolls nothing back, and its id is not used again.
    ///
    /// # Errors
    /// [`ErrorKind::InDoubt`] if it may have been committed; [`ErrorKind::Fenced`];
    /// [`ErrorKind::Invalid`] if it was never triggered, or is the last confirmed one.
    pub fn abort(&mut self, id: SnapshotId) -> Result<()> {
        self.check_leads()?;
        self.check_settled(None)?;
        if id >= self.next {
            return Err(
                Error::new(ErrorKind::Invalid, "the snapshot was never triggered")
                    .with("snapshot", id),
            );
        }
        if id == self.confirmed {
            return Err(
                Error::new(ErrorKind::Invalid, "the snapshot is confirmed already")
                    .with("snapshot", id),
            );
        }
        self.pending.remove(&id);
        self.forget();
        Ok(())
    }

    /// The job restarts from the last confirmed snapshot: every pending one is dead.
    ///
    /// # Errors
    /// [`ErrorKind::InDoubt`] while it is not known which snapshot is the last;
    /// [`ErrorKind::Fenced`].
    pub fn next_attempt(&mut self) -> Result<Attempt> {
        self.check_leads()?;
        self.check_settled(None)?;
        self.attempt = Attempt(self.attempt.0 + 1);
        self.pending.clear();
        self.base = self.confirmed;
        self.savepoints.remove(&self.confirmed);
        self.forget();
        Ok(self.attempt)
    }

    /// # Errors
    /// [`ErrorKind::Fenced`] if a later epoch is known.
    pub fn check_leads(&self) -> Result<()> {
        self.fenced_by
            .map_or(Ok(()), |by| Err(fenced(self.epoch, by)))
    }

    fn check_settled(&self, except: Option<SnapshotId>) -> Result<()> {
        match self.in_doubt {
            Some(id) if Some(id) != except => Err(Error::new(
                ErrorKind::InDoubt,
                "a commit is in doubt: commit it again first",
            )
            .with("snapshot", id)),
            _ => Ok(()),
        }
    }

    fn forget(&mut self) {
        let mut kept: BTreeSet<_> = self
            .pending
            .values()
            .filter_map(|p| p.trigger.base)
            .collect();
        kept.extend([self.base, self.confirmed]);
        self.objects.retain(|id, _| kept.contains(id));
        let floor = self.floor();
        self.savepoints.retain(|id, _| *id > floor);
    }
}

fn declined(message: &'static str) -> Error {
    Error::new(ErrorKind::Declined, message)
}

/// The epoch and the snapshot that an object of state was written for.
pub(super) fn written_for(object: &ObjectName) -> (Epoch, SnapshotId) {
    match object {
        ObjectName::Segment(name) => (name.epoch, name.snapshot),
        ObjectName::Parts(name) => (name.epoch, name.snapshot),
        // Nothing else holds state, and epoch 0 does not exist.
        ObjectName::Epoch(_)
        | ObjectName::Manifest(..)
        | ObjectName::Collect(..)
        | ObjectName::Pin(_)
        | ObjectName::Claimed(..)
        | ObjectName::Probe(_) => (Epoch(0), SnapshotId(0)),
    }
}

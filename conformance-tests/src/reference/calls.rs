//! What the calls of the reference backend's store have in common.

use std::sync::Arc;

use backend_core::limits::{SUB_KEY_BYTES_MAX, VALUE_BYTES_MAX};
use backend_core::ttl::Switch;
use backend_core::{
    Error, ErrorKind, Pressure, Result, StateDescriptor, StateId, StateKey, StateKind, StateUid,
};
use bytes::Bytes;

use super::entries::{Inner, Place, place_of};
use super::expiry::switched;
use super::flaw::Flaw;
use super::store::ReferenceStore;
use super::timers;
use super::write::Lineage;

impl ReferenceStore {
    pub(super) fn is(&self, flaw: Flaw) -> bool {
        self.writer.is(flaw)
    }

    /// Where `key` lies in a state of `kind`, if the call is right.
    pub(super) fn place(&self, state: StateId, kind: StateKind, key: &StateKey) -> Result<Place> {
        let descriptor = self.descriptor(state)?;
        if descriptor.kind != kind && !self.is(Flaw::IgnoresKinds) {
            return Err(Error::new(ErrorKind::Mismatch, "a state of another kind")
                .with("state", &descriptor.name)
                .expected_got(descriptor.kind, kind));
        }
        self.place_of_any(state, key)
    }

    pub(super) fn place_of_any(&self, state: StateId, key: &StateKey) -> Result<Place> {
        let scope = &self.writer.scope;
        if !scope.range.contains(key.hash()) && !self.is(Flaw::TakesForeignKeys) {
            return Err(Error::new(ErrorKind::Invalid, "a key of another task")
                .expected_got(scope.range, format_args!("{:016x}", key.hash())));
        }
        let uid = self.descriptor(state)?.uid();
        Ok(place_of(uid, key, self.writer.flaw))
    }

    /// The uid of a state of timers, if the call is right.
    pub(super) fn timers_of(&self, state: StateId, key: Option<&StateKey>) -> Result<StateUid> {
        let descriptor = self.descriptor(state)?;
        if descriptor.kind != StateKind::Timers {
            return Err(Error::new(ErrorKind::Mismatch, "a state of another kind")
                .with("state", &descriptor.name)
                .expected_got(descriptor.kind, StateKind::Timers));
        }
        if let Some(key) = key {
            self.place_of_any(state, key)?;
        }
        Ok(descriptor.uid())
    }

    pub(super) fn sorted_timers(&self, state: StateUid) -> Vec<timers::Owned> {
        timers::sorted(&self.entries, state, self.writer.flaw)
    }

    /// Refuses a call for keyed state on timers.
    pub(super) fn check_keyed(&self, state: StateId) -> Result<()> {
        let descriptor = self.descriptor(state)?;
        if descriptor.kind == StateKind::Timers {
            return Err(
                Error::new(ErrorKind::Mismatch, "timers have no keyed entries")
                    .with("state", &descriptor.name),
            );
        }
        Ok(())
    }

    pub(super) fn descriptor(&self, state: StateId) -> Result<&StateDescriptor> {
        let descriptor = self.states.get(state.0 as usize);
        descriptor.ok_or_else(|| Error::new(ErrorKind::Invalid, "no such state"))
    }

    pub(super) fn check_size(&self, what: &'static str, got: usize, max: usize) -> Result<()> {
        if got <= max || self.is(Flaw::IgnoresLimits) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Limit, "too many bytes for one write")
            .with("what", what)
            .with("bytes_max", max)
            .with("got", got))
    }

    pub(super) fn edit(&mut self, place: &Place, edit: impl FnOnce(&mut Inner)) {
        self.writes += 1;
        let entries = Arc::make_mut(&mut self.entries);
        let inner = Arc::make_mut(entries.entry(place.clone()).or_default());
        edit(inner);
        let keeps_empty = self.writer.is(Flaw::KeepsEmptyMaps);
        if inner.is_empty() && !keeps_empty {
            entries.remove(place);
        }
        self.publish();
    }

    pub(super) fn insert(
        &mut self,
        place: &Place,
        sub_key: &[u8],
        value: &[u8],
    ) -> Result<Pressure> {
        self.check_size("value", value.len(), VALUE_BYTES_MAX)?;
        self.check_size("sub-key", sub_key.len(), SUB_KEY_BYTES_MAX)?;
        self.edit(place, |inner| {
            inner.insert(sub_key.into(), Bytes::copy_from_slice(value));
        });
        Ok(Pressure::None)
    }

    pub(super) fn remove_all(&mut self, place: Place) {
        if self.is(Flaw::KeepsTombstones) {
            self.leaked_bytes += place.1.len() as u64 + 32;
        }
        Arc::make_mut(&mut self.entries).remove(&place);
        self.cleared.insert(place);
        self.publish();
    }

    /// What was durable, and takes what is frozen now for durable: in a backend that is wrong.
    pub(super) fn cover_early(&self) -> Option<Lineage> {
        if !self.is(Flaw::CoversTooEarly) {
            return None;
        }
        let mut lineage = self.writer.lineage.lock();
        let covered = lineage.clone();
        lineage.entries = Arc::clone(&self.entries);
        lineage.generation = self.generation;
        Some(covered)
    }

    /// Shows the live state to those parts of a wrong backend that look at it.
    pub(super) fn publish(&self) {
        if self.is(Flaw::SnapshotsLive) || self.is(Flaw::ListsLive) {
            *self.writer.live.lock() = Arc::clone(&self.entries);
        }
    }

    /// Takes over a restored state under another time to live.
    pub(super) fn claim(&mut self, index: usize, wanted: &StateDescriptor) -> Result<()> {
        let now_ms = self.environment.now_ms();
        let switch = Switch::between(&self.states[index], wanted, now_ms);
        let is_first = self.claimed.insert(wanted.uid());
        if switch != Switch::Nothing && !is_first {
            return Err(
                Error::new(ErrorKind::Mismatch, "a time to live is switched too late")
                    .with("state", &wanted.name),
            );
        }
        self.states[index].ttl = wanted.ttl;
        switched(Arc::make_mut(&mut self.entries), wanted.uid(), switch);
        Ok(())
    }

    pub(super) fn append(&mut self, place: &Place, element: &[u8]) -> Result<Pressure> {
        let is_there = |inner: &Arc<Inner>| inner.values().any(|known| known == element);
        if self.is(Flaw::DropsDuplicates) && self.entries.get(place).is_some_and(is_there) {
            return Ok(Pressure::None);
        }
        self.elements += 1;
        let index = if self.is(Flaw::LosesListOrder) {
            u64::MAX - self.elements
        } else {
            self.elements
        };
        let mut sub_key = [0; 12];
        sub_key[..4].copy_from_slice(&self.generation.0.to_be_bytes());
        sub_key[4..].copy_from_slice(&index.to_be_bytes());
        self.insert(place, &sub_key, element)
    }
}

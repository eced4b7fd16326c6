//! The reference backend's store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use backend_core::clock::SharedEnvironment;
use backend_core::limits::{SUB_KEY_BYTES_MAX, VALUE_BYTES_MAX};
use backend_core::ttl::Switch;
use backend_core::{
    EditAction, EditFn, EditManyFn, EntryBatch, Error, ErrorKind, Fetch, Generation, KeyCursor,
    KeyedStore, PendingSnapshot, Pressure, Result, SnapshotId, StateDescriptor, StateId, StateKey,
    StateKind, StateUid, StateView, SubKeyRange, TaskScope, Trigger, ValueBatch, ValueEdit,
    ValueRef,
};
use bytes::Bytes;

use super::entries::{Entries, Inner, Keys, Place, bytes_of, get, place_of, scan};
use super::expiry::{drop_expired, switched};
use super::flaw::Flaw;
use super::view::ReferenceView;
use super::write::{Freeze, Lineage, Writer};

pub(super) struct ReferenceStore {
    pub(super) writer: Writer,
    pub(super) states: Vec<StateDescriptor>,
    pub(super) entries: Arc<Entries>,
    pub(super) generation: Generation,
    /// The number of list elements that were appended.
    pub(super) elements: u64,
    /// The keys that were cleared in this generation.
    pub(super) cleared: BTreeSet<Place>,
    pub(super) last_snapshot: Option<SnapshotId>,
    pub(super) environment: SharedEnvironment,
    /// The states that were registered since the restore.
    pub(super) claimed: BTreeSet<StateUid>,
    /// For backends that are wrong: writes so far, and bytes that are never freed.
    pub(super) writes: u64,
    pub(super) leaked_bytes: u64,
}

impl ReferenceStore {
    fn is(&self, flaw: Flaw) -> bool {
        self.writer.is(flaw)
    }

    /// Where `key` lies in a state of `kind`, if the call is right.
    fn place(&self, state: StateId, kind: StateKind, key: &StateKey) -> Result<Place> {
        let descriptor = self.descriptor(state)?;
        if descriptor.kind != kind && !self.is(Flaw::IgnoresKinds) {
            return Err(Error::new(ErrorKind::Mismatch, "a state of another kind")
                .with("state", &descriptor.name)
                .expected_got(descriptor.kind, kind));
        }
        self.place_of_any(state, key)
    }

    fn place_of_any(&self, state: StateId, key: &StateKey) -> Result<Place> {
        let scope = &self.writer.scope;
        if !scope.range.contains(key.hash()) && !self.is(Flaw::TakesForeignKeys) {
            return Err(Error::new(ErrorKind::Invalid, "a key of another task")
                .expected_got(scope.range, format_args!("{:016x}", key.hash())));
        }
        let uid = self.descriptor(state)?.uid();
        Ok(place_of(uid, key, self.writer.flaw))
    }

    fn descriptor(&self, state: StateId) -> Result<&StateDescriptor> {
        let descriptor = self.states.get(state.0 as usize);
        descriptor.ok_or_else(|| Error::new(ErrorKind::Invalid, "no such state"))
    }

    fn check_size(&self, what: &'static str, got: usize, max: usize) -> Result<()> {
        if got <= max || self.is(Flaw::IgnoresLimits) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Limit, "too many bytes for one write")
            .with("what", what)
            .with("bytes_max", max)
            .with("got", got))
    }

    fn edit(&mut self, place: &Place, edit: impl FnOnce(&mut Inner)) {
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

    fn insert(&mut self, place: &Place, sub_key: &[u8], value: &[u8]) -> Result<Pressure> {
        self.check_size("value", value.len(), VALUE_BYTES_MAX)?;
        self.check_size("sub-key", sub_key.len(), SUB_KEY_BYTES_MAX)?;
        self.edit(place, |inner| {
            inner.insert(sub_key.into(), Bytes::copy_from_slice(value));
        });
        Ok(Pressure::None)
    }

    fn remove_all(&mut self, place: Place) {
        if self.is(Flaw::KeepsTombstones) {
            self.leaked_bytes += place.1.len() as u64 + 32;
        }
        Arc::make_mut(&mut self.entries).remove(&place);
        self.cleared.insert(place);
        self.publish();
    }

    /// What was durable, and takes what is frozen now for durable: in a backend that is wrong.
    fn cover_early(&self) -> Option<Lineage> {
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
    fn publish(&self) {
        if self.is(Flaw::SnapshotsLive) || self.is(Flaw::ListsLive) {
            *self.writer.live.lock() = Arc::clone(&self.entries);
        }
    }

    /// Takes over a restored state under another time to live.
    fn claim(&mut self, index: usize, wanted: &StateDescriptor) -> Result<()> {
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

    fn append(&mut self, place: &Place, element: &[u8]) -> Result<Pressure> {
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

impl KeyedStore for ReferenceStore {
    fn scope(&self) -> &TaskScope {
        &self.writer.scope
    }

    fn register(&mut self, descriptor: &StateDescriptor) -> Result<StateId> {
        descriptor.validate()?;
        let known = self.states.iter().position(|s| s.name == descriptor.name);
        if let Some(index) = known {
            if !self.is(Flaw::IgnoresKinds) {
                self.states[index].check_compatible(descriptor)?;
            }
            self.claim(index, descriptor)?;
            return Ok(StateId(index as u32));
        }
        self.claimed.insert(descriptor.uid());
        self.states.push(descriptor.clone());
        Ok(StateId(self.states.len() as u32 - 1))
    }

    fn states(&self) -> Vec<StateDescriptor> {
        self.states.clone()
    }

    fn get<'a>(&'a mut self, state: StateId, key: &'a StateKey) -> Fetch<'a, Option<ValueRef<'a>>> {
        match self.place(state, StateKind::Value, key) {
            Ok(place) => Fetch::ready(get(&self.entries, &place, &[], self.writer.flaw)),
            Err(e) => Fetch::from_result(Err(e)),
        }
    }

    fn put(&mut self, state: StateId, key: &StateKey, value: &[u8]) -> Result<Pressure> {
        let place = self.place(state, StateKind::Value, key)?;
        self.insert(&place, &[], value)
    }

    fn clear(&mut self, state: StateId, key: &StateKey) -> Result<Pressure> {
        let place = self.place_of_any(state, key)?;
        self.remove_all(place);
        Ok(Pressure::None)
    }

    fn try_update(
        &mut self,
        state: StateId,
        key: &StateKey,
        edit: &mut EditFn<'_>,
    ) -> Option<Result<Pressure>> {
        let place = match self.place(state, StateKind::Value, key) {
            Ok(place) => place,
            Err(e) => return Some(Err(e)),
        };
        let mut value = ValueEdit::default();
        let old = self
            .entries
            .get(&place)
            .and_then(|inner| inner.get(&[][..]));
        edit(old.map(|old| &old[..]), &mut value);
        match value.action() {
            EditAction::Keep => {}
            EditAction::Put => return Some(self.insert(&place, &[], value.bytes())),
            EditAction::Clear => self.remove_all(place),
        }
        Some(Ok(Pressure::None))
    }

    fn get_many<'a>(
        &'a mut self,
        state: StateId,
        keys: &'a [StateKey],
        out: &'a mut ValueBatch,
    ) -> Fetch<'a, ()> {
        for key in keys {
            match self.get(state, key).wait() {
                Ok(value) => out.push(value.as_deref()),
                Err(e) => return Fetch::from_result(Err(e)),
            }
        }
        Fetch::ready(())
    }

    fn try_update_many(
        &mut self,
        state: StateId,
        keys: &[StateKey],
        edit: &mut EditManyFn<'_>,
    ) -> Option<Result<Pressure>> {
        for (index, key) in keys.iter().enumerate() {
            if self.is(Flaw::UpdatesOnce) && keys[..index].contains(key) {
                continue;
            }
            let mut edit_one = |old: Option<&[u8]>, value: &mut ValueEdit| edit(index, old, value);
            if let Err(e) = self.try_update(state, key, &mut edit_one)? {
                return Some(Err(e));
            }
        }
        Some(Ok(Pressure::None))
    }

    fn list_append(&mut self, state: StateId, key: &StateKey, element: &[u8]) -> Result<Pressure> {
        let place = self.place(state, StateKind::List, key)?;
        self.append(&place, element)
    }

    fn list_set(
        &mut self,
        state: StateId,
        key: &StateKey,
        sub_key: &[u8],
        element: Option<&[u8]>,
    ) -> Result<Pressure> {
        let place = self.place(state, StateKind::List, key)?;
        let is_there = |inner: &Arc<Inner>| inner.contains_key(sub_key);
        if !self.entries.get(&place).is_some_and(is_there) {
            return Ok(Pressure::None);
        }
        if let Some(element) = element {
            return self.insert(&place, sub_key, element);
        }
        self.edit(&place, |inner| drop(inner.remove(sub_key)));
        Ok(Pressure::None)
    }

    fn list_replace(
        &mut self,
        state: StateId,
        key: &StateKey,
        elements: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<Pressure> {
        let place = self.place(state, StateKind::List, key)?;
        self.remove_all(place.clone());
        for element in elements {
            self.append(&place.clone(), element)?;
        }
        Ok(Pressure::None)
    }

    fn map_get<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        sub_key: &'a [u8],
    ) -> Fetch<'a, Option<ValueRef<'a>>> {
        match self.place(state, StateKind::Map, key) {
            Ok(place) => Fetch::ready(get(&self.entries, &place, sub_key, self.writer.flaw)),
            Err(e) => Fetch::from_result(Err(e)),
        }
    }

    fn map_put(
        &mut self,
        state: StateId,
        key: &StateKey,
        sub_key: &[u8],
        value: &[u8],
    ) -> Result<Pressure> {
        let place = self.place(state, StateKind::Map, key)?;
        self.insert(&place, sub_key, value)
    }

    fn map_remove(&mut self, state: StateId, key: &StateKey, sub_key: &[u8]) -> Result<Pressure> {
        let place = self.place(state, StateKind::Map, key)?;
        if self.entries.contains_key(&place) {
            self.edit(&place, |inner| drop(inner.remove(sub_key)));
        }
        Ok(Pressure::None)
    }

    fn scan<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        range: &'a SubKeyRange,
        batch: &'a mut EntryBatch,
    ) -> Fetch<'a, ()> {
        Fetch::from_result(self.place_of_any(state, key).map(|place| {
            scan(&self.entries, &place, range, batch, self.writer.flaw);
        }))
    }

    fn keys(&mut self, state: StateId, namespace: Option<&[u8]>) -> Result<Box<dyn KeyCursor>> {
        let uid = self.descriptor(state)?.uid();
        let live = self
            .is(Flaw::ListsLive)
            .then(|| Arc::clone(&self.writer.live));
        let keys = Keys::new(&self.entries, live, uid, namespace, self.writer.flaw);
        Ok(Box::new(keys))
    }

    fn entry_count(&mut self, state: StateId) -> Fetch<'_, u64> {
        if self.is(Flaw::CountsWrites) {
            return Fetch::ready(self.writes);
        }
        Fetch::from_result(self.descriptor(state).map(|descriptor| {
            let uid = descriptor.uid();
            let inners = self.entries.iter().filter(|(place, _)| place.0 == uid);
            inners.map(|(_, inner)| inner.len() as u64).sum()
        }))
    }

    fn prefetch(&mut self, _state: StateId, _keys: &[StateKey]) -> Fetch<'static, ()> {
        Fetch::ready(())
    }

    fn view(&mut self) -> Result<Box<dyn StateView>> {
        Ok(Box::new(ReferenceView {
            entries: Arc::clone(&self.entries),
            states: self.states.iter().map(StateDescriptor::uid).collect(),
            flaw: self.writer.flaw,
        }))
    }

    fn snapshot(&mut self, trigger: &Trigger) -> Result<PendingSnapshot> {
        if self.last_snapshot >= Some(trigger.id) && !self.is(Flaw::IgnoresTriggerOrder) {
            return Err(
                Error::new(ErrorKind::Invalid, "a trigger's id is above earlier ones")
                    .with("id", trigger.id),
            );
        }
        self.last_snapshot = Some(trigger.id);
        let freeze = Freeze {
            trigger: *trigger,
            generation: self.generation,
            entries: Arc::clone(&self.entries),
            states: self.states.clone(),
            clock_ms: self.environment.now_ms(),
            covered: self.cover_early(),
            cleared: std::mem::take(&mut self.cleared),
        };
        if self.is(Flaw::CopiesAtFreeze) {
            self.leaked_bytes = bytes_of(&self.entries);
        }
        self.generation = self.generation.next();
        let generation = freeze.generation;
        let write = self.writer.clone().write(freeze);
        Ok(PendingSnapshot::new(
            trigger.id,
            generation,
            Duration::ZERO,
            write,
        ))
    }

    fn confirm(&mut self, _snapshot: SnapshotId) {}

    fn abort(&mut self, _snapshot: SnapshotId) {
        if self.is(Flaw::RollsBack) {
            self.entries = Arc::clone(&self.writer.lineage.lock().entries);
        }
    }

    fn maintain(&mut self) -> Fetch<'_, Pressure> {
        if !self.is(Flaw::ForgetsSweeps) {
            let now_ms = self.environment.now_ms();
            let entries = Arc::make_mut(&mut self.entries);
            drop_expired(entries, &self.states, now_ms, self.writer.flaw);
            self.publish();
        }
        Fetch::ready(Pressure::None)
    }

    fn memory_bytes(&self) -> u64 {
        bytes_of(&self.entries) + self.leaked_bytes
    }
}

//! The reference backend's store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use backend_core::clock::SharedEnvironment;
use backend_core::{
    EditAction, EditFn, EditManyFn, EntryBatch, Error, ErrorKind, Fetch, Generation, HashRange,
    KeyCursor, KeyedStore, PendingSnapshot, Pressure, Result, SnapshotId, StateDescriptor, StateId,
    StateKey, StateKind, StateUid, StateView, SubKeyRange, TaskScope, Timer, TimerAdded,
    TimerBatch, Trigger, ValueBatch, ValueEdit, ValueRef,
};

use super::entries::{Entries, Inner, Keys, Place, bytes_of, get, scan};
use super::expiry::drop_expired;
use super::flaw::Flaw;
use super::timers;
use super::view::ReferenceView;
use super::write::{Freeze, Writer};

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
        self.check_keyed(state)?;
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
        let place = self.check_keyed(state);
        let place = place.and_then(|()| self.place_of_any(state, key));
        Fetch::from_result(place.map(|place| {
            scan(&self.entries, &place, range, batch, self.writer.flaw);
        }))
    }

    fn timer_add(&mut self, state: StateId, key: &StateKey, time: i64) -> Result<TimerAdded> {
        let uid = self.timers_of(state, Some(key))?;
        let least = |store: &Self| store.sorted_timers(uid).first().map(|timer| timer.0);
        let before = least(self);
        timers::add(
            Arc::make_mut(&mut self.entries),
            uid,
            key,
            time,
            self.writer.flaw,
        );
        self.publish();
        let head_changed = least(self) != before || self.is(Flaw::AlwaysChangesHead);
        Ok(TimerAdded {
            pressure: Pressure::None,
            head_changed,
        })
    }

    fn timer_remove<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        time: i64,
    ) -> Fetch<'a, bool> {
        let removed = self.timers_of(state, Some(key)).map(|uid| {
            let entries = Arc::make_mut(&mut self.entries);
            timers::remove(entries, uid, time, key.key(), key.namespace())
        });
        self.publish();
        Fetch::from_result(removed)
    }

    fn timer_next(&mut self, state: StateId) -> Fetch<'_, Option<i64>> {
        let uid = self.timers_of(state, None);
        Fetch::from_result(uid.map(|uid| self.sorted_timers(uid).first().map(|timer| timer.0)))
    }

    fn timers_pop<'a>(
        &'a mut self,
        state: StateId,
        until: i64,
        batch: &'a mut TimerBatch,
    ) -> Fetch<'a, ()> {
        let uid = match self.timers_of(state, None) {
            Ok(uid) => uid,
            Err(e) => return Fetch::from_result(Err(e)),
        };
        for (time, _, key, namespace) in self.sorted_timers(uid) {
            if time > until {
                break;
            }
            if batch.is_full() {
                return Fetch::ready(());
            }
            let (key, namespace) = (&*key, &*namespace);
            batch.push(&Timer {
                time,
                key,
                namespace,
            });
            let entries = Arc::make_mut(&mut self.entries);
            timers::remove(entries, uid, time, key, namespace);
        }
        batch.set_complete();
        self.publish();
        Fetch::ready(())
    }

    fn timers_scan<'a>(
        &'a mut self,
        state: StateId,
        range: HashRange,
        after: Option<Timer<'a>>,
        batch: &'a mut TimerBatch,
    ) -> Fetch<'a, ()> {
        let hasher = self.writer.scope.hasher;
        Fetch::from_result(self.timers_of(state, None).map(|uid| {
            for timer in self.sorted_timers(uid) {
                if !timers::is_wanted(&timer, range, &hasher, after.as_ref()) {
                    continue;
                }
                if batch.is_full() {
                    return;
                }
                let (time, _, key, namespace) = &timer;
                batch.push(&Timer {
                    time: *time,
                    key,
                    namespace,
                });
            }
            batch.set_complete();
        }))
    }

    fn keys(&mut self, state: StateId, namespace: Option<&[u8]>) -> Result<Box<dyn KeyCursor>> {
        self.check_keyed(state)?;
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

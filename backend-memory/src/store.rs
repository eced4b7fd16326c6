//! The state of one task, in memory.

use backend_core::contract::{EditFn, EditManyFn};
use backend_core::generation::WriteContext;
use backend_core::limits::{SUB_KEY_BYTES_MAX, VALUE_BYTES_MAX};
use backend_core::lineage::Lineage;
use backend_core::ttl::is_expired;
use backend_core::{
    EntryBatch, Error, ErrorKind, Fetch, Generation, HashRange, KeyCursor, KeyedStore,
    PendingSnapshot, Pressure, Result, SnapshotId, StateDescriptor, StateId, StateKey, StateKind,
    StateView, SubKeyRange, TaskScope, Timer, TimerAdded, TimerBatch, Trigger, ValueBatch,
    ValueRef,
};
use tokio::sync::watch;

use crate::gauge::MemoryGauge;
use crate::shared::Shared;
use crate::snapshot::{self, Frozen};
use crate::states::{State, States, check_owner, wrong_kind, wrong_range};
use crate::view::MemoryView;

/// Pages that one [`KeyedStore::maintain`] looks at for tombstones to drop, per state.
const SWEEP_PAGES: usize = 256;

/// Entries that one [`KeyedStore::maintain`] looks at for those that have expired, per state.
const EXPIRE_ENTRIES: usize = 4_096;

/// The state of one task, in memory.
#[derive(Debug)]
pub(crate) struct MemoryStore {
    scope: TaskScope,
    states: States,
    context: WriteContext,
    lineage: Lineage,
    last_snapshot: SnapshotId,
    memory: MemoryGauge,
    /// Dropped with the store, which cancels the snapshots that are still being written.
    open: watch::Sender<()>,
    shared: Shared,
}

impl MemoryStore {
    pub(crate) fn empty(shared: Shared, scope: TaskScope) -> Self {
        let lineage = Lineage::empty(shared.options.chain.clone());
        Self::with(shared, scope, States::default(), lineage, Generation::ZERO)
    }

    /// A store of `states`, all of whose content has stamps up to `restored`.
    pub(crate) fn with(
        shared: Shared,
        scope: TaskScope,
        states: States,
        lineage: Lineage,
        restored: Generation,
    ) -> Self {
        let context = lineage.write_context(restored.next(), shared.options.incremental);
        let memory = MemoryGauge::new(shared.options.memory_bytes_max);
        let open = watch::Sender::new(());
        let last_snapshot = SnapshotId(0);
        Self {
            scope,
            states,
            context,
            lineage,
            last_snapshot,
            memory,
            open,
            shared,
        }
    }

    /// Brings what writes know about durable and pending snapshots up to date.
    fn refresh_context(&mut self) {
        let incremental = self.shared.options.incremental;
        self.context = self
            .lineage
            .write_context(self.context.generation, incremental);
    }

    #[inline]
    fn pressure(&mut self) -> Pressure {
        let states = &self.states;
        self.memory
            .after_write(|| states.iter().map(State::memory_bytes).sum())
    }

    /// Checks that `keys` may be used with the values of `state`.
    fn check_keys(&mut self, id: StateId, keys: &[StateKey]) -> Result<()> {
        let state = self.states.state(id)?;
        if state.descriptor.kind != StateKind::Value {
            return Err(wrong_kind(&state.descriptor, StateKind::Value));
        }
        match keys
            .iter()
            .find(|key| !self.scope.range.contains(key.hash()))
        {
            Some(key) => Err(wrong_range(key, &self.scope)),
            None => Ok(()),
        }
    }
}

impl KeyedStore for MemoryStore {
    fn scope(&self) -> &TaskScope {
        &self.scope
    }

    fn register(&mut self, descriptor: &StateDescriptor) -> Result<StateId> {
        let now_ms = self.shared.environment.now_ms();
        let stamp = self.lineage.covered();
        let (id, switch) = self
            .states
            .register(descriptor, &self.scope, now_ms, stamp)?;
        if switch.needs_full() {
            self.lineage.require_full(self.context.generation);
        }
        Ok(id)
    }

    fn states(&self) -> Vec<StateDescriptor> {
        self.states
            .iter()
            .map(|state| state.descriptor.clone())
            .collect()
    }

    #[inline]
    fn get<'a>(&'a mut self, state: StateId, key: &'a StateKey) -> Fetch<'a, Option<ValueRef<'a>>> {
        match self.states.table(state, StateKind::Value, key, &self.scope) {
            Ok(table) => Fetch::ready(table.get(key).map(ValueRef::Borrowed)),
            Err(e) => Fetch::from_result(Err(e)),
        }
    }

    #[inline]
    fn put(&mut self, state: StateId, key: &StateKey, value: &[u8]) -> Result<Pressure> {
        let table = self
            .states
            .table(state, StateKind::Value, key, &self.scope)?;
        check_value(value)?;
        table.put(key, value, &self.context);
        Ok(self.pressure())
    }

    fn clear(&mut self, state: StateId, key: &StateKey) -> Result<Pressure> {
        let descriptor = &self.states.state(state)?.descriptor;
        let kind = descriptor.kind;
        if kind == StateKind::Timers {
            return Err(wrong_kind(descriptor, StateKind::Value));
        }
        let table = self.states.table(state, kind, key, &self.scope)?;
        if kind == StateKind::Value {
            table.remove(key, &self.context);
        } else {
            table.clear(key, &self.context);
        }
        Ok(self.pressure())
    }

    #[inline]
    fn try_update(
        &mut self,
        state: StateId,
        key: &StateKey,
        edit: &mut EditFn<'_>,
    ) -> Option<Result<Pressure>> {
        let table = match self.states.table(state, StateKind::Value, key, &self.scope) {
            Ok(table) => table,
            Err(e) => return Some(Err(e)),
        };
        let mut verdict = Ok(());
        table.update(key, &self.context, |old, change| {
            edit(old, change);
            verdict = check_edit(change);
        });
        Some(verdict.map(|()| self.pressure()))
    }

    fn get_many<'a>(
        &'a mut self,
        state: StateId,
        keys: &'a [StateKey],
        out: &'a mut ValueBatch,
    ) -> Fetch<'a, ()> {
        let found = self
            .check_keys(state, keys)
            .and_then(|()| self.states.state(state));
        Fetch::from_result(found.map(|state| {
            state.table.get_many(keys, |_, value| out.push(value));
        }))
    }

    fn try_update_many(
        &mut self,
        state: StateId,
        keys: &[StateKey],
        edit: &mut EditManyFn<'_>,
    ) -> Option<Result<Pressure>> {
        if let Err(e) = self.check_keys(state, keys) {
            return Some(Err(e));
        }
        let mut verdict = Ok(());
        let context = self.context;
        let found = self.states.state(state).map(|state| {
            state
                .table
                .update_many(keys, &context, |index, old, change| {
                    if verdict.is_ok() {
                        edit(index, old, change);
                        verdict = check_edit(change);
                    }
                });
        });
        Some(found.and(verdict).map(|()| self.pressure()))
    }

    fn list_append(&mut self, state: StateId, key: &StateKey, element: &[u8]) -> Result<Pressure> {
        let table = self
            .states
            .table(state, StateKind::List, key, &self.scope)?;
        check_value(element)?;
        table.list_append(key, element, &self.context);
        Ok(self.pressure())
    }

    fn list_replace(
        &mut self,
        state: StateId,
        key: &StateKey,
        elements: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<Pressure> {
        let table = self
            .states
            .table(state, StateKind::List, key, &self.scope)?;
        let elements: Vec<&[u8]> = elements.collect();
        elements
            .iter()
            .try_for_each(|element| check_value(element))?;
        table.list_replace(key, &elements, &self.context);
        Ok(self.pressure())
    }

    fn list_set(
        &mut self,
        state: StateId,
        key: &StateKey,
        sub_key: &[u8],
        element: Option<&[u8]>,
    ) -> Result<Pressure> {
        let table = self
            .states
            .table(state, StateKind::List, key, &self.scope)?;
        if let Some(element) = element {
            check_value(element)?;
        }
        table.list_set(key, sub_key, element, &self.context);
        Ok(self.pressure())
    }

    #[inline]
    fn map_get<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        sub_key: &'a [u8],
    ) -> Fetch<'a, Option<ValueRef<'a>>> {
        match self.states.table(state, StateKind::Map, key, &self.scope) {
            Ok(table) => Fetch::ready(table.sub_get(key, sub_key).map(ValueRef::Borrowed)),
            Err(e) => Fetch::from_result(Err(e)),
        }
    }

    #[inline]
    fn map_put(
        &mut self,
        state: StateId,
        key: &StateKey,
        sub_key: &[u8],
        value: &[u8],
    ) -> Result<Pressure> {
        let table = self.states.table(state, StateKind::Map, key, &self.scope)?;
        check_value(value)?;
        check_length("sub-key", sub_key.len(), SUB_KEY_BYTES_MAX)?;
        table.sub_put(key, sub_key, value, &self.context);
        Ok(self.pressure())
    }

    fn map_remove(&mut self, state: StateId, key: &StateKey, sub_key: &[u8]) -> Result<Pressure> {
        let table = self.states.table(state, StateKind::Map, key, &self.scope)?;
        table.sub_remove(key, sub_key, &self.context);
        Ok(self.pressure())
    }

    fn scan<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        range: &'a SubKeyRange,
        batch: &'a mut EntryBatch,
    ) -> Fetch<'a, ()> {
        Fetch::from_result(self.states.state(state).and_then(|found| {
            if !matches!(found.descriptor.kind, StateKind::List | StateKind::Map) {
                return Err(wrong_kind(&found.descriptor, StateKind::Map));
            }
            if !self.scope.range.contains(key.hash()) {
                return Err(wrong_range(key, &self.scope));
            }
            found.table.scan(key, range, batch);
            Ok(())
        }))
    }

    fn timer_add(&mut self, state: StateId, key: &StateKey, time: i64) -> Result<TimerAdded> {
        let timers = self.states.timers(state)?;
        check_owner(key, &self.scope)?;
        let head_changed = timers.add(key, time, &self.context);
        Ok(TimerAdded {
            pressure: self.pressure(),
            head_changed,
        })
    }

    fn timer_remove<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        time: i64,
    ) -> Fetch<'a, bool> {
        let removed = self.states.timers(state).and_then(|timers| {
            check_owner(key, &self.scope)?;
            Ok(timers.remove(key, time, &self.context))
        });
        Fetch::from_result(removed)
    }

    fn timer_next(&mut self, state: StateId) -> Fetch<'_, Option<i64>> {
        Fetch::from_result(self.states.timers(state).map(|timers| timers.next_time()))
    }

    fn timers_pop<'a>(
        &'a mut self,
        state: StateId,
        until: i64,
        batch: &'a mut TimerBatch,
    ) -> Fetch<'a, ()> {
        let timers = self.states.timers(state);
        Fetch::from_result(timers.map(|timers| timers.pop(until, batch, &self.context)))
    }

    fn timers_scan<'a>(
        &'a mut self,
        state: StateId,
        range: HashRange,
        after: Option<Timer<'a>>,
        batch: &'a mut TimerBatch,
    ) -> Fetch<'a, ()> {
        let timers = self.states.timers(state);
        Fetch::from_result(timers.map(|timers| timers.scan(range, after.as_ref(), batch)))
    }

    fn keys(&mut self, state: StateId, namespace: Option<&[u8]>) -> Result<Box<dyn KeyCursor>> {
        let found = self.states.state(state)?;
        if found.descriptor.kind == StateKind::Timers {
            return Err(wrong_kind(&found.descriptor, StateKind::Value));
        }
        Ok(found.table.freeze().keys(namespace))
    }

    fn entry_count(&mut self, state: StateId) -> Fetch<'_, u64> {
        Fetch::from_result(self.states.state(state).map(|state| state.entry_count()))
    }

    fn prefetch(&mut self, _state: StateId, _keys: &[StateKey]) -> Fetch<'static, ()> {
        Fetch::ready(())
    }

    fn view(&mut self) -> Result<Box<dyn StateView>> {
        Ok(Box::new(MemoryView::new(&mut self.states)))
    }

    fn snapshot(&mut self, trigger: &Trigger) -> Result<PendingSnapshot> {
        if trigger.id <= self.last_snapshot {
            return Err(
                Error::new(ErrorKind::Invalid, "a snapshot's id does not grow")
                    .expected_got(format_args!("above {}", self.last_snapshot), trigger.id),
            );
        }
        let started = self.shared.environment.monotonic();
        let as_written = Trigger {
            mode: self.mode_of(trigger),
            ..*trigger
        };
        let frozen_generation = self.lineage.freeze(self.context.generation, &as_written);
        let clock_ms = self.shared.environment.now_ms();
        let frozen = Frozen::new(
            &mut self.states,
            frozen_generation,
            clock_ms,
            &self.shared.runtime,
        );
        self.last_snapshot = trigger.id;
        self.context.generation = self.context.generation.next();
        self.refresh_context();
        let pause = self.shared.environment.monotonic().saturating_sub(started);
        let task = snapshot::Task {
            shared: self.shared.clone(),
            scope: self.scope.clone(),
            trigger: *trigger,
            lineage: self.lineage.clone(),
            pause,
        };
        let generation = frozen.generation();
        let write = snapshot::write(task, frozen, self.open.subscribe());
        Ok(PendingSnapshot::new(trigger.id, generation, pause, write))
    }

    fn confirm(&mut self, _snapshot: SnapshotId) {
        self.refresh_context();
    }

    fn abort(&mut self, _snapshot: SnapshotId) {
        self.refresh_context();
    }

    fn maintain(&mut self) -> Fetch<'_, Pressure> {
        self.refresh_context();
        let now_ms = self.shared.environment.now_ms();
        for state in self.states.iter_mut() {
            if state.descriptor.ttl.is_some() {
                let is_expired = |sealed: &[u8]| is_expired(sealed, now_ms);
                state
                    .table
                    .expire(&self.context, EXPIRE_ENTRIES, &is_expired);
            }
            state.table.sweep(&self.context, SWEEP_PAGES);
            if let Some(timers) = &mut state.timers {
                timers.sweep(&self.context);
            }
        }
        Fetch::ready(self.memory.check(self.memory_bytes()))
    }

    fn memory_bytes(&self) -> u64 {
        self.states.iter().map(State::memory_bytes).sum()
    }
}

impl MemoryStore {
    /// What the snapshot of `trigger` writes under this store's options.
    fn mode_of(&self, trigger: &Trigger) -> backend_core::SnapshotMode {
        if self.shared.options.incremental || trigger.mode == backend_core::SnapshotMode::Savepoint
        {
            trigger.mode
        } else {
            backend_core::SnapshotMode::Full
        }
    }
}

fn check_edit(change: &mut backend_core::ValueEdit) -> Result<()> {
    if change.action() == backend_core::EditAction::Put
        && let Err(e) = check_value(change.bytes())
    {
        change.keep();
        return Err(e);
    }
    Ok(())
}

#[inline]
fn check_value(value: &[u8]) -> Result<()> {
    check_length("value", value.len(), VALUE_BYTES_MAX)
}

#[inline]
fn check_length(what: &'static str, got: usize, max: usize) -> Result<()> {
    if got <= max {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Limit, "too many bytes for one write")
        .with("what", what)
        .with("bytes_max", max)
        .with("got", got))
}

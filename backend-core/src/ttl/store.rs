//! The store that knows the time.

use crate::clock::SharedEnvironment;
use crate::contract::{
    EditFn, EditManyFn, KeyedStore, PendingSnapshot, Pressure, StateView, TaskScope, TimerAdded,
    Trigger,
};
use crate::descriptor::{StateDescriptor, StateId, StateKind};
use crate::error::Result;
use crate::fetch::Fetch;
use crate::ids::SnapshotId;
use crate::key::StateKey;
use crate::range::HashRange;
use crate::scan::{EntryBatch, KeyCursor, SubKeyRange};
use crate::timer::{Timer, TimerBatch};
use crate::ttl::at::At;
use crate::ttl::edit::edit_sealed;
use crate::ttl::seal::open;
use crate::ttl::timing::{Timing, Verdict};
use crate::ttl::view::{TimedView, opened_ref};
use crate::ttl::walk::Walk;
use crate::value::{ValueBatch, ValueEdit, ValueRef};

/// Larger values are looked up twice rather than copied.
const COPIED_BYTES_MAX: usize = 1 << 10;

/// A store whose states may have a time to live, around one that holds sealed values for those;
/// see [the module](crate::ttl).
#[derive(Debug)]
pub struct TimedStore<S> {
    inner: S,
    environment: SharedEnvironment,
    /// By state id.
    timings: Vec<Option<Timing>>,
    kinds: Vec<StateKind>,
    /// The value that was read last.
    value: Vec<u8>,
    sealed: Vec<u8>,
    edit: ValueEdit,
}

impl<S: KeyedStore> TimedStore<S> {
    /// Puts `inner` under the clock of `environment`.
    pub fn new(inner: S, environment: SharedEnvironment) -> Self {
        Self {
            inner,
            environment,
            timings: Vec::new(),
            kinds: Vec::new(),
            value: Vec::new(),
            sealed: Vec::new(),
            edit: ValueEdit::default(),
        }
    }

    /// The time to live of a state and what time it is; `None` for states without one.
    #[inline]
    fn timing(&self, state: StateId) -> Option<(Timing, u64)> {
        let timing = (*self.timings.get(state.0 as usize)?)?;
        Some((timing, self.environment.now_ms()))
    }

    fn read<'a>(
        &'a mut self,
        at: At<'a>,
        timing: Timing,
        now_ms: u64,
    ) -> Fetch<'a, Option<ValueRef<'a>>> {
        let value = &mut self.value;
        let at_hand = match at.get(&mut self.inner) {
            Fetch::Ready(found) => found
                .expect("a fetch is awaited once")
                .map(|found| Some(note(found.as_deref(), timing, now_ms, value))),
            Fetch::Pending(_) => Ok(None),
        };
        let verdict = match at_hand {
            Err(e) => return Fetch::from_result(Err(e)),
            Ok(Some(verdict)) => verdict,
            Ok(None) => {
                return Fetch::pending(async move {
                    let found = at.get(&mut self.inner).await?;
                    let verdict = note(found.as_deref(), timing, now_ms, &mut self.value);
                    drop(found);
                    self.settle(at, timing, now_ms, verdict)?;
                    self.shown(at, timing, verdict).await
                });
            }
        };
        match self.settle(at, timing, now_ms, verdict) {
            Err(e) => Fetch::from_result(Err(e)),
            Ok(()) => self.shown(at, timing, verdict),
        }
    }

    /// Does what a read owes to the entry that it met.
    fn settle(
        &mut self,
        at: At<'_>,
        timing: Timing,
        now_ms: u64,
        verdict: Option<(Verdict, bool)>,
    ) -> Result<()> {
        let Some((verdict, is_copied)) = verdict else {
            return Ok(());
        };
        if verdict == Verdict::Live {
            return Ok(());
        }
        debug_assert!(is_copied, "what is removed or refreshed was copied");
        if verdict == Verdict::Expired {
            return at.remove(&mut self.inner).map(drop);
        }
        self.sealed.clear();
        timing.seal(&self.value, now_ms, &mut self.sealed);
        at.put(&mut self.inner, &self.sealed).map(drop)
    }

    /// The value that was met, if it is shown.
    fn shown<'a>(
        &'a mut self,
        at: At<'a>,
        timing: Timing,
        verdict: Option<(Verdict, bool)>,
    ) -> Fetch<'a, Option<ValueRef<'a>>> {
        match verdict {
            Some((verdict, _)) if !timing.shows(verdict) => Fetch::ready(None),
            None => Fetch::ready(None),
            Some((_, true)) => Fetch::ready(Some(ValueRef::Borrowed(&self.value))),
            Some((_, false)) => {
                let found = match at.sub_key {
                    None => self.inner.get(at.state, at.key),
                    Some(sub_key) => self.inner.map_get(at.state, at.key, sub_key),
                };
                found.and_then(|found| Ok(found.map(opened_ref)))
            }
        }
    }

    async fn read_many(
        &mut self,
        state: StateId,
        keys: &[StateKey],
        out: &mut ValueBatch,
        timing: Timing,
        now_ms: u64,
    ) -> Result<()> {
        let mut sealed = ValueBatch::new();
        self.inner.get_many(state, keys, &mut sealed).await?;
        for (key, sealed) in keys.iter().zip(sealed.iter()) {
            let Some(sealed) = sealed else {
                out.push(None);
                continue;
            };
            let verdict = timing.judge(sealed, now_ms);
            let value = open(sealed).1;
            out.push(timing.shows(verdict).then_some(value));
            match verdict {
                Verdict::Live => {}
                Verdict::Expired => drop(self.inner.clear(state, key)?),
                Verdict::Refresh => {
                    self.sealed.clear();
                    timing.seal(value, now_ms, &mut self.sealed);
                    self.inner.put(state, key, &self.sealed)?;
                }
            }
        }
        Ok(())
    }
}

/// Judges what was found, and copies its value unless it is large and stays as it is.
fn note(
    found: Option<&[u8]>,
    timing: Timing,
    now_ms: u64,
    value: &mut Vec<u8>,
) -> Option<(Verdict, bool)> {
    let sealed = found?;
    let verdict = timing.judge(sealed, now_ms);
    let is_copied = verdict != Verdict::Live || sealed.len() <= COPIED_BYTES_MAX;
    if is_copied {
        value.clear();
        value.extend_from_slice(open(sealed).1);
    }
    Some((verdict, is_copied))
}

impl<S: KeyedStore> KeyedStore for TimedStore<S> {
    fn scope(&self) -> &TaskScope {
        self.inner.scope()
    }

    fn register(&mut self, descriptor: &StateDescriptor) -> Result<StateId> {
        let id = self.inner.register(descriptor)?;
        let index = id.0 as usize;
        if self.timings.len() <= index {
            self.timings.resize(index + 1, None);
            self.kinds.resize(index + 1, StateKind::Value);
        }
        self.timings[index] = descriptor.ttl.map(Timing);
        self.kinds[index] = descriptor.kind;
        Ok(id)
    }

    fn states(&self) -> Vec<StateDescriptor> {
        self.inner.states()
    }

    #[inline]
    fn get<'a>(&'a mut self, state: StateId, key: &'a StateKey) -> Fetch<'a, Option<ValueRef<'a>>> {
        let Some((timing, now_ms)) = self.timing(state) else {
            return self.inner.get(state, key);
        };
        let sub_key = None;
        self.read(
            At {
                state,
                key,
                sub_key,
            },
            timing,
            now_ms,
        )
    }

    #[inline]
    fn put(&mut self, state: StateId, key: &StateKey, value: &[u8]) -> Result<Pressure> {
        let Some((timing, now_ms)) = self.timing(state) else {
            return self.inner.put(state, key, value);
        };
        self.sealed.clear();
        timing.seal(value, now_ms, &mut self.sealed);
        self.inner.put(state, key, &self.sealed)
    }

    fn clear(&mut self, state: StateId, key: &StateKey) -> Result<Pressure> {
        self.inner.clear(state, key)
    }

    #[inline]
    fn try_update(
        &mut self,
        state: StateId,
        key: &StateKey,
        edit: &mut EditFn<'_>,
    ) -> Option<Result<Pressure>> {
        let Some((timing, now_ms)) = self.timing(state) else {
            return self.inner.try_update(state, key, edit);
        };
        let own = &mut self.edit;
        self.inner.try_update(state, key, &mut |old, change| {
            edit_sealed(timing, now_ms, old, own, change, &mut *edit);
        })
    }

    #[inline]
    fn get_many<'a>(
        &'a mut self,
        state: StateId,
        keys: &'a [StateKey],
        out: &'a mut ValueBatch,
    ) -> Fetch<'a, ()> {
        match self.timing(state) {
            None => self.inner.get_many(state, keys, out),
            Some((timing, now_ms)) => {
                Fetch::eager(self.read_many(state, keys, out, timing, now_ms))
            }
        }
    }

    #[inline]
    fn try_update_many(
        &mut self,
        state: StateId,
        keys: &[StateKey],
        edit: &mut EditManyFn<'_>,
    ) -> Option<Result<Pressure>> {
        let Some((timing, now_ms)) = self.timing(state) else {
            return self.inner.try_update_many(state, keys, edit);
        };
        let own = &mut self.edit;
        self.inner
            .try_update_many(state, keys, &mut |index, old, change| {
                edit_sealed(timing, now_ms, old, own, change, |old, own| {
                    edit(index, old, own);
                });
            })
    }

    fn list_append(&mut self, state: StateId, key: &StateKey, element: &[u8]) -> Result<Pressure> {
        let Some((timing, now_ms)) = self.timing(state) else {
            return self.inner.list_append(state, key, element);
        };
        self.sealed.clear();
        timing.seal(element, now_ms, &mut self.sealed);
        self.inner.list_append(state, key, &self.sealed)
    }

    fn list_replace(
        &mut self,
        state: StateId,
        key: &StateKey,
        elements: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<Pressure> {
        let Some((timing, now_ms)) = self.timing(state) else {
            return self.inner.list_replace(state, key, elements);
        };
        let (mut sealed, mut ends) = (Vec::new(), Vec::new());
        for element in elements {
            timing.seal(element, now_ms, &mut sealed);
            ends.push(sealed.len());
        }
        let mut start = 0;
        let mut elements = ends.into_iter().map(|end| {
            let element = &sealed[start..end];
            start = end;
            element
        });
        self.inner.list_replace(state, key, &mut elements)
    }

    fn list_set(
        &mut self,
        state: StateId,
        key: &StateKey,
        sub_key: &[u8],
        element: Option<&[u8]>,
    ) -> Result<Pressure> {
        let Some((timing, now_ms)) = self.timing(state) else {
            return self.inner.list_set(state, key, sub_key, element);
        };
        self.sealed.clear();
        let sealed = element.map(|element| {
            timing.seal(element, now_ms, &mut self.sealed);
            &self.sealed[..]
        });
        self.inner.list_set(state, key, sub_key, sealed)
    }

    #[inline]
    fn map_get<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        sub_key: &'a [u8],
    ) -> Fetch<'a, Option<ValueRef<'a>>> {
        let Some((timing, now_ms)) = self.timing(state) else {
            return self.inner.map_get(state, key, sub_key);
        };
        let sub_key = Some(sub_key);
        self.read(
            At {
                state,
                key,
                sub_key,
            },
            timing,
            now_ms,
        )
    }

    #[inline]
    fn map_put(
        &mut self,
        state: StateId,
        key: &StateKey,
        sub_key: &[u8],
        value: &[u8],
    ) -> Result<Pressure> {
        let Some((timing, now_ms)) = self.timing(state) else {
            return self.inner.map_put(state, key, sub_key, value);
        };
        self.sealed.clear();
        timing.seal(value, now_ms, &mut self.sealed);
        self.inner.map_put(state, key, sub_key, &self.sealed)
    }

    fn map_remove(&mut self, state: StateId, key: &StateKey, sub_key: &[u8]) -> Result<Pressure> {
        self.inner.map_remove(state, key, sub_key)
    }

    fn scan<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        range: &'a SubKeyRange,
        batch: &'a mut EntryBatch,
    ) -> Fetch<'a, ()> {
        let Some((timing, now_ms)) = self.timing(state) else {
            return self.inner.scan(state, key, range, batch);
        };
        let walk = Walk {
            state,
            kind: self.kinds[state.0 as usize],
            key,
            timing,
            now_ms,
        };
        let inner = &mut self.inner;
        Fetch::eager(async move { walk.scan(inner, range, batch).await })
    }

    fn timer_add(&mut self, state: StateId, key: &StateKey, time: i64) -> Result<TimerAdded> {
        self.inner.timer_add(state, key, time)
    }

    fn timer_remove<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        time: i64,
    ) -> Fetch<'a, bool> {
        self.inner.timer_remove(state, key, time)
    }

    fn timer_next(&mut self, state: StateId) -> Fetch<'_, Option<i64>> {
        self.inner.timer_next(state)
    }

    fn timers_pop<'a>(
        &'a mut self,
        state: StateId,
        until: i64,
        batch: &'a mut TimerBatch,
    ) -> Fetch<'a, ()> {
        self.inner.timers_pop(state, until, batch)
    }

    fn timers_scan<'a>(
        &'a mut self,
        state: StateId,
        range: HashRange,
        after: Option<Timer<'a>>,
        batch: &'a mut TimerBatch,
    ) -> Fetch<'a, ()> {
        self.inner.timers_scan(state, range, after, batch)
    }

    fn keys(&mut self, state: StateId, namespace: Option<&[u8]>) -> Result<Box<dyn KeyCursor>> {
        self.inner.keys(state, namespace)
    }

    fn entry_count(&mut self, state: StateId) -> Fetch<'_, u64> {
        self.inner.entry_count(state)
    }

    fn prefetch(&mut self, state: StateId, keys: &[StateKey]) -> Fetch<'static, ()> {
        self.inner.prefetch(state, keys)
    }

    fn view(&mut self) -> Result<Box<dyn StateView>> {
        Ok(Box::new(TimedView {
            inner: self.inner.view()?,
            timings: self.timings.clone(),
            environment: self.environment.clone(),
        }))
    }

    fn snapshot(&mut self, trigger: &Trigger) -> Result<PendingSnapshot> {
        self.inner.snapshot(trigger)
    }

    fn confirm(&mut self, snapshot: SnapshotId) {
        self.inner.confirm(snapshot);
    }

    fn abort(&mut self, snapshot: SnapshotId) {
        self.inner.abort(snapshot);
    }

    fn maintain(&mut self) -> Fetch<'_, Pressure> {
        self.inner.maintain()
    }

    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }
}

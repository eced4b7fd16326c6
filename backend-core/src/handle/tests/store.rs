//! A store over a `BTreeMap`, at hand or slow, for the tests of the handles.

use std::collections::{BTreeMap, HashSet};
use std::future::poll_fn;
use std::ops::Bound;
use std::task::Poll;

use bytes::Bytes;

use crate::contract::{
    EditFn, EditManyFn, KeyedStore, PendingSnapshot, Pressure, StateView, TaskScope, TimerAdded,
    Trigger,
};
use crate::descriptor::{CodecId, StateDescriptor, StateId};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::Fetch;
use crate::ids::{OperatorId, SnapshotId};
use crate::key::StateKey;
use crate::range::HashRange;
use crate::scan::{EntryBatch, KeyBatch, KeyCursor, SubKeyRange};
use crate::timer::{Timer, TimerBatch};
use crate::value::{EditAction, ValueBatch, ValueEdit, ValueRef};

/// State, key, namespace, sub-key.
type Place = (u32, Vec<u8>, Vec<u8>, Vec<u8>);

pub(super) struct TestStore {
    scope: TaskScope,
    pub(super) states: Vec<StateDescriptor>,
    entries: BTreeMap<Place, Vec<u8>>,
    elements: u64,
    pub(super) slow: bool,
    /// The keys that a slow store has at hand, until they are read.
    at_hand: HashSet<(u32, Vec<u8>)>,
    /// Whether prefetching brings nothing.
    pub(super) forgetful: bool,
    pub(super) prefetches: usize,
    pub(super) scans: usize,
}

impl TestStore {
    pub(super) fn new() -> Self {
        let operator = OperatorId::new("test").expect("a name");
        Self {
            scope: TaskScope::new(operator, 0, 1, CodecId::new("utf8")),
            states: Vec::new(),
            entries: BTreeMap::new(),
            elements: 0,
            slow: false,
            at_hand: HashSet::new(),
            forgetful: false,
            prefetches: 0,
            scans: 0,
        }
    }

    pub(super) fn slow() -> Self {
        Self {
            slow: true,
            ..Self::new()
        }
    }

    fn fetch<'a, T: Send + 'a>(slow: bool, answer: impl FnOnce() -> T + Send + 'a) -> Fetch<'a, T> {
        if !slow {
            return Fetch::ready(answer());
        }
        Fetch::pending(async move {
            later().await;
            Ok(answer())
        })
    }

    fn edit(&mut self, place: Place, edit: &mut EditFn<'_>) {
        let mut value = ValueEdit::default();
        edit(self.entries.get(&place).map(Vec::as_slice), &mut value);
        match value.action() {
            EditAction::Keep => {}
            EditAction::Put => drop(self.entries.insert(place, value.bytes().to_vec())),
            EditAction::Clear => {
                let was = self.entries.remove(&place);
                assert!(was.is_some(), "an edit does not clear what is not there");
            }
        }
    }

    fn is_at_hand(&self, state: StateId, key: &StateKey) -> bool {
        !self.slow
            || self
                .at_hand
                .contains(&(state.0, key.key_and_namespace().to_vec()))
    }
}

/// Pending once; whoever polls is woken.
async fn later() {
    let mut polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn place(state: StateId, key: &StateKey, sub_key: &[u8]) -> Place {
    let (key, namespace) = (key.key().to_vec(), key.namespace().to_vec());
    (state.0, key, namespace, sub_key.to_vec())
}

fn unsupported() -> Error {
    Error::new(ErrorKind::Unsupported, "not in this test")
}

impl KeyedStore for TestStore {
    fn scope(&self) -> &TaskScope {
        &self.scope
    }

    fn register(&mut self, descriptor: &StateDescriptor) -> Result<StateId> {
        let index = self.states.iter().position(|s| s.name == descriptor.name);
        if let Some(index) = index {
            self.states[index].check_compatible(descriptor)?;
            return Ok(StateId(index as u32));
        }
        self.states.push(descriptor.clone());
        Ok(StateId(self.states.len() as u32 - 1))
    }

    fn states(&self) -> Vec<StateDescriptor> {
        self.states.clone()
    }

    fn get<'a>(&'a mut self, state: StateId, key: &'a StateKey) -> Fetch<'a, Option<ValueRef<'a>>> {
        self.map_get(state, key, &[])
    }

    fn put(&mut self, state: StateId, key: &StateKey, value: &[u8]) -> Result<Pressure> {
        self.map_put(state, key, &[], value)
    }

    fn clear(&mut self, state: StateId, key: &StateKey) -> Result<Pressure> {
        let (state, key, namespace, _) = place(state, key, &[]);
        self.entries
            .retain(|(s, k, n, _), _| (*s, k, n) != (state, &key, &namespace));
        Ok(Pressure::None)
    }

    fn try_update(
        &mut self,
        state: StateId,
        key: &StateKey,
        edit: &mut EditFn<'_>,
    ) -> Option<Result<Pressure>> {
        if !self.is_at_hand(state, key) {
            return None;
        }
        self.edit(place(state, key, &[]), edit);
        Some(Ok(Pressure::Soon))
    }

    fn get_many<'a>(
        &'a mut self,
        state: StateId,
        keys: &'a [StateKey],
        out: &'a mut ValueBatch,
    ) -> Fetch<'a, ()> {
        let entries = &self.entries;
        Self::fetch(self.slow, move || {
            for key in keys {
                out.push(entries.get(&place(state, key, &[])).map(Vec::as_slice));
            }
        })
    }

    fn try_update_many(
        &mut self,
        state: StateId,
        keys: &[StateKey],
        edit: &mut EditManyFn<'_>,
    ) -> Option<Result<Pressure>> {
        if !keys.iter().all(|key| self.is_at_hand(state, key)) {
            return None;
        }
        for (index, key) in keys.iter().enumerate() {
            self.edit(place(state, key, &[]), &mut |old, value| {
                edit(index, old, value);
            });
        }
        Some(Ok(Pressure::Soon))
    }

    fn list_append(&mut self, state: StateId, key: &StateKey, element: &[u8]) -> Result<Pressure> {
        self.elements += 1;
        self.map_put(state, key, &self.elements.to_be_bytes(), element)
    }

    fn list_replace(
        &mut self,
        state: StateId,
        key: &StateKey,
        elements: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<Pressure> {
        self.clear(state, key)?;
        for element in elements {
            self.list_append(state, key, element)?;
        }
        Ok(Pressure::None)
    }

    fn map_get<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        sub_key: &'a [u8],
    ) -> Fetch<'a, Option<ValueRef<'a>>> {
        let entries = &self.entries;
        Self::fetch(self.slow, move || {
            let value = entries.get(&place(state, key, sub_key));
            value.map(|value| ValueRef::Borrowed(value))
        })
    }

    fn map_put(
        &mut self,
        state: StateId,
        key: &StateKey,
        sub_key: &[u8],
        value: &[u8],
    ) -> Result<Pressure> {
        let place = place(state, key, sub_key);
        self.entries.insert(place, value.to_vec());
        Ok(Pressure::None)
    }

    fn list_set(
        &mut self,
        state: StateId,
        key: &StateKey,
        sub_key: &[u8],
        element: Option<&[u8]>,
    ) -> Result<Pressure> {
        let place = place(state, key, sub_key);
        let old = self.entries.remove(&place);
        if let (Some(_), Some(element)) = (old, element) {
            self.entries.insert(place, element.to_vec());
        }
        Ok(Pressure::None)
    }

    fn map_remove(&mut self, state: StateId, key: &StateKey, sub_key: &[u8]) -> Result<Pressure> {
        self.entries.remove(&place(state, key, sub_key));
        Ok(Pressure::None)
    }

    fn scan<'a>(
        &'a mut self,
        state: StateId,
        key: &'a StateKey,
        range: &'a SubKeyRange,
        batch: &'a mut EntryBatch,
    ) -> Fetch<'a, ()> {
        self.scans += 1;
        let entries = &self.entries;
        let at = move |sub_key: &Bytes| place(state, key, sub_key);
        if self.slow {
            // Dropping the fetch leaves this behind; a reader must not take it for an answer.
            batch.push(b"garbage", b"garbage");
        }
        Self::fetch(self.slow, move || {
            batch.clear();
            let start = match &range.start {
                Bound::Unbounded => Bound::Included(place(state, key, &[])),
                bound => bound.as_ref().map(at),
            };
            // It panics as a `BTreeMap` does for a range that ends before it begins.
            let end = range.end.as_ref().map(at);
            for ((s, k, n, sub_key), value) in entries.range((start, end)) {
                if (*s, &k[..], &n[..]) != (state.0, key.key(), key.namespace()) {
                    break;
                }
                if batch.is_full() {
                    return;
                }
                batch.push(sub_key, value);
            }
            batch.set_complete();
        })
    }

    fn timer_add(&mut self, _: StateId, _: &StateKey, _: i64) -> Result<TimerAdded> {
        Err(unsupported())
    }

    fn timer_remove<'a>(&'a mut self, _: StateId, _: &'a StateKey, _: i64) -> Fetch<'a, bool> {
        Fetch::from_result(Err(unsupported()))
    }

    fn timer_next(&mut self, _: StateId) -> Fetch<'_, Option<i64>> {
        Fetch::from_result(Err(unsupported()))
    }

    fn timers_pop<'a>(&'a mut self, _: StateId, _: i64, _: &'a mut TimerBatch) -> Fetch<'a, ()> {
        Fetch::from_result(Err(unsupported()))
    }

    fn timers_scan<'a>(
        &'a mut self,
        _: StateId,
        _: HashRange,
        _: Option<Timer<'a>>,
        _: &'a mut TimerBatch,
    ) -> Fetch<'a, ()> {
        Fetch::from_result(Err(unsupported()))
    }

    fn keys(&mut self, state: StateId, namespace: Option<&[u8]>) -> Result<Box<dyn KeyCursor>> {
        let mut keys: Vec<(Vec<u8>, Vec<u8>)> = self
            .entries
            .keys()
            .filter(|(s, _, n, _)| *s == state.0 && namespace.is_none_or(|asked| asked == n))
            .map(|(_, k, n, _)| (k.clone(), n.clone()))
            .collect();
        keys.dedup();
        let slow = self.slow;
        keys.reverse();
        Ok(Box::new(TestKeys { keys, slow }))
    }

    fn entry_count(&mut self, state: StateId) -> Fetch<'_, u64> {
        Fetch::ready(self.entries.keys().filter(|e| e.0 == state.0).count() as u64)
    }

    fn prefetch(&mut self, state: StateId, keys: &[StateKey]) -> Fetch<'static, ()> {
        self.prefetches += 1;
        if !self.forgetful {
            let keys = keys
                .iter()
                .map(|key| (state.0, key.key_and_namespace().to_vec()));
            self.at_hand.extend(keys);
        }
        Self::fetch(self.slow, || ())
    }

    fn view(&mut self) -> Result<Box<dyn StateView>> {
        Err(unsupported())
    }

    fn snapshot(&mut self, _trigger: &Trigger) -> Result<PendingSnapshot> {
        Err(unsupported())
    }

    fn confirm(&mut self, _snapshot: SnapshotId) {}

    fn abort(&mut self, _snapshot: SnapshotId) {}

    fn maintain(&mut self) -> Fetch<'_, Pressure> {
        Fetch::ready(Pressure::None)
    }

    fn memory_bytes(&self) -> u64 {
        0
    }
}

struct TestKeys {
    keys: Vec<(Vec<u8>, Vec<u8>)>,
    slow: bool,
}

impl KeyCursor for TestKeys {
    fn next_batch<'a>(&'a mut self, batch: &'a mut KeyBatch) -> Fetch<'a, ()> {
        TestStore::fetch(self.slow, || {
            while let Some((key, namespace)) = self.keys.pop() {
                if !batch.push(&key, &namespace) {
                    break;
                }
            }
        })
    }
}

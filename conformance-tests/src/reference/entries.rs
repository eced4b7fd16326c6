//! The state as a map of maps.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use backend_core::{
    EntryBatch, Fetch, KeyBatch, KeyCursor, StateKey, StateUid, SubKeyRange, ValueRef,
};
use bytes::Bytes;
use parking_lot::Mutex;

use super::flaw::Flaw;

/// State, key, namespace.
pub(super) type Place = (StateUid, Box<[u8]>, Box<[u8]>);

/// Values by sub-key; empty for a value.
pub(super) type Inner = BTreeMap<Box<[u8]>, Bytes>;

/// Everything. No inner map is empty.
pub(super) type Entries = BTreeMap<Place, Arc<Inner>>;

pub(super) fn place_of(state: StateUid, key: &StateKey, flaw: Option<Flaw>) -> Place {
    match flaw {
        Some(Flaw::DropsNamespaces) => (state, key.key().into(), Box::default()),
        Some(Flaw::JoinsKeyAndNamespace) => (state, key.key_and_namespace().into(), Box::default()),
        _ => (state, key.key().into(), key.namespace().into()),
    }
}

pub(super) fn get<'a>(
    entries: &'a Entries,
    place: &Place,
    sub_key: &[u8],
    flaw: Option<Flaw>,
) -> Option<ValueRef<'a>> {
    let value = entries.get(place)?.get(sub_key)?;
    if flaw == Some(Flaw::DropsEmptyValues) && value.is_empty() {
        return None;
    }
    Some(ValueRef::Borrowed(value))
}

pub(super) fn scan(
    entries: &Entries,
    place: &Place,
    range: &SubKeyRange,
    batch: &mut EntryBatch,
    flaw: Option<Flaw>,
) {
    let Some(inner) = entries.get(place) else {
        return batch.set_complete();
    };
    let start = range.start.as_ref().map(|b| &b[..]);
    for (sub_key, value) in inner.range::<[u8], _>((start, Bound::Unbounded)) {
        if range.is_beyond(sub_key) && flaw != Some(Flaw::IgnoresBounds) {
            break;
        }
        if batch.is_full() {
            return;
        }
        batch.push(sub_key, value);
    }
    batch.set_complete();
}

/// The memory that entries take, roughly: what they hold, and a word or two for each.
pub(super) fn bytes_of(entries: &Entries) -> u64 {
    let inner_bytes = |inner: &Inner| -> usize {
        let bytes = inner.iter().map(|(k, v)| k.len() + v.len() + 48);
        bytes.sum()
    };
    let bytes = entries
        .iter()
        .map(|((_, key, namespace), inner)| key.len() + namespace.len() + 48 + inner_bytes(inner));
    bytes.sum::<usize>() as u64
}

/// A cursor over a clone.
pub(super) struct Keys {
    entries: Arc<Entries>,
    /// The live state, for a cursor that is wrong.
    live: Option<Arc<Mutex<Arc<Entries>>>>,
    namespace: Option<Box<[u8]>>,
    next: Bound<Place>,
    state: StateUid,
    repeats: usize,
}

impl Keys {
    pub(super) fn new(
        entries: &Arc<Entries>,
        live: Option<Arc<Mutex<Arc<Entries>>>>,
        state: StateUid,
        namespace: Option<&[u8]>,
        flaw: Option<Flaw>,
    ) -> Self {
        let namespace = namespace.filter(|_| flaw != Some(Flaw::DropsNamespaces));
        Self {
            entries: Arc::clone(entries),
            live,
            namespace: namespace.map(Box::from),
            next: Bound::Included((state, Box::default(), Box::default())),
            state,
            repeats: if flaw == Some(Flaw::ListsKeysTwice) {
                2
            } else {
                1
            },
        }
    }
}

impl KeyCursor for Keys {
    fn next_batch<'a>(&'a mut self, batch: &'a mut KeyBatch) -> Fetch<'a, ()> {
        if let Some(live) = &self.live {
            self.entries = Arc::clone(&live.lock());
        }
        for place in self.entries.range((self.next.clone(), Bound::Unbounded)) {
            let (state, key, namespace) = place.0;
            if *state != self.state {
                break;
            }
            if self
                .namespace
                .as_ref()
                .is_some_and(|asked| asked != namespace)
            {
                continue;
            }
            let mut has_room = true;
            for _ in 0..self.repeats {
                has_room = batch.push(key, namespace);
            }
            self.next = Bound::Excluded(place.0.clone());
            if !has_room {
                break;
            }
        }
        Fetch::ready(())
    }
}

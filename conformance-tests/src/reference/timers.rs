//! Timers: entries whose place is time and key, and whose sub-key is the namespace.

use std::sync::Arc;

use backend_core::timer::time_bytes;
use backend_core::{HashRange, KeyHasher, StateKey, StateUid, Timer};
use bytes::Bytes;

use super::entries::{Entries, Place};
use super::flaw::Flaw;

/// A timer that owns its bytes, in the order that is promised.
pub(super) type Owned = (i64, usize, Box<[u8]>, Box<[u8]>);

fn place_of(state: StateUid, time: i64, key: &[u8]) -> Place {
    (state, time_bytes(time).into(), key.into())
}

/// Adds a timer.
pub(super) fn add(
    entries: &mut Entries,
    state: StateUid,
    key: &StateKey,
    time: i64,
    flaw: Option<Flaw>,
) {
    let inner = entries.entry(place_of(state, time, key.key())).or_default();
    let mut namespace = Box::<[u8]>::from(key.namespace());
    if flaw == Some(Flaw::AddsTimersTwice) && inner.contains_key(&namespace) {
        namespace = [&namespace, &[0][..]].concat().into();
    }
    Arc::make_mut(inner).insert(namespace, Bytes::new());
}

/// Removes a timer, and says whether it was there.
pub(super) fn remove(
    entries: &mut Entries,
    state: StateUid,
    time: i64,
    key: &[u8],
    namespace: &[u8],
) -> bool {
    let place = place_of(state, time, key);
    let Some(inner) = entries.get_mut(&place) else {
        return false;
    };
    let was_there = Arc::make_mut(inner).remove(namespace).is_some();
    if inner.is_empty() {
        entries.remove(&place);
    }
    was_there
}

/// The timers of a state in order.
pub(super) fn sorted(entries: &Entries, state: StateUid, flaw: Option<Flaw>) -> Vec<Owned> {
    let places = entries.iter().filter(|(place, _)| place.0 == state);
    let mut timers: Vec<Owned> = places
        .flat_map(|((_, time, key), inner)| {
            let time = (**time).try_into().expect("a time has eight bytes");
            let time = backend_core::timer::time_of(time);
            let namespaces = inner.keys().cloned();
            namespaces.map(move |namespace| (time, key.len(), key.clone(), namespace))
        })
        .collect();
    timers.sort_unstable();
    if flaw == Some(Flaw::MixesEqualTimes) {
        timers.reverse();
        timers.sort_by_key(|timer| timer.0);
    }
    timers
}

/// Whether a timer's key lies in `range` and the timer behind `after`.
pub(super) fn is_wanted(
    timer: &Owned,
    range: HashRange,
    hasher: &KeyHasher,
    after: Option<&Timer<'_>>,
) -> bool {
    let (time, length, key, namespace) = timer;
    let place = (*time, *length, &**key, &**namespace);
    let is_behind = after.is_none_or(|t| place > (t.time, t.key.len(), t.key, t.namespace));
    is_behind && range.contains(hasher.hash(key))
}

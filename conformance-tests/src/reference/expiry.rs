//! Entries that expire. Those of a state with a time to live are sealed.

use std::collections::BTreeSet;
use std::sync::Arc;

use backend_core::ttl::{SEAL_BYTES, Switch, is_expired, seal};
use backend_core::{StateDescriptor, StateUid};

use super::entries::Entries;
use super::flaw::Flaw;

/// Opens or seals all entries of a state.
pub(super) fn switched(entries: &mut Entries, state: StateUid, switch: Switch) {
    if switch == Switch::Nothing {
        return;
    }
    for (_, inner) in entries.iter_mut().filter(|(place, _)| place.0 == state) {
        for value in Arc::make_mut(inner).values_mut() {
            *value = match switch {
                Switch::Nothing => value.clone(),
                Switch::Off => value.slice(SEAL_BYTES..),
                Switch::On(expires_ms) => {
                    let mut sealed = Vec::new();
                    seal(expires_ms, value, &mut sealed);
                    sealed.into()
                }
            };
        }
    }
}

/// Drops what has expired at `now_ms` of all states that have a time to live.
pub(super) fn drop_expired(
    entries: &mut Entries,
    states: &[StateDescriptor],
    now_ms: u64,
    flaw: Option<Flaw>,
) {
    let timed = states.iter().filter(|state| state.ttl.is_some());
    let timed: BTreeSet<_> = timed.map(StateDescriptor::uid).collect();
    let is_gone = |sealed: &[u8]| is_expired(sealed, now_ms) || flaw == Some(Flaw::SweepsLiving);
    entries.retain(|place, inner| {
        if timed.contains(&place.0) && inner.values().any(|sealed| is_gone(sealed)) {
            Arc::make_mut(inner).retain(|_, sealed| !is_gone(sealed));
        }
        !inner.is_empty()
    });
}

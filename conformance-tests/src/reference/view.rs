//! A clone to read on another thread.

use std::sync::Arc;

use backend_core::{
    EntryBatch, Fetch, KeyCursor, Result, StateId, StateKey, StateUid, StateView, SubKeyRange,
    ValueRef,
};

use super::entries::{Entries, Keys, get, place_of, scan};
use super::flaw::Flaw;

pub(super) struct ReferenceView {
    pub(super) entries: Arc<Entries>,
    /// The uids of states, by id.
    pub(super) states: Vec<StateUid>,
    pub(super) flaw: Option<Flaw>,
}

impl StateView for ReferenceView {
    fn get<'a>(&'a self, state: StateId, key: &'a StateKey) -> Fetch<'a, Option<ValueRef<'a>>> {
        self.map_get(state, key, &[])
    }

    fn map_get<'a>(
        &'a self,
        state: StateId,
        key: &'a StateKey,
        sub_key: &'a [u8],
    ) -> Fetch<'a, Option<ValueRef<'a>>> {
        let place = place_of(self.states[state.0 as usize], key, self.flaw);
        Fetch::ready(get(&self.entries, &place, sub_key, self.flaw))
    }

    fn scan<'a>(
        &'a self,
        state: StateId,
        key: &'a StateKey,
        range: &'a SubKeyRange,
        batch: &'a mut EntryBatch,
    ) -> Fetch<'a, ()> {
        let place = place_of(self.states[state.0 as usize], key, self.flaw);
        scan(&self.entries, &place, range, batch, self.flaw);
        Fetch::ready(())
    }

    fn keys(&self, state: StateId, namespace: Option<&[u8]>) -> Result<Box<dyn KeyCursor>> {
        let uid = self.states[state.0 as usize];
        let keys = Keys::new(&self.entries, None, uid, namespace, self.flaw);
        Ok(Box::new(keys))
    }
}

//! Where a sealed value stands.

use crate::contract::{KeyedStore, Pressure};
use crate::descriptor::StateId;
use crate::error::Result;
use crate::fetch::Fetch;
use crate::key::StateKey;
use crate::value::ValueRef;

/// One value, or one entry of a map.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) state: StateId,
    pub(super) key: &'a StateKey,
    pub(super) sub_key: Option<&'a [u8]>,
}

impl At<'_> {
    pub(super) fn get<'s>(
        &'s self,
        store: &'s mut impl KeyedStore,
    ) -> Fetch<'s, Option<ValueRef<'s>>> {
        match self.sub_key {
            None => store.get(self.state, self.key),
            Some(sub_key) => store.map_get(self.state, self.key, sub_key),
        }
    }

    pub(super) fn put(&self, store: &mut impl KeyedStore, sealed: &[u8]) -> Result<Pressure> {
        match self.sub_key {
            None => store.put(self.state, self.key, sealed),
            Some(sub_key) => store.map_put(self.state, self.key, sub_key, sealed),
        }
    }

    pub(super) fn remove(&self, store: &mut impl KeyedStore) -> Result<Pressure> {
        match self.sub_key {
            None => store.clear(self.state, self.key),
            Some(sub_key) => store.map_remove(self.state, self.key, sub_key),
        }
    }
}

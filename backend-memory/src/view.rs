//! A frozen state for readers on other threads.

use backend_core::table::FrozenTable;
use backend_core::{
    EntryBatch, Error, ErrorKind, Fetch, KeyCursor, Result, StateDescriptor, StateId, StateKey,
    StateKind, StateView, SubKeyRange, ValueRef,
};

use crate::states::{States, wrong_kind};

/// All tables of a store as they were at one moment.
#[derive(Debug)]
pub(crate) struct MemoryView(Vec<(StateDescriptor, FrozenTable)>);

impl MemoryView {
    pub(crate) fn new(states: &mut States) -> Self {
        Self(
            states
                .iter_mut()
                .map(|s| (s.descriptor.clone(), s.table.freeze()))
                .collect(),
        )
    }

    fn table(&self, id: StateId, kind: Option<StateKind>) -> Result<&FrozenTable> {
        let (descriptor, table) = self.0.get(id.0 as usize).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                "a state id that is younger than the view",
            )
            .with("states", self.0.len())
            .with("got", id.0)
        })?;
        match kind {
            Some(kind) if descriptor.kind != kind => Err(wrong_kind(descriptor, kind)),
            _ => Ok(table),
        }
    }
}

impl StateView for MemoryView {
    fn get<'a>(&'a self, state: StateId, key: &'a StateKey) -> Fetch<'a, Option<ValueRef<'a>>> {
        let table = self.table(state, Some(StateKind::Value));
        Fetch::from_result(table.map(|table| table.get(key).map(ValueRef::Borrowed)))
    }

    fn map_get<'a>(
        &'a self,
        state: StateId,
        key: &'a StateKey,
        sub_key: &'a [u8],
    ) -> Fetch<'a, Option<ValueRef<'a>>> {
        let table = self.table(state, Some(StateKind::Map));
        Fetch::from_result(table.map(|table| table.sub_get(key, sub_key).map(ValueRef::Borrowed)))
    }

    fn scan<'a>(
        &'a self,
        state: StateId,
        key: &'a StateKey,
        range: &'a SubKeyRange,
        batch: &'a mut EntryBatch,
    ) -> Fetch<'a, ()> {
        Fetch::from_result(
            self.table(state, None)
                .map(|table| table.scan(key, range, batch)),
        )
    }

    fn keys(&self, state: StateId, namespace: Option<&[u8]>) -> Result<Box<dyn KeyCursor>> {
        Ok(self.table(state, None)?.keys(namespace))
    }
}

//! A frozen state, to be read while its owner goes on.

use crate::descriptor::StateId;
use crate::error::Result;
use crate::fetch::Fetch;
use crate::key::StateKey;
use crate::scan::{EntryBatch, KeyCursor, SubKeyRange};
use crate::value::ValueRef;

/// The state of a task at one moment, for readers on other threads.
///
/// It costs its owner nothing but a copy of each page that is written while the view lives.
pub trait StateView: Send + Sync {
    /// The value of `key`.
    fn get<'a>(&'a self, state: StateId, key: &'a StateKey) -> Fetch<'a, Option<ValueRef<'a>>>;

    /// The value of `sub_key` in the map of `key`.
    fn map_get<'a>(
        &'a self,
        state: StateId,
        key: &'a StateKey,
        sub_key: &'a [u8],
    ) -> Fetch<'a, Option<ValueRef<'a>>>;

    /// The next entries of the map or list of `key` within `range`; see
    /// [`crate::KeyedStore::scan`].
    fn scan<'a>(
        &'a self,
        state: StateId,
        key: &'a StateKey,
        range: &'a SubKeyRange,
        batch: &'a mut EntryBatch,
    ) -> Fetch<'a, ()>;

    /// The keys of a state; see [`crate::KeyedStore::keys`].
    fn keys(&self, state: StateId, namespace: Option<&[u8]>) -> Result<Box<dyn KeyCursor>>;
}

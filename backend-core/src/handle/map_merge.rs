//! Merging the maps of several namespaces.

use crate::codec::{Codec, KeyCodec};
use crate::contract::{KeyedStore, Pressure};
use crate::fetch::Fetch;
use crate::handle::cursor::EntryCursor;
use crate::handle::map::MapState;
use crate::handle::sources::distinct_sources;
use crate::key::StateKey;
use crate::scan::SubKeyRange;

impl<K: KeyCodec, V, C: Codec<V>> MapState<K, V, C> {
    /// Puts the entries of `sources` into the map of `target`, in this order, so that a later one
    /// replaces an earlier one of its user key, and removes the sources: `target` and `sources`
    /// are namespaces of one key, for example of session windows that have met. One that stands
    /// twice, or is the target, counts once. The sources' entries are held in memory meanwhile.
    /// Dropped before it is ready, it has changed nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if a source is of another key; those of the store: if one
    /// fails to be read, everything is as it was.
    pub fn merge<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        target: &'a StateKey,
        sources: &'a [StateKey],
    ) -> Fetch<'a, Pressure> {
        let state = self.id();
        Fetch::eager(async move {
            let sources = distinct_sources(target, sources)?;
            let mut moved: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            for source in &sources {
                let mut entries = EntryCursor::new(&mut *store, state, source, SubKeyRange::ALL);
                while entries.step().await? {
                    let (sub_key, value) = entries.entry();
                    moved.push((sub_key.to_vec(), value.to_vec()));
                }
            }
            let mut pressure = Pressure::None;
            for (sub_key, value) in &moved {
                pressure = pressure.max(store.map_put(state, target, sub_key, value)?);
            }
            if !moved.is_empty() {
                for source in sources {
                    pressure = pressure.max(store.clear(state, source)?);
                }
            }
            Ok(pressure)
        })
    }
}

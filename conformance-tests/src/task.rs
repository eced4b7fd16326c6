//! One task's store, with calls that panic where a test would give up.

use std::ops::Bound;

use backend_core::{
    EntryBatch, KeyBatch, KeyCursor, KeyedStore, Pressure, Result, StateDescriptor, StateId,
    StateKey, SubKeyRange, ValueEdit,
};
use bytes::Bytes;

use crate::contents::{Contents, Entries};

/// The codec id of everything that the suite writes as bytes.
pub(crate) const BYTES: &str = "bytes";

/// A sub-key and its value.
pub(crate) type SubEntry = (Vec<u8>, Vec<u8>);

/// One task's store, with a value, a list and a map state, each with namespaces.
pub struct Task {
    /// The store.
    pub store: Box<dyn KeyedStore>,
    /// The state of values.
    pub value: StateId,
    /// The state of lists.
    pub list: StateId,
    /// The state of maps.
    pub map: StateId,
}

/// The descriptors of a value, a list and a map state of bytes, named after their kinds.
pub fn descriptors() -> [StateDescriptor; 3] {
    let bytes = || backend_core::CodecId::new(BYTES);
    [
        StateDescriptor::value("value", bytes()).with_namespace(bytes()),
        StateDescriptor::list("list", bytes()).with_namespace(bytes()),
        StateDescriptor::map("map", bytes(), bytes()).with_namespace(bytes()),
    ]
}

impl Task {
    /// Registers the three states in `store`.
    pub fn new(mut store: Box<dyn KeyedStore>) -> Result<Self> {
        let [value, list, map] = descriptors();
        let (value, list, map) = (
            store.register(&value)?,
            store.register(&list)?,
            store.register(&map)?,
        );
        Ok(Self {
            store,
            value,
            list,
            map,
        })
    }

    /// Does what an engine does between records: drains if it is told to.
    pub fn settle(&mut self, pressure: Result<Pressure>) {
        if pressure.expect("a write is applied") == Pressure::Stop {
            self.store.maintain().wait().expect("a store drains");
        }
    }

    /// The value of `key`.
    pub fn get(&mut self, key: &StateKey) -> Option<Vec<u8>> {
        let found = self.store.get(self.value, key).wait();
        found.expect("a read answers").map(|value| value.to_vec())
    }

    /// Sets the value of `key`.
    pub fn put(&mut self, key: &StateKey, value: &[u8]) {
        let pressure = self.store.put(self.value, key, value);
        self.settle(pressure);
    }

    /// Edits the value of `key`, prefetching it if need be.
    pub fn update(&mut self, key: &StateKey, mut edit: impl FnMut(Option<&[u8]>, &mut ValueEdit)) {
        loop {
            if let Some(pressure) = self.store.try_update(self.value, key, &mut edit) {
                return self.settle(pressure);
            }
            let keys = std::slice::from_ref(key);
            let prefetch = self.store.prefetch(self.value, keys);
            prefetch.wait().expect("a prefetch ends");
        }
    }

    /// Clears `key` in `state`.
    pub fn clear(&mut self, state: StateId, key: &StateKey) {
        let pressure = self.store.clear(state, key);
        self.settle(pressure);
    }

    /// Appends to the list of `key`.
    pub fn append(&mut self, key: &StateKey, element: &[u8]) {
        let pressure = self.store.list_append(self.list, key, element);
        self.settle(pressure);
    }

    /// Replaces the list of `key`.
    pub fn replace(&mut self, key: &StateKey, elements: &[Vec<u8>]) {
        let mut elements = elements.iter().map(Vec::as_slice);
        let pressure = self.store.list_replace(self.list, key, &mut elements);
        self.settle(pressure);
    }

    /// The list of `key`.
    pub fn list(&mut self, key: &StateKey) -> Vec<Vec<u8>> {
        let entries = self.scan(self.list, key, &SubKeyRange::ALL);
        let entries = entries.expect("a scan answers");
        entries.into_iter().map(|(_, element)| element).collect()
    }

    /// Sets an entry of the map of `key`.
    pub fn map_put(&mut self, key: &StateKey, sub_key: &[u8], value: &[u8]) {
        let pressure = self.store.map_put(self.map, key, sub_key, value);
        self.settle(pressure);
    }

    /// Removes an entry of the map of `key`.
    pub fn map_remove(&mut self, key: &StateKey, sub_key: &[u8]) {
        let pressure = self.store.map_remove(self.map, key, sub_key);
        self.settle(pressure);
    }

    /// An entry of the map of `key`.
    pub fn map_get(&mut self, key: &StateKey, sub_key: &[u8]) -> Option<Vec<u8>> {
        let found = self.store.map_get(self.map, key, sub_key).wait();
        found.expect("a read answers").map(|value| value.to_vec())
    }

    /// The map of `key`; it is checked that each sub-key comes once and in order.
    pub fn map(&mut self, key: &StateKey) -> Entries {
        let entries = self.scan(self.map, key, &SubKeyRange::ALL);
        ordered(entries.expect("a scan answers"))
    }

    /// The entries of `key` in `range`, by small batches so that going on is tested, too.
    pub fn scan(
        &mut self,
        state: StateId,
        key: &StateKey,
        range: &SubKeyRange,
    ) -> Result<Vec<SubEntry>> {
        let mut range = range.clone();
        let mut entries = Vec::new();
        let mut batch = EntryBatch::new(7, 4 << 10);
        loop {
            batch.clear();
            self.store.scan(state, key, &range, &mut batch).wait()?;
            entries.extend(batch.iter().map(|(k, v)| (k.to_vec(), v.to_vec())));
            if batch.is_complete() {
                return Ok(entries);
            }
            let (last, _) = entries
                .last()
                .expect("a batch that is not complete is full");
            range.start = Bound::Excluded(Bytes::copy_from_slice(last));
            // Later batches are larger, so that large maps do not take for ever.
            batch = EntryBatch::default();
        }
    }

    /// The keys of `state` in `namespace`, or all, as the cursor gives them.
    pub fn keys(
        &mut self,
        state: StateId,
        namespace: Option<&[u8]>,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut cursor = self.store.keys(state, namespace)?;
        all_keys(&mut *cursor)
    }

    /// The exact number of entries of `state`.
    pub fn count(&mut self, state: StateId) -> u64 {
        let count = self.store.entry_count(state).wait();
        count.expect("a store counts")
    }

    /// Everything, by enumeration. Keys must be listed once, lie in the task's range and have
    /// something; counts must be right.
    ///
    /// # Errors
    /// Those of the store's reads.
    pub fn contents(&mut self) -> Result<Contents> {
        let mut contents = Contents::default();
        for name in self.listed(self.value)? {
            let key = self.key_of(&name);
            let value = self.store.get(self.value, &key).wait()?;
            let value = value.expect("a listed key has a value").to_vec();
            contents.values.insert(name, value);
        }
        for name in self.listed(self.list)? {
            let key = self.key_of(&name);
            let entries = self.scan(self.list, &key, &SubKeyRange::ALL)?;
            assert!(!entries.is_empty(), "{key:?} is listed without elements");
            let elements = entries.into_iter().map(|(_, element)| element);
            contents.lists.insert(name, elements.collect());
        }
        for name in self.listed(self.map)? {
            let key = self.key_of(&name);
            let entries = ordered(self.scan(self.map, &key, &SubKeyRange::ALL)?);
            assert!(!entries.is_empty(), "{key:?} is listed without entries");
            contents.maps.insert(name, entries);
        }
        let counts = (
            self.store.entry_count(self.value).wait()?,
            self.store.entry_count(self.list).wait()?,
            self.store.entry_count(self.map).wait()?,
        );
        assert_eq!(counts, contents.entry_counts(), "entry counts are exact");
        Ok(contents)
    }

    fn listed(&mut self, state: StateId) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let listed = self.keys(state, None)?;
        let mut names = listed.clone();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), listed.len(), "each key is listed once");
        let scope = self.store.scope();
        for (key, _) in &names {
            assert!(
                scope.range.contains(scope.hasher.hash(key)),
                "task {} lists {}, which is not its own",
                scope.task,
                key.escape_ascii()
            );
        }
        Ok(names)
    }

    /// The key of that name.
    pub fn key_of(&self, (key, namespace): &(Vec<u8>, Vec<u8>)) -> StateKey {
        StateKey::new(&self.store.scope().hasher, key)
            .and_then(|key| key.in_namespace(namespace))
            .expect("a listed key is within limits")
    }
}

/// Everything that a cursor still gives, by small batches.
pub(crate) fn all_keys(cursor: &mut dyn KeyCursor) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut keys = Vec::new();
    let mut batch = KeyBatch::new(17);
    loop {
        batch.clear();
        cursor.next_batch(&mut batch).wait()?;
        if batch.is_empty() {
            return Ok(keys);
        }
        keys.extend(batch.iter().map(|(k, n)| (k.to_vec(), n.to_vec())));
    }
}

fn ordered(entries: Vec<SubEntry>) -> Entries {
    assert!(
        entries.is_sorted_by(|(a, _), (b, _)| a < b),
        "sub-keys come once each and in order"
    );
    entries.into_iter().collect()
}

//! What a job's state holds, as plain maps: the oracle that stores are compared with.

use std::collections::BTreeMap;
use std::fmt;

use backend_core::StateKey;

/// A key and its namespace.
pub type Name = (Vec<u8>, Vec<u8>);

/// The entries of a map state under one key.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// All values, lists and maps. It holds no empty list and no empty map.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Values by key.
    pub values: BTreeMap<Name, Vec<u8>>,
    /// Lists by key, in their order.
    pub lists: BTreeMap<Name, Vec<Vec<u8>>>,
    /// Maps by key.
    pub maps: BTreeMap<Name, Entries>,
}

/// The name of `key`.
pub fn name_of(key: &StateKey) -> Name {
    (key.key().to_vec(), key.namespace().to_vec())
}

impl Contents {
    /// Sets a value.
    pub fn put(&mut self, key: &StateKey, value: &[u8]) {
        self.values.insert(name_of(key), value.to_vec());
    }

    /// Appends to a list.
    pub fn append(&mut self, key: &StateKey, element: &[u8]) {
        let list = self.lists.entry(name_of(key)).or_default();
        list.push(element.to_vec());
    }

    /// Replaces a list.
    pub fn replace(&mut self, key: &StateKey, elements: &[Vec<u8>]) {
        if elements.is_empty() {
            self.lists.remove(&name_of(key));
        } else {
            self.lists.insert(name_of(key), elements.to_vec());
        }
    }

    /// Sets a map's entry.
    pub fn map_put(&mut self, key: &StateKey, sub_key: &[u8], value: &[u8]) {
        let map = self.maps.entry(name_of(key)).or_default();
        map.insert(sub_key.to_vec(), value.to_vec());
    }

    /// Removes a map's entry.
    pub fn map_remove(&mut self, key: &StateKey, sub_key: &[u8]) {
        if let Some(map) = self.maps.get_mut(&name_of(key)) {
            map.remove(sub_key);
            if map.is_empty() {
                self.maps.remove(&name_of(key));
            }
        }
    }

    /// The exact number of values, list elements and map entries.
    pub fn entry_counts(&self) -> (u64, u64, u64) {
        let elements: usize = self.lists.values().map(Vec::len).sum();
        let entries: usize = self.maps.values().map(BTreeMap::len).sum();
        (self.values.len() as u64, elements as u64, entries as u64)
    }
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |name: &Name| format!("{}@{}", text(&name.0), text(&name.1));
        let mut map = f.debug_map();
        for (name, value) in &self.values {
            map.entry(&format!("value {}", show(name)), &text(value));
        }
        for (name, list) in &self.lists {
            let list: Vec<_> = list.iter().map(|e| text(e)).collect();
            map.entry(&format!("list {}", show(name)), &list);
        }
        for (name, entries) in &self.maps {
            let entries: BTreeMap<_, _> = entries.iter().map(|(k, v)| (text(k), text(v))).collect();
            map.entry(&format!("map {}", show(name)), &entries);
        }
        map.finish()
    }
}

/// Bytes as a failure shows them: the beginning, escaped.
fn text(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(24)];
    let rest = bytes.len() - shown.len();
    if rest == 0 {
        shown.escape_ascii().to_string()
    } else {
        format!("{}..+{rest}", shown.escape_ascii())
    }
}

/// `count` bytes that do not compress, the same for the same `seed`.
pub fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        // Xorshift64*, Vigna 2016.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

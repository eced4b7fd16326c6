//! What a job holds, as plain maps: what every restore is compared with.

use std::collections::BTreeMap;

/// Values, lists and maps by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The values.
    pub(crate) values: BTreeMap<u32, u64>,
    /// The lists; none is empty.
    pub(crate) lists: BTreeMap<u32, Vec<u64>>,
    /// The maps; none is empty.
    pub(crate) maps: BTreeMap<u32, BTreeMap<u32, u64>>,
}

impl Contents {
    /// The first difference, for a message.
    pub(crate) fn difference(&self, expected: &Self) -> Option<String> {
        fn first<V: PartialEq + std::fmt::Debug>(
            what: &str,
            found: &BTreeMap<u32, V>,
            expected: &BTreeMap<u32, V>,
        ) -> Option<String> {
            let mut keys = found.keys().chain(expected.keys());
            let key = keys.find(|key| found.get(key) != expected.get(key))?;
            Some(format!(
                "{what} {key}: found {:?}, expected {:?}",
                found.get(key),
                expected.get(key)
            ))
        }
        first("value", &self.values, &expected.values)
            .or_else(|| first("list", &self.lists, &expected.lists))
            .or_else(|| first("map", &self.maps, &expected.maps))
    }
}

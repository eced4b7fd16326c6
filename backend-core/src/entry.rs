//! What state consists of: entries in one total order.

use std::cmp::Ordering;

use crate::descriptor::StateUid;

/// The three operations that exist.
///
/// A [`Op::DeletePrefix`] hides the entries of *older* segments only, never of its own, and
/// sorts first among the entries of its key and namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Hides all sub-keys of one key and namespace in older segments. Its sub-key is empty.
    DeletePrefix,
    /// Hides one sub-key in older segments.
    Delete,
    /// A value.
    Put,
}

/// A state's version table index; 0 unless the state's schema has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SchemaTag(pub u8);

/// What an entry is about, in the order of the format: state, shard, then key, namespace (each
/// by length, then by bytes), then sub-key by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryKey<'a> {
    /// The state.
    pub state: StateUid,
    /// The top eight bits of the key's hash.
    pub shard: u8,
    /// The encoded key; of a timer its time.
    pub key: &'a [u8],
    /// The encoded namespace; empty if there is none. Of a timer the encoded key.
    pub namespace: &'a [u8],
    /// Empty for a value, the user key for a map, generation and index for a list. Of a timer the
    /// encoded namespace.
    pub sub_key: &'a [u8],
}

impl<'a> EntryKey<'a> {
    /// The encoded key whose hash says which task the entry belongs to.
    #[inline]
    pub fn owner(&self) -> &'a [u8] {
        if self.state.is_timers() {
            self.namespace
        } else {
            self.key
        }
    }
}

impl Ord for EntryKey<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (self.state, self.shard)
            .cmp(&(other.state, other.shard))
            .then_with(|| self.key.len().cmp(&other.key.len()))
            .then_with(|| self.key.cmp(other.key))
            .then_with(|| self.namespace.len().cmp(&other.namespace.len()))
            .then_with(|| self.namespace.cmp(other.namespace))
            .then_with(|| self.sub_key.cmp(other.sub_key))
    }
}

impl PartialOrd for EntryKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An entry: an operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// What it is about.
    pub key: EntryKey<'a>,
    /// What it does.
    pub op: Op,
    /// The schema that the value was written under; 0 unless `op` is a put.
    pub schema: SchemaTag,
    /// When the value expires, in milliseconds since 1970; `None` if never.
    pub expires_ms: Option<u64>,
    /// The value; empty unless `op` is a put.
    pub value: &'a [u8],
}

impl<'a> Entry<'a> {
    /// A put without schema tag and expiry.
    #[inline]
    pub fn put(key: EntryKey<'a>, value: &'a [u8]) -> Self {
        Self {
            key,
            op: Op::Put,
            schema: SchemaTag(0),
            expires_ms: None,
            value,
        }
    }

    /// A deletion of one sub-key.
    #[inline]
    pub fn delete(key: EntryKey<'a>) -> Self {
        Self {
            key,
            op: Op::Delete,
            schema: SchemaTag(0),
            expires_ms: None,
            value: &[],
        }
    }

    /// A deletion of all sub-keys; `key.sub_key` must be empty.
    #[inline]
    pub fn delete_prefix(key: EntryKey<'a>) -> Self {
        debug_assert!(key.sub_key.is_empty());
        Self {
            key,
            op: Op::DeletePrefix,
            schema: SchemaTag(0),
            expires_ms: None,
            value: &[],
        }
    }

    /// The order within a segment: by key, a [`Op::DeletePrefix`] first.
    #[inline]
    pub fn cmp_in_segment(&self, other: &Self) -> Ordering {
        self.key
            .cmp(&other.key)
            .then_with(|| (self.op != Op::DeletePrefix).cmp(&(other.op != Op::DeletePrefix)))
    }
}

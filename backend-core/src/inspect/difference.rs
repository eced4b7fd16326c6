//! An entry that differs.

use std::sync::Arc;

use bytes::Bytes;

use crate::ids::OperatorId;
use crate::inspect::stored::StoredValue;

/// An entry that is not the same in two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The operator.
    pub operator: OperatorId,
    /// The state's name.
    pub state: Arc<str>,
    /// The encoded key.
    pub key: Bytes,
    /// The encoded namespace; empty if there is none.
    pub namespace: Bytes,
    /// The encoded user key of a map, or generation and index of a list's element; empty for a
    /// value.
    pub sub_key: Bytes,
    /// What the older snapshot holds.
    pub old: Option<StoredValue>,
    /// What the newer snapshot holds.
    pub new: Option<StoredValue>,
}

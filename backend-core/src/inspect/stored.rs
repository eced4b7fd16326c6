//! A value as it is stored.

use bytes::Bytes;

use crate::descriptor::SchemaVersion;

/// A value of a snapshot, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredValue {
    /// Its bytes, as its codec made them.
    pub bytes: Bytes,
    /// The schema version that it was written under.
    pub schema: SchemaVersion,
    /// When it expires, in milliseconds since 1970; `None` if never.
    pub expires_ms: Option<u64>,
}

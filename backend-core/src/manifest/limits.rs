//! Bounds of a manifest, held at the write and at the read.

/// The largest manifest, in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// The most bytes of inline segments of one task.
pub const INLINE_TASK_BYTES_MAX: u64 = 8 << 10;

/// The most bytes of inline segments in one manifest; what is beyond goes to a parts object.
pub const INLINE_BYTES_MAX: u64 = 64 << 20;

/// The largest condemn record or claim, in bytes.
pub const RECORD_BYTES_MAX: u64 = 64 << 20;

/// The most schema versions of one state: an entry tells its version by one byte.
pub const SCHEMA_VERSIONS_MAX: usize = 256;

/// The longest encoded entry key that separates two regions, in bytes: key, namespace and
/// sub-key of full length with what joins them.
pub const REGION_KEY_BYTES_MAX: usize = (192 << 10) + 64;

/// The descriptors of all parts, repeated for each task, take at most this many times the bytes
/// of the manifest, plus [`EXPANSION_BYTES_FREE`]. What a reader allocates for all else is less
/// than eight times the bytes of the manifest.
pub const EXPANSION_FACTOR_MAX: u64 = 256;

/// See [`EXPANSION_FACTOR_MAX`].
pub const EXPANSION_BYTES_FREE: u64 = 1 << 20;

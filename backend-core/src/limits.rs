//! What is refused at the write, and bounds what a reader believes.

/// The longest encoded key, in bytes.
pub const KEY_BYTES_MAX: usize = 64 << 10;

/// The longest encoded namespace, in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 64 << 10;

/// The longest encoded sub-key (a map's user key), in bytes.
pub const SUB_KEY_BYTES_MAX: usize = 64 << 10;

/// The longest value, list element or map value, in bytes.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

/// The longest name of a state, operator, job or codec, in bytes.
pub const NAME_BYTES_MAX: usize = 1 << 10;

/// The most states of one operator.
pub const STATES_MAX: usize = 4_096;

/// The state of one task that may lie in the manifest itself, in bytes.
pub const INLINE_BYTES_MAX: u64 = 8 << 10;

/// The most threads of a pool for I/O.
pub const IO_THREADS_MAX: usize = 1 << 10;

/// The engine's own bytes in a manifest, for a job or for one task.
pub const ENGINE_BYTES_MAX: usize = 16 << 20;

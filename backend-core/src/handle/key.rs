//! Typed keys and namespaces as [`StateKey`]s.

use crate::codec::KeyCodec;
use crate::error::Result;
use crate::hash::KeyHasher;
use crate::key::StateKey;

impl StateKey {
    /// The key of a typed value, for engines that encode once for many states.
    ///
    /// ```
    /// use backend_core::{KeyHasher, StateKey};
    /// let key = StateKey::encode(&KeyHasher::XXH3_64, &42u64)?;
    /// assert_eq!(key.key(), 42u64.to_be_bytes());
    /// assert_eq!(key.namespaced("window-1")?.namespace(), b"window-1");
    /// # Ok::<(), backend_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if its bytes are more than [`crate::limits::KEY_BYTES_MAX`].
    #[inline]
    pub fn encode<K: KeyCodec + ?Sized>(hasher: &KeyHasher, key: &K) -> Result<Self> {
        key.with_encoded(|bytes| Self::new(hasher, bytes))
    }

    /// The same key in a typed namespace, for example a window's start.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if the namespace's bytes are more than
    /// [`crate::limits::NAMESPACE_BYTES_MAX`].
    #[inline]
    pub fn namespaced<N: KeyCodec + ?Sized>(&self, namespace: &N) -> Result<Self> {
        namespace.with_encoded(|bytes| self.in_namespace(bytes))
    }
}

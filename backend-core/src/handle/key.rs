//! Typed keys and namespaces as [`StateKey`]s.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use crate::codec::KeyCodec;
use crate::contract::{KeyedStore, TaskScope};
use crate::error::{Error, ErrorKind, Result};
use crate::handle::types::Types;
use crate::hash::KeyHasher;
use crate::key::StateKey;

/// Encodes the keys of one task, all of type `K`.
///
/// It holds the type: a literal is of type `K`, and a store whose keys are of another type is
/// refused once, instead of being written to under keys that nobody looks for.
///
/// ```
/// use backend_core::{KeyEncoder, KeyedStore, Result, StateKey};
///
/// fn first_user(store: &dyn KeyedStore) -> Result<StateKey> {
///     let users = KeyEncoder::<u64>::new(store)?; // once per store
///     users.key(&1)
/// }
/// ```
pub struct KeyEncoder<K> {
    hasher: KeyHasher,
    types: Types<K>,
}

impl<K: KeyCodec> KeyEncoder<K> {
    /// The encoder for the keys of `store`.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] if the task's keys are not of type `K`.
    pub fn new(store: &dyn KeyedStore) -> Result<Self> {
        check_key_codec::<K>(store.scope())?;
        Ok(Self {
            hasher: store.scope().hasher,
            types: PhantomData,
        })
    }

    /// `key`, encoded and hashed.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if its bytes are more than [`crate::limits::KEY_BYTES_MAX`].
    #[inline]
    pub fn key<Q>(&self, key: &Q) -> Result<StateKey>
    where
        K: Borrow<Q>,
        Q: KeyCodec<Owned = K::Owned> + ?Sized,
    {
        StateKey::encode(&self.hasher, key)
    }
}

// Derived, these would ask the same of the type of the keys.
impl<K> Clone for KeyEncoder<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for KeyEncoder<K> {}

impl<K> fmt::Debug for KeyEncoder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyEncoder").field(&self.hasher).finish()
    }
}

/// Whether the keys of a task are of type `K`.
pub(super) fn check_key_codec<K: KeyCodec>(scope: &TaskScope) -> Result<()> {
    if scope.key_codec == K::id() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Mismatch, "keys are of another codec")
        .with("operator", &scope.operator)
        .expected_got(&scope.key_codec, K::id()))
}

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

//! A key, encoded and hashed once.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::hash::KeyHasher;
use crate::limits::{KEY_BYTES_MAX, NAMESPACE_BYTES_MAX};
use crate::range::shard_of;

/// An encoded key with its namespace and hash: made once per record, used for every state.
///
/// The hash covers the key alone, so that all namespaces of a key live in one task.
#[derive(Clone, PartialEq, Eq)]
pub struct StateKey {
    hash: u64,
    key_bytes: u32,
    /// The length of key and namespace together.
    all_bytes: u32,
    /// Key and namespace, padded with zeros, if they fit. A look-up reads it in words right after
    /// it was written: in an enum or a `SmallVec` it would lie at an odd address, be written in
    /// pieces, and each look-up would wait until the one before it has been finished.
    inline: [u8; INLINE_BYTES],
    /// Key and namespace, if they do not fit.
    outer: Option<Box<[u8]>>,
}

/// The longest key, with its namespace, that is held without an allocation.
const INLINE_BYTES: usize = 24;

impl StateKey {
    /// The key whose encoded bytes are `key`, without a namespace.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if the key is longer than [`KEY_BYTES_MAX`].
    #[inline]
    pub fn new(hasher: &KeyHasher, key: &[u8]) -> Result<Self> {
        if key.len() > KEY_BYTES_MAX {
            return Err(too_long("key", key.len(), KEY_BYTES_MAX));
        }
        Ok(Self::of_parts(hasher.hash(key), key, &[]))
    }

    /// The same key in the namespace whose encoded bytes are `namespace`. The empty namespace is
    /// the one that [`StateKey::new`] gives.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if the namespace is longer than [`NAMESPACE_BYTES_MAX`].
    pub fn in_namespace(&self, namespace: &[u8]) -> Result<Self> {
        if namespace.len() > NAMESPACE_BYTES_MAX {
            return Err(too_long("namespace", namespace.len(), NAMESPACE_BYTES_MAX));
        }
        Ok(Self::of_parts(self.hash, self.key(), namespace))
    }

    #[inline]
    fn of_parts(hash: u64, key: &[u8], namespace: &[u8]) -> Self {
        let all_bytes = key.len() + namespace.len();
        let mut inline = [0; INLINE_BYTES];
        let outer = if all_bytes <= INLINE_BYTES {
            inline[..key.len()].copy_from_slice(key);
            inline[key.len()..all_bytes].copy_from_slice(namespace);
            None
        } else {
            Some([key, namespace].concat().into_boxed_slice())
        };
        Self {
            hash,
            key_bytes: key.len() as u32,
            all_bytes: all_bytes as u32,
            inline,
            outer,
        }
    }

    /// The hash of the key.
    #[inline]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The top eight bits of the hash.
    #[inline]
    pub fn shard(&self) -> u8 {
        shard_of(self.hash)
    }

    /// The encoded key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key_and_namespace()[..self.key_bytes as usize]
    }

    /// The encoded namespace; empty if there is none.
    #[inline]
    pub fn namespace(&self) -> &[u8] {
        &self.key_and_namespace()[self.key_bytes as usize..]
    }

    /// Key and namespace, one after the other.
    #[inline]
    pub fn key_and_namespace(&self) -> &[u8] {
        match &self.outer {
            None => &self.inline[..self.all_bytes as usize],
            Some(bytes) => bytes,
        }
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key().escape_ascii())?;
        if !self.namespace().is_empty() {
            write!(f, "@{}", self.namespace().escape_ascii())?;
        }
        Ok(())
    }
}

fn too_long(what: &'static str, got: usize, max: usize) -> Error {
    Error::new(ErrorKind::Limit, "too many bytes for one write")
        .with("what", what)
        .with("bytes_max", max)
        .with("got", got)
}

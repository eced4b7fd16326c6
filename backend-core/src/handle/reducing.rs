//! One value a key, into which what is added is folded.

use std::fmt;

use crate::codec::{Codec, Native};
use crate::contract::{KeyedStore, Pressure};
use crate::descriptor::StateId;
use crate::error::Result;
use crate::fetch::Fetch;
use crate::handle::options::StateOptions;
use crate::handle::sources::distinct_sources;
use crate::handle::value::ValueState;
use crate::key::StateKey;

/// One value of type `V` a key, into which `F` folds what is added.
///
/// It is stored as a [`ValueState`] is, and a state that was written as one can be read as the
/// other. The function is not stored: a job that changes it goes on with the values that the old
/// one left.
///
/// ```
/// use backend_core::{KeyedStore, Pressure, ReducingState, Result};
///
/// fn slowest(store: &mut dyn KeyedStore, user: &str, ms: u64) -> Result<Pressure> {
///     let slowest = ReducingState::<u64, _>::register(&mut *store, "slowest", u64::max)?;
///     let key = slowest.key(user)?;
///     slowest.add(store, &key, ms).wait()
/// }
/// ```
pub struct ReducingState<V, F, C = Native> {
    values: ValueState<V, C>,
    reduce: F,
}

impl<V, F, C: Codec<V>> ReducingState<V, F, C>
where
    F: Fn(V, V) -> V + Sync,
{
    /// Makes the state `name` known to `store`, or finds it again. `reduce` is given the value
    /// so far, then what is added; it should be associative if namespaces are merged.
    ///
    /// # Errors
    /// Those of [`KeyedStore::register`].
    pub fn register(store: &mut dyn KeyedStore, name: &str, reduce: F) -> Result<Self> {
        Self::register_with(store, name, &StateOptions::default(), reduce)
    }

    /// [`ReducingState::register`] with options.
    ///
    /// # Errors
    /// Those of [`KeyedStore::register`].
    pub fn register_with(
        store: &mut dyn KeyedStore,
        name: &str,
        options: &StateOptions,
        reduce: F,
    ) -> Result<Self> {
        Ok(Self {
            values: ValueState::register_with(store, name, options)?,
            reduce,
        })
    }

    /// The state's id in the store that registered it.
    pub fn id(&self) -> StateId {
        self.values.id()
    }

    /// The state as one of values, to list its keys or to read it as bytes.
    pub fn as_values(&self) -> ValueState<V, C> {
        self.values
    }

    /// `key`, encoded and hashed; see [`ValueState::key`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if its bytes are more than [`crate::limits::KEY_BYTES_MAX`].
    #[inline]
    pub fn key<Q: crate::KeyCodec + ?Sized>(&self, key: &Q) -> Result<StateKey> {
        self.values.key(key)
    }

    /// What has been folded so far; `None` if nothing was added.
    ///
    /// # Errors
    /// Those of the store and of [`Codec::decode`].
    #[inline]
    pub fn get<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
    ) -> Fetch<'a, Option<V>> {
        self.values.get(store, key)
    }

    /// Folds `value` into that of `key`, with one look-up. Dropped before it is ready, it has
    /// changed nothing.
    ///
    /// # Errors
    /// Those of [`ValueState::update`]; then the value is as it was.
    #[inline]
    pub fn add<'a>(
        &'a self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
        value: V,
    ) -> Fetch<'a, Pressure>
    where
        V: Send + 'a,
    {
        self.values.update(store, key, move |old| {
            Some(match old {
                Some(old) => (self.reduce)(old, value),
                None => value,
            })
        })
    }

    /// Removes the value of `key`.
    ///
    /// # Errors
    /// Those of the store.
    #[inline]
    pub fn clear(&self, store: &mut dyn KeyedStore, key: &StateKey) -> Result<Pressure> {
        self.values.clear(store, key)
    }

    /// Folds the values of `sources` into that of `target`, in this order, and removes them:
    /// `target` and `sources` are namespaces of one key, for example of session windows that have
    /// met. One that stands twice, or is the target, counts once. Dropped before it is ready, it
    /// has changed nothing.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if a source is of another key; those of the store and of
    /// the codec: then everything is as it was.
    pub fn merge<'a>(
        &'a self,
        store: &'a mut dyn KeyedStore,
        target: &'a StateKey,
        sources: &'a [StateKey],
    ) -> Fetch<'a, Pressure>
    where
        V: Send + 'a,
    {
        Fetch::eager(async move {
            let sources = distinct_sources(target, sources)?;
            let mut merged: Option<V> = self.values.get(store, target).await?;
            let mut is_changed = false;
            for source in &sources {
                if let Some(value) = self.values.get(store, source).await? {
                    merged = Some(match merged {
                        Some(so_far) => (self.reduce)(so_far, value),
                        None => value,
                    });
                    is_changed = true;
                }
            }
            let mut pressure = Pressure::None;
            if let Some(merged) = merged.filter(|_| is_changed) {
                pressure = self.values.put(store, target, &merged)?;
                for source in sources {
                    pressure = pressure.max(self.values.clear(store, source)?);
                }
            }
            Ok(pressure)
        })
    }
}

impl<V, F: Clone, C> Clone for ReducingState<V, F, C> {
    fn clone(&self) -> Self {
        Self {
            values: self.values,
            reduce: self.reduce.clone(),
        }
    }
}

impl<V, F: Copy, C> Copy for ReducingState<V, F, C> {}

impl<V, F, C> fmt::Debug for ReducingState<V, F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReducingState").field(&self.values).finish()
    }
}

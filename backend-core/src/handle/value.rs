//! One value a key.

use std::slice;

use crate::codec::{Codec, Native};
use crate::contract::{KeyedStore, Pressure};
use crate::descriptor::{StateDescriptor, StateId};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::Fetch;
use crate::handle::base::impl_handle;
use crate::handle::options::StateOptions;
use crate::handle::types::Types;
use crate::hash::KeyHasher;
use crate::key::StateKey;
use crate::value::{ValueBatch, ValueEdit, ValueRef};

/// A prefetch keeps what it brings until it is read, so one is enough unless the store is
/// replaced or broken; more than this many are an error.
const PREFETCHES_MAX: usize = 4;

/// One value of type `V` a key.
///
/// ```
/// use backend_core::{KeyedStore, Pressure, Result, ValueState};
///
/// /// Counts a visit without a task being blocked or a value being read twice.
/// fn visit(store: &mut dyn KeyedStore, visits: ValueState<u64>, user: &str) -> Result<Pressure> {
///     let key = visits.key(user)?;
///     visits.update(store, &key, |n| Some(n.unwrap_or(0) + 1)).wait()
/// }
/// ```
pub struct ValueState<V, C = Native> {
    state: StateId,
    hasher: KeyHasher,
    types: Types<(V, C)>,
}

impl_handle!(ValueState<V, C>);

impl<V, C: Codec<V>> ValueState<V, C> {
    /// Makes the state `name` known to `store`, or finds it again.
    ///
    /// # Errors
    /// Those of [`KeyedStore::register`].
    pub fn register(store: &mut dyn KeyedStore, name: &str) -> Result<Self> {
        Self::register_with(store, name, &StateOptions::default())
    }

    /// [`ValueState::register`] with options.
    ///
    /// # Errors
    /// Those of [`KeyedStore::register`].
    pub fn register_with(
        store: &mut dyn KeyedStore,
        name: &str,
        options: &StateOptions,
    ) -> Result<Self> {
        let descriptor = options.apply(StateDescriptor::value(name, C::id()));
        let state = store.register(&descriptor)?;
        Ok(Self::of_state(store, state))
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// Those of the store and of [`Codec::decode`].
    #[inline]
    pub fn get<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
    ) -> Fetch<'a, Option<V>> {
        store
            .get(self.state, key)
            .and_then(|value| value.map(|bytes| C::decode(&bytes)).transpose())
    }

    /// The value of `key`, or `default` if there is none.
    ///
    /// # Errors
    /// Those of [`ValueState::get`].
    #[inline]
    pub fn get_or<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
        default: V,
    ) -> Fetch<'a, V>
    where
        V: Send + 'a,
    {
        store
            .get(self.state, key)
            .and_then(|value| value.map_or(Ok(default), |bytes| C::decode(&bytes)))
    }

    /// The bytes of the value of `key`, neither copied nor decoded.
    ///
    /// # Errors
    /// Those of the store.
    #[inline]
    pub fn get_bytes<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
    ) -> Fetch<'a, Option<ValueRef<'a>>> {
        store.get(self.state, key)
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// Those of [`Codec::encode`]; [`ErrorKind::Limit`] for a value above
    /// [`crate::limits::VALUE_BYTES_MAX`].
    #[inline]
    pub fn put(&self, store: &mut dyn KeyedStore, key: &StateKey, value: &V) -> Result<Pressure> {
        C::with_encoded(value, |bytes| store.put(self.state, key, bytes))
    }

    /// Removes the value of `key`.
    ///
    /// # Errors
    /// Those of the store.
    #[inline]
    pub fn clear(&self, store: &mut dyn KeyedStore, key: &StateKey) -> Result<Pressure> {
        store.clear(self.state, key)
    }

    /// Replaces the value of `key` by what `edit` makes of it, with one look-up; `None` stands for
    /// no value. If the value is not at hand it is fetched first. Dropped before it is ready, it
    /// has not called `edit` and changed nothing.
    ///
    /// # Errors
    /// Those of the store and of the codec; then the value is as it was.
    #[inline]
    pub fn update<'a, F>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
        edit: F,
    ) -> Fetch<'a, Pressure>
    where
        F: FnOnce(Option<V>) -> Option<V> + Send + 'a,
        V: 'a,
    {
        let mut edit = Some(edit);
        if let Some(result) = self.try_update(store, key, &mut edit) {
            return Fetch::from_result(result);
        }
        let this = *self;
        Fetch::pending(async move {
            for _ in 0..PREFETCHES_MAX {
                store.prefetch(this.state, slice::from_ref(key)).await?;
                if let Some(result) = this.try_update(store, key, &mut edit) {
                    return result;
                }
            }
            Err(never_at_hand(1))
        })
    }

    #[inline]
    fn try_update<F>(
        self,
        store: &mut dyn KeyedStore,
        key: &StateKey,
        edit: &mut Option<F>,
    ) -> Option<Result<Pressure>>
    where
        F: FnOnce(Option<V>) -> Option<V>,
    {
        let mut edited = Ok(());
        let pressure = store.try_update(self.state, key, &mut |old, value_edit| {
            let edit = edit.take().expect("a store edits a value once");
            edited = edit_value::<V, C>(old, value_edit, edit);
        })?;
        Some(edited.and(pressure))
    }

    /// The values of `keys`, appended to `out` in their order; [`ValueState::values`] decodes them.
    ///
    /// # Errors
    /// Those of the store.
    pub fn get_many<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        keys: &'a [StateKey],
        out: &'a mut ValueBatch,
    ) -> Fetch<'a, ()> {
        store.get_many(self.state, keys, out)
    }

    /// The decoded answers of [`ValueState::get_many`], in the order of the keys.
    pub fn values<'b>(
        &self,
        batch: &'b ValueBatch,
    ) -> impl ExactSizeIterator<Item = Result<Option<V>>> + use<'b, V, C> {
        batch.iter().map(|value| value.map(C::decode).transpose())
    }

    /// [`ValueState::update`] for each of `keys` in order, with its index. A key that stands twice
    /// is updated twice. If a value is not at hand all are fetched first. Dropped before it is
    /// ready, it has not called `edit` and changed nothing.
    ///
    /// # Errors
    /// Those of [`ValueState::update`]; then the values before the one that failed are updated,
    /// and those behind it are not.
    pub fn update_many<'a, F>(
        &self,
        store: &'a mut dyn KeyedStore,
        keys: &'a [StateKey],
        mut edit: F,
    ) -> Fetch<'a, Pressure>
    where
        F: FnMut(usize, Option<V>) -> Option<V> + Send + 'a,
        V: 'a,
    {
        if let Some(result) = self.try_update_many(store, keys, &mut edit) {
            return Fetch::from_result(result);
        }
        let this = *self;
        Fetch::pending(async move {
            for _ in 0..PREFETCHES_MAX {
                store.prefetch(this.state, keys).await?;
                if let Some(result) = this.try_update_many(store, keys, &mut edit) {
                    return result;
                }
            }
            Err(never_at_hand(keys.len()))
        })
    }

    fn try_update_many(
        self,
        store: &mut dyn KeyedStore,
        keys: &[StateKey],
        edit: &mut impl FnMut(usize, Option<V>) -> Option<V>,
    ) -> Option<Result<Pressure>> {
        let mut edited = Ok(());
        let pressure = store.try_update_many(self.state, keys, &mut |index, old, value_edit| {
            if edited.is_ok() {
                edited = edit_value::<V, C>(old, value_edit, |value| edit(index, value));
            }
        })?;
        Some(edited.and(pressure))
    }
}

/// Carries out `edit` on bytes. On an error they are kept.
#[inline]
fn edit_value<V, C: Codec<V>>(
    old: Option<&[u8]>,
    value_edit: &mut ValueEdit,
    edit: impl FnOnce(Option<V>) -> Option<V>,
) -> Result<()> {
    match edit(old.map(C::decode).transpose()?) {
        Some(new) => {
            C::encode(&new, value_edit.buffer()).inspect_err(|_| value_edit.keep())?;
        }
        None if old.is_some() => value_edit.clear(),
        None => value_edit.keep(),
    }
    Ok(())
}

#[cold]
fn never_at_hand(keys: usize) -> Error {
    Error::new(ErrorKind::Transient, "prefetched values were not at hand")
        .with("keys", keys)
        .with("prefetches", PREFETCHES_MAX)
}

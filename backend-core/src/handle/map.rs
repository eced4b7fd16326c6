//! A map a key.

use std::borrow::Borrow;
use std::ops::{Bound, RangeBounds};

use bytes::Bytes;
use smallvec::SmallVec;

use crate::codec::{Codec, KeyCodec, Native};
use crate::contract::{KeyedStore, Pressure};
use crate::descriptor::{StateDescriptor, StateId};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::Fetch;
use crate::handle::base::impl_handle;
use crate::handle::cursor::{EntryCursor, is_empty};
use crate::handle::map_cursor::MapCursor;
use crate::handle::options::StateOptions;
use crate::handle::types::Types;
use crate::hash::KeyHasher;
use crate::key::StateKey;
use crate::limits::SUB_KEY_BYTES_MAX;
use crate::scan::SubKeyRange;
use crate::value::ValueRef;

type SubKey = SmallVec<[u8; 64]>;

/// A map from user keys of type `K` to values of type `V` a key, ordered by the user keys. A map
/// without entries and no map are the same.
///
/// User keys are given as in a [`std::collections::BTreeMap`]: `&str` for a `String`.
///
/// # Errors
/// A read or write of a user key whose bytes are more than [`SUB_KEY_BYTES_MAX`] is refused with
/// [`ErrorKind::Limit`].
pub struct MapState<K, V, C = Native> {
    state: StateId,
    hasher: KeyHasher,
    types: Types<(K, V, C)>,
}

impl_handle!(MapState<K, V, C>);

impl<K: KeyCodec, V, C: Codec<V>> MapState<K, V, C> {
    /// Makes the state `name` known to `store`, or finds it again.
    ///
    /// # Errors
    /// Those of [`KeyedStore::register`].
    pub fn register(store: &mut dyn KeyedStore, name: &str) -> Result<Self> {
        Self::register_with(store, name, &StateOptions::default())
    }

    /// [`MapState::register`] with options.
    ///
    /// # Errors
    /// Those of [`KeyedStore::register`].
    pub fn register_with(
        store: &mut dyn KeyedStore,
        name: &str,
        options: &StateOptions,
    ) -> Result<Self> {
        let descriptor = options.apply(StateDescriptor::map(name, K::id(), C::id()));
        let state = store.register(&descriptor)?;
        Ok(Self::of_state(store, state))
    }

    /// The value of `user_key` in the map of `key`.
    ///
    /// # Errors
    /// Those of the store and of [`Codec::decode`].
    #[inline]
    pub fn get<'a, Q>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
        user_key: &Q,
    ) -> Fetch<'a, Option<V>>
    where
        K: Borrow<Q>,
        Q: KeyCodec<Owned = K::Owned> + ?Sized,
        V: 'a,
    {
        self.read(store, key, user_key, decode_value::<V, C>)
    }

    /// Whether the map of `key` has `user_key`.
    ///
    /// # Errors
    /// Those of the store.
    #[inline]
    pub fn contains<'a, Q>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
        user_key: &Q,
    ) -> Fetch<'a, bool>
    where
        K: Borrow<Q>,
        Q: KeyCodec<Owned = K::Owned> + ?Sized,
    {
        self.read(store, key, user_key, |value| Ok(value.is_some()))
    }

    /// Sets the value of `user_key` in the map of `key`.
    ///
    /// # Errors
    /// Those of [`Codec::encode`]; [`ErrorKind::Limit`] for a value above
    /// [`crate::limits::VALUE_BYTES_MAX`].
    #[inline]
    pub fn put<Q>(
        &self,
        store: &mut dyn KeyedStore,
        key: &StateKey,
        user_key: &Q,
        value: &V,
    ) -> Result<Pressure>
    where
        K: Borrow<Q>,
        Q: KeyCodec<Owned = K::Owned> + ?Sized,
    {
        user_key.with_encoded(|sub_key| {
            check_sub_key(sub_key)?;
            C::with_encoded(value, |bytes| {
                store.map_put(self.state, key, sub_key, bytes)
            })
        })
    }

    /// Sets every one of `entries` in the map of `key`. None leave it as it is.
    ///
    /// # Errors
    /// Those of [`MapState::put`]; then the entries before the one that failed are set.
    pub fn put_all<I, A, B>(
        &self,
        store: &mut dyn KeyedStore,
        key: &StateKey,
        entries: I,
    ) -> Result<Pressure>
    where
        I: IntoIterator<Item = (A, B)>,
        A: Borrow<K>,
        B: Borrow<V>,
    {
        let mut pressure = Pressure::None;
        for (user_key, value) in entries {
            let user_key: &K = user_key.borrow();
            pressure = pressure.max(self.put(store, key, user_key, value.borrow())?);
        }
        Ok(pressure)
    }

    /// Removes `user_key` from the map of `key`, whether it is there or not, without a read.
    ///
    /// # Errors
    /// Those of the store.
    #[inline]
    pub fn remove<Q>(
        &self,
        store: &mut dyn KeyedStore,
        key: &StateKey,
        user_key: &Q,
    ) -> Result<Pressure>
    where
        K: Borrow<Q>,
        Q: KeyCodec<Owned = K::Owned> + ?Sized,
    {
        user_key.with_encoded(|sub_key| {
            check_sub_key(sub_key)?;
            store.map_remove(self.state, key, sub_key)
        })
    }

    /// Removes `user_key` from the map of `key` and answers what its value was. Dropped before it
    /// is ready, it has changed nothing. How full the store is, its next write says.
    ///
    /// # Errors
    /// Those of the store and of [`Codec::decode`]; then the entry is as it was.
    pub fn take<'a, Q>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
        user_key: &Q,
    ) -> Fetch<'a, Option<V>>
    where
        K: Borrow<Q>,
        Q: KeyCodec<Owned = K::Owned> + ?Sized,
        V: 'a,
    {
        let state = self.state;
        let mut sub_key = SubKey::new();
        user_key.encode(&mut sub_key);
        match self.read_now(store, key, &sub_key, decode_value::<V, C>) {
            Some(Ok(Some(value))) => {
                Fetch::from_result(store.map_remove(state, key, &sub_key).map(|_| Some(value)))
            }
            Some(result) => Fetch::from_result(result),
            None => Fetch::pending(async move {
                let value = decode_value::<V, C>(store.map_get(state, key, &sub_key).await?)?;
                if value.is_some() {
                    store.map_remove(state, key, &sub_key)?;
                }
                Ok(value)
            }),
        }
    }

    /// Whether the map of `key` has no entry.
    ///
    /// # Errors
    /// Those of the store.
    pub fn is_empty<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
    ) -> Fetch<'a, bool> {
        is_empty(store, self.state, key)
    }

    /// Removes the whole map of `key`.
    ///
    /// # Errors
    /// Those of the store.
    #[inline]
    pub fn clear(&self, store: &mut dyn KeyedStore, key: &StateKey) -> Result<Pressure> {
        store.clear(self.state, key)
    }

    /// Walks over the map of `key`, of any size, in the order of its user keys.
    pub fn cursor<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
    ) -> MapCursor<'a, K, V, C> {
        MapCursor::new(EntryCursor::new(store, self.state, key, SubKeyRange::ALL))
    }

    /// Walks over the entries of the map of `key` whose user keys lie in `range`. A range that ends
    /// before it begins holds none.
    pub fn range<'a, Q, R>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
        range: R,
    ) -> MapCursor<'a, K, V, C>
    where
        K: Borrow<Q>,
        Q: KeyCodec<Owned = K::Owned> + ?Sized,
        R: RangeBounds<Q>,
    {
        let range = SubKeyRange {
            start: encode_bound(range.start_bound()),
            end: encode_bound(range.end_bound()),
        };
        MapCursor::new(EntryCursor::new(store, self.state, key, range))
    }

    /// Every user key of the map of `key`, in order.
    ///
    /// # Errors
    /// Those of the store and of [`KeyCodec::decode`].
    pub fn keys<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
    ) -> Fetch<'a, Vec<K::Owned>>
    where
        K: 'a,
        K::Owned: Send + 'a,
        V: 'a,
    {
        collect(self.cursor(store, key), |sub_key, _| K::decode(sub_key))
    }

    /// Every value of the map of `key`, in the order of its user keys.
    ///
    /// # Errors
    /// Those of the store and of [`Codec::decode`].
    pub fn values<'a>(&self, store: &'a mut dyn KeyedStore, key: &'a StateKey) -> Fetch<'a, Vec<V>>
    where
        K: 'a,
        V: Send + 'a,
    {
        collect(self.cursor(store, key), |_, value| C::decode(value))
    }

    /// Every entry of the map of `key`, in the order of its user keys. For a map that may be large,
    /// use [`MapState::cursor`].
    ///
    /// # Errors
    /// Those of the store and of the codecs.
    pub fn entries<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
    ) -> Fetch<'a, Vec<(K::Owned, V)>>
    where
        K: 'a,
        K::Owned: Send + 'a,
        V: Send + 'a,
    {
        collect(self.cursor(store, key), |sub_key, value| {
            Ok((K::decode(sub_key)?, C::decode(value)?))
        })
    }

    #[inline]
    fn read<'a, Q, R>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
        user_key: &Q,
        decode: Decode<R>,
    ) -> Fetch<'a, R>
    where
        Q: KeyCodec + ?Sized,
        R: 'a,
    {
        let answer = user_key.with_encoded(|sub_key| self.read_now(store, key, sub_key, decode));
        if let Some(result) = answer {
            return Fetch::from_result(result);
        }
        let state = self.state;
        let mut sub_key = SubKey::new();
        user_key.encode(&mut sub_key);
        Fetch::pending(async move { decode(store.map_get(state, key, &sub_key).await?) })
    }

    /// The answer to a read if it is at hand. A pending answer borrows the sub-key, which ends with
    /// the call, so it is dropped and asked for again by a future that owns the sub-key.
    #[inline]
    fn read_now<R>(
        &self,
        store: &mut dyn KeyedStore,
        key: &StateKey,
        sub_key: &[u8],
        decode: Decode<R>,
    ) -> Option<Result<R>> {
        if let Err(error) = check_sub_key(sub_key) {
            return Some(Err(error));
        }
        match store.map_get(self.state, key, sub_key) {
            Fetch::Ready(result) => Some(result.expect("a fetch is awaited once").and_then(decode)),
            Fetch::Pending(_) => None,
        }
    }
}

type Decode<R> = fn(Option<ValueRef<'_>>) -> Result<R>;

#[inline]
fn decode_value<V, C: Codec<V>>(value: Option<ValueRef<'_>>) -> Result<Option<V>> {
    value.map(|bytes| C::decode(&bytes)).transpose()
}

#[inline]
fn check_sub_key(sub_key: &[u8]) -> Result<()> {
    if sub_key.len() > SUB_KEY_BYTES_MAX {
        return Err(Error::new(ErrorKind::Limit, "a map's user key is too long")
            .with("bytes_max", SUB_KEY_BYTES_MAX)
            .with("got", sub_key.len()));
    }
    Ok(())
}

fn encode_bound<Q: KeyCodec + ?Sized>(bound: Bound<&Q>) -> Bound<Bytes> {
    bound.map(|user_key| user_key.with_encoded(Bytes::copy_from_slice))
}

fn collect<'a, K, V, C, T>(
    mut cursor: MapCursor<'a, K, V, C>,
    read: fn(&[u8], &[u8]) -> Result<T>,
) -> Fetch<'a, Vec<T>>
where
    K: KeyCodec + 'a,
    V: 'a,
    C: Codec<V>,
    T: Send + 'a,
{
    Fetch::eager(async move {
        let mut items = Vec::new();
        while let Some(item) = cursor.next_with(read).await? {
            items.push(item);
        }
        Ok(items)
    })
}

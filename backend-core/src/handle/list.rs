//! A list a key.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use crate::codec::{Codec, Native};
use crate::contract::{KeyedStore, Pressure};
use crate::descriptor::{StateDescriptor, StateId};
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::Fetch;
use crate::handle::base::impl_handle;
use crate::handle::cursor::{EntryCursor, is_empty};
use crate::handle::options::StateOptions;
use crate::handle::sources::distinct_sources;
use crate::handle::types::Types;
use crate::hash::KeyHasher;
use crate::key::StateKey;
use crate::limits::VALUE_BYTES_MAX;
use crate::scan::SubKeyRange;

/// A list of elements of type `T` a key, in the order in which they were added. A list without
/// elements and no list are the same.
pub struct ListState<T, C = Native> {
    state: StateId,
    hasher: KeyHasher,
    types: Types<(T, C)>,
}

impl_handle!(ListState<T, C>);

impl<T, C: Codec<T>> ListState<T, C> {
    /// Makes the state `name` known to `store`, or finds it again.
    ///
    /// # Errors
    /// Those of [`KeyedStore::register`].
    pub fn register(store: &mut dyn KeyedStore, name: &str) -> Result<Self> {
        Self::register_with(store, name, &StateOptions::default())
    }

    /// [`ListState::register`] with options.
    ///
    /// # Errors
    /// Those of [`KeyedStore::register`].
    pub fn register_with(
        store: &mut dyn KeyedStore,
        name: &str,
        options: &StateOptions,
    ) -> Result<Self> {
        let descriptor = options.apply(StateDescriptor::list(name, C::id()));
        let state = store.register(&descriptor)?;
        Ok(Self::of_state(store, state))
    }

    /// Appends `element` to the list of `key`, without a read.
    ///
    /// # Errors
    /// Those of [`Codec::encode`]; [`ErrorKind::Limit`] for an element above
    /// [`VALUE_BYTES_MAX`].
    #[inline]
    pub fn add(&self, store: &mut dyn KeyedStore, key: &StateKey, element: &T) -> Result<Pressure> {
        C::with_encoded(element, |bytes| store.list_append(self.state, key, bytes))
    }

    /// Appends `elements` to the list of `key`, without a read. None leave it as it is.
    ///
    /// # Errors
    /// Those of [`ListState::add`]; then none is appended.
    pub fn add_all<I>(
        &self,
        store: &mut dyn KeyedStore,
        key: &StateKey,
        elements: I,
    ) -> Result<Pressure>
    where
        I: IntoIterator<Item: Borrow<T>>,
    {
        let packed = Packed::encode::<T, C>(elements)?;
        let mut pressure = Pressure::None;
        for element in packed.iter() {
            pressure = pressure.max(store.list_append(self.state, key, element)?);
        }
        Ok(pressure)
    }

    /// Replaces the list of `key` by `elements`. None clear it.
    ///
    /// # Errors
    /// Those of [`ListState::add`]; then the list is as it was.
    pub fn update<I>(
        &self,
        store: &mut dyn KeyedStore,
        key: &StateKey,
        elements: I,
    ) -> Result<Pressure>
    where
        I: IntoIterator<Item: Borrow<T>>,
    {
        let packed = Packed::encode::<T, C>(elements)?;
        store.list_replace(self.state, key, &mut packed.iter())
    }

    /// The whole list of `key`; empty if there is none. For a list that may be large, use
    /// [`ListState::cursor`].
    ///
    /// # Errors
    /// Those of the store and of [`Codec::decode`].
    pub fn get<'a>(&self, store: &'a mut dyn KeyedStore, key: &'a StateKey) -> Fetch<'a, Vec<T>>
    where
        T: Send + 'a,
    {
        let mut cursor = self.cursor(store, key);
        Fetch::eager(async move {
            let mut elements = Vec::new();
            while cursor.entries.step().await? {
                elements.push(C::decode(cursor.entries.entry().1)?);
            }
            Ok(elements)
        })
    }

    /// Walks over the list of `key`, of any size, batch by batch.
    pub fn cursor<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        key: &'a StateKey,
    ) -> ListCursor<'a, T, C> {
        ListCursor {
            entries: EntryCursor::new(store, self.state, key, SubKeyRange::ALL),
            types: PhantomData,
        }
    }

    /// Whether the list of `key` has no element.
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

    /// Appends the lists of `sources` to that of `target`, in this order, and removes them:
    /// `target` and `sources` are namespaces of one key, for example of session windows that have
    /// met. One that stands twice, or is the target, counts once. The sources' elements are held
    /// in memory meanwhile. Dropped before it is ready, it has changed nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if a source is of another key; those of the store: if one fails to
    /// be read, everything is as it was.
    pub fn merge<'a>(
        &self,
        store: &'a mut dyn KeyedStore,
        target: &'a StateKey,
        sources: &'a [StateKey],
    ) -> Fetch<'a, Pressure> {
        let state = self.state;
        Fetch::eager(async move {
            let sources = distinct_sources(target, sources)?;
            let mut packed = Packed::default();
            for source in &sources {
                let mut entries = EntryCursor::new(&mut *store, state, source, SubKeyRange::ALL);
                while entries.step().await? {
                    packed.push(entries.entry().1);
                }
            }
            let mut pressure = Pressure::None;
            for element in packed.iter() {
                pressure = pressure.max(store.list_append(state, target, element)?);
            }
            if !packed.ends.is_empty() {
                for source in sources {
                    pressure = pressure.max(store.clear(state, source)?);
                }
            }
            Ok(pressure)
        })
    }

    /// Removes the list of `key`.
    ///
    /// # Errors
    /// Those of the store.
    #[inline]
    pub fn clear(&self, store: &mut dyn KeyedStore, key: &StateKey) -> Result<Pressure> {
        store.clear(self.state, key)
    }
}

/// A walk over a list; see [`ListState::cursor`].
pub struct ListCursor<'a, T, C = Native> {
    entries: EntryCursor<'a>,
    types: Types<(T, C)>,
}

impl<T, C: Codec<T>> ListCursor<'_, T, C> {
    /// The next element; `None` at the end. Dropping the fetch before it is ready skips nothing.
    ///
    /// # Errors
    /// Those of the store and of [`Codec::decode`].
    #[expect(clippy::should_implement_trait, reason = "a step may have to wait")]
    #[inline]
    pub fn next(&mut self) -> Fetch<'_, Option<T>> {
        if self.entries.step_in_batch() {
            return Fetch::from_result(C::decode(self.entries.entry().1).map(Some));
        }
        Fetch::eager(async move {
            if self.entries.step().await? {
                C::decode(self.entries.entry().1).map(Some)
            } else {
                Ok(None)
            }
        })
    }
}

impl<T, C> fmt::Debug for ListCursor<'_, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListCursor").finish_non_exhaustive()
    }
}

/// Encoded elements, one behind the other, all of them fit to be written.
#[derive(Default)]
struct Packed {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Packed {
    fn encode<T, C: Codec<T>>(elements: impl IntoIterator<Item: Borrow<T>>) -> Result<Self> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for element in elements {
            let start = bytes.len();
            C::encode(element.borrow(), &mut bytes)?;
            if bytes.len() - start > VALUE_BYTES_MAX {
                return Err(Error::new(ErrorKind::Limit, "a list element is too long")
                    .with("index", ends.len())
                    .with("bytes_max", VALUE_BYTES_MAX)
                    .with("got", bytes.len() - start));
            }
            ends.push(bytes.len());
        }
        Ok(Self { bytes, ends })
    }

    fn push(&mut self, element: &[u8]) {
        self.bytes.extend_from_slice(element);
        self.ends.push(self.bytes.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let element = &self.bytes[start..end];
            start = end;
            element
        })
    }
}

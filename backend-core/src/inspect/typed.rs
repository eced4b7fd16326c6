//! Types above a [`SnapshotReader`], with the codecs of the handles.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use crate::codec::{Codec, KeyCodec, Native};
use crate::descriptor::{SchemaVersion, StateDescriptor};
use crate::error::{Error, ErrorKind, Result};
use crate::handle::StateOptions;
use crate::inspect::reader::SnapshotReader;
use crate::inspect::stored::StoredValue;
use crate::key::StateKey;

/// Types that a reader makes values of, and does not hold.
type Types<T> = PhantomData<fn() -> T>;

/// What the readers of all kinds have in common.
#[derive(Clone)]
struct State {
    reader: SnapshotReader,
    name: Box<str>,
    schema: SchemaVersion,
}

impl State {
    /// The state that `wanted` describes, if it was stored in just that way.
    fn open(
        reader: &SnapshotReader,
        wanted: StateDescriptor,
        options: &StateOptions,
    ) -> Result<Self> {
        let wanted = options.apply(wanted);
        let stored = reader.state_of(&wanted.name, &[wanted.kind])?;
        stored.descriptor.check_compatible(&wanted)?;
        Ok(Self {
            reader: reader.clone(),
            name: wanted.name.into(),
            schema: wanted.schema,
        })
    }

    fn decode<T, C: Codec<T>>(&self, value: &StoredValue) -> Result<T> {
        if value.schema != self.schema {
            return Err(Error::new(
                ErrorKind::Mismatch,
                "a value was written under another schema version",
            )
            .with("state", &self.name)
            .expected_got(self.schema.0, value.schema.0));
        }
        C::decode(&value.bytes)
    }
}

macro_rules! impl_reader {
    ($reader:ident<$($param:ident),+>) => {
        // Derived, these would ask the same of the types of the values.
        impl<$($param),+> Clone for $reader<$($param),+> {
            fn clone(&self) -> Self {
                Self {
                    state: self.state.clone(),
                    types: PhantomData,
                }
            }
        }

        impl<$($param),+> fmt::Debug for $reader<$($param),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($reader)).field(&self.state.name).finish()
            }
        }
    };
}

/// Reads a state of one value of type `V` a key, as [`crate::ValueState`] wrote it.
pub struct ValueReader<V, C = Native> {
    state: State,
    types: Types<(V, C)>,
}

impl_reader!(ValueReader<V, C>);

impl<V, C: Codec<V>> ValueReader<V, C> {
    /// Reads the state `name`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the snapshot knows no such state; [`ErrorKind::Mismatch`] if it
    /// was stored with another kind, codec or schema version.
    pub fn open(reader: &SnapshotReader, name: &str) -> Result<Self> {
        Self::open_with(reader, name, &StateOptions::default())
    }

    /// [`ValueReader::open`] with the options that the state was registered with; a time to live
    /// need not be among them.
    ///
    /// # Errors
    /// As [`ValueReader::open`].
    pub fn open_with(reader: &SnapshotReader, name: &str, options: &StateOptions) -> Result<Self> {
        let wanted = StateDescriptor::value(name, C::id());
        Ok(Self {
            state: State::open(reader, wanted, options)?,
            types: PhantomData,
        })
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// Those of [`SnapshotReader::value`] and of [`Codec::decode`]; [`ErrorKind::Mismatch`] if
    /// the value was written under another schema version.
    pub async fn get(&self, key: &StateKey) -> Result<Option<V>> {
        let value = self.state.reader.value(&self.state.name, key).await?;
        value
            .map(|value| self.state.decode::<V, C>(&value))
            .transpose()
    }
}

/// Reads a state of lists of elements of type `T`, as [`crate::ListState`] wrote it.
pub struct ListReader<T, C = Native> {
    state: State,
    types: Types<(T, C)>,
}

impl_reader!(ListReader<T, C>);

impl<T, C: Codec<T>> ListReader<T, C> {
    /// Reads the state `name`.
    ///
    /// # Errors
    /// As [`ValueReader::open`].
    pub fn open(reader: &SnapshotReader, name: &str) -> Result<Self> {
        Self::open_with(reader, name, &StateOptions::default())
    }

    /// [`ListReader::open`] with options; see [`ValueReader::open_with`].
    ///
    /// # Errors
    /// As [`ValueReader::open`].
    pub fn open_with(reader: &SnapshotReader, name: &str, options: &StateOptions) -> Result<Self> {
        let wanted = StateDescriptor::list(name, C::id());
        Ok(Self {
            state: State::open(reader, wanted, options)?,
            types: PhantomData,
        })
    }

    /// The whole list of `key`; empty if there is none. For one that may be large, use
    /// [`SnapshotReader::entries`].
    ///
    /// # Errors
    /// Those of [`crate::inspect::Entries::next`] and of [`Codec::decode`];
    /// [`ErrorKind::Mismatch`] if an element was written under another schema version.
    pub async fn get(&self, key: &StateKey) -> Result<Vec<T>> {
        let mut entries = self.state.reader.entries(&self.state.name, key)?;
        let mut elements = Vec::new();
        while let Some(entry) = entries.next().await? {
            elements.push(self.state.decode::<T, C>(&entry.value)?);
        }
        Ok(elements)
    }
}

/// Reads a state of maps from `K` to `V`, as [`crate::MapState`] wrote it.
pub struct MapReader<K, V, C = Native> {
    state: State,
    types: Types<(K, V, C)>,
}

impl_reader!(MapReader<K, V, C>);

impl<K: KeyCodec, V, C: Codec<V>> MapReader<K, V, C> {
    /// Reads the state `name`.
    ///
    /// # Errors
    /// As [`ValueReader::open`].
    pub fn open(reader: &SnapshotReader, name: &str) -> Result<Self> {
        Self::open_with(reader, name, &StateOptions::default())
    }

    /// [`MapReader::open`] with options; see [`ValueReader::open_with`].
    ///
    /// # Errors
    /// As [`ValueReader::open`].
    pub fn open_with(reader: &SnapshotReader, name: &str, options: &StateOptions) -> Result<Self> {
        let wanted = StateDescriptor::map(name, K::id(), C::id());
        Ok(Self {
            state: State::open(reader, wanted, options)?,
            types: PhantomData,
        })
    }

    /// The value of `user_key` in the map of `key`.
    ///
    /// # Errors
    /// Those of [`SnapshotReader::map_value`] and of [`Codec::decode`]; [`ErrorKind::Mismatch`]
    /// if the value was written under another schema version.
    pub async fn get<Q>(&self, key: &StateKey, user_key: &Q) -> Result<Option<V>>
    where
        K: Borrow<Q>,
        Q: KeyCodec<Owned = K::Owned> + ?Sized,
    {
        let sub_key = user_key.with_encoded(<[u8]>::to_vec);
        let state = &self.state;
        let value = state.reader.map_value(&state.name, key, &sub_key).await?;
        value.map(|value| state.decode::<V, C>(&value)).transpose()
    }

    /// All entries of the map of `key`, in the order of their user keys; none if there is no map.
    /// For one that may be large, use [`SnapshotReader::entries`].
    ///
    /// # Errors
    /// Those of [`crate::inspect::Entries::next`] and of the codecs; [`ErrorKind::Mismatch`] if a
    /// value was written under another schema version.
    pub async fn entries(&self, key: &StateKey) -> Result<Vec<(K::Owned, V)>> {
        let mut entries = self.state.reader.entries(&self.state.name, key)?;
        let mut all = Vec::new();
        while let Some(entry) = entries.next().await? {
            let value = self.state.decode::<V, C>(&entry.value)?;
            all.push((K::decode(&entry.sub_key)?, value));
        }
        Ok(all)
    }
}

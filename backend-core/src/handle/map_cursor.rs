//! A walk over the entries of a map.

use std::fmt;
use std::marker::PhantomData;

use crate::codec::{Codec, KeyCodec, Native};
use crate::contract::Pressure;
use crate::error::Result;
use crate::fetch::Fetch;
use crate::handle::cursor::EntryCursor;
use crate::handle::types::Types;

/// A walk over a map in the order of its user keys; see [`crate::MapState::cursor`].
///
/// It visits each entry once, whatever it removes or sets on the way, and later reads see what it
/// did.
///
/// ```
/// use backend_core::{KeyedStore, MapState, Result, StateKey};
///
/// async fn halve(
///     store: &mut dyn KeyedStore,
///     stock: MapState<String, u32>,
///     key: &StateKey,
/// ) -> Result<()> {
///     let mut cursor = stock.cursor(store, key);
///     while let Some((_article, count)) = cursor.next().await? {
///         if count < 2 {
///             cursor.remove()?;
///         } else {
///             cursor.set(&(count / 2))?;
///         }
///     }
///     Ok(())
/// }
/// ```
pub struct MapCursor<'a, K, V, C = Native> {
    entries: EntryCursor<'a>,
    types: Types<(K, V, C)>,
}

impl<'a, K: KeyCodec, V, C: Codec<V>> MapCursor<'a, K, V, C> {
    pub(super) fn new(entries: EntryCursor<'a>) -> Self {
        Self {
            entries,
            types: PhantomData,
        }
    }

    /// The next entry; `None` at the end. Dropping the fetch before it is ready skips nothing.
    ///
    /// # Errors
    /// Those of the store and of the codecs.
    #[expect(clippy::should_implement_trait, reason = "a step may have to wait")]
    #[inline]
    pub fn next(&mut self) -> Fetch<'_, Option<(K::Owned, V)>> {
        if self.entries.step_in_batch() {
            return Fetch::from_result(self.decode().map(Some));
        }
        Fetch::eager(async move {
            if self.entries.step().await? {
                self.decode().map(Some)
            } else {
                Ok(None)
            }
        })
    }

    /// Removes the entry that [`MapCursor::next`] gave last.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if there is none: before the first, behind the last, or when
    /// it was removed already.
    pub fn remove(&mut self) -> Result<Pressure> {
        self.entries.remove()
    }

    /// Sets the value of the entry that [`MapCursor::next`] gave last.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] as for [`MapCursor::remove`]; those of
    /// [`crate::MapState::put`].
    pub fn set(&mut self, value: &V) -> Result<Pressure> {
        C::with_encoded(value, |bytes| self.entries.set(bytes))
    }

    #[inline]
    fn decode(&self) -> Result<(K::Owned, V)> {
        let (sub_key, value) = self.entries.entry();
        Ok((K::decode(sub_key)?, C::decode(value)?))
    }

    /// The next entry as `read` has it from its bytes.
    pub(super) async fn next_with<T>(
        &mut self,
        read: fn(&[u8], &[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        if !self.entries.step().await? {
            return Ok(None);
        }
        let (sub_key, value) = self.entries.entry();
        read(sub_key, value).map(Some)
    }
}

impl<K, V, C> fmt::Debug for MapCursor<'_, K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapCursor").finish_non_exhaustive()
    }
}

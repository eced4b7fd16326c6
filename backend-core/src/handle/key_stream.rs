//! The keys of a state, typed.

use std::fmt;
use std::marker::PhantomData;

use crate::codec::KeyCodec;
use crate::contract::KeyedStore;
use crate::descriptor::StateId;
use crate::error::Result;
use crate::fetch::Fetch;
use crate::handle::key::check_key_codec;
use crate::handle::types::Types;
use crate::scan::{KeyBatch, KeyCursor};

/// The keys of a state with their namespaces, as they were when the stream was opened.
///
/// It does not borrow the store: the owner may write, and clear the very keys it is shown.
pub struct KeyStream<K, N = ()> {
    cursor: Box<dyn KeyCursor>,
    batch: KeyBatch,
    /// How many keys of `batch` have been given out; `None` while it is being filled.
    index: Option<usize>,
    types: Types<(K, N)>,
}

impl<K: KeyCodec, N: KeyCodec> KeyStream<K, N> {
    pub(super) fn open(
        store: &mut dyn KeyedStore,
        state: StateId,
        namespace: Option<&[u8]>,
    ) -> Result<Self> {
        check_key_codec::<K>(store.scope())?;
        Ok(Self {
            cursor: store.keys(state, namespace)?,
            batch: KeyBatch::default(),
            index: None,
            types: PhantomData,
        })
    }

    /// The next key and its namespace; `None` at the end.
    ///
    /// # Errors
    /// Those of the store; [`crate::ErrorKind::Corrupt`] for bytes that are no key or namespace of
    /// these types, for example the empty namespace of a key that was written without one. The
    /// stream goes on behind them.
    #[expect(clippy::should_implement_trait, reason = "a step may have to wait")]
    pub fn next(&mut self) -> Fetch<'_, Option<(K::Owned, N::Owned)>> {
        if self.index.is_some_and(|index| index < self.batch.len()) {
            return Fetch::from_result(self.take());
        }
        Fetch::eager(async move {
            self.fill().await?;
            self.take()
        })
    }

    /// Every key that is left, with its namespace.
    ///
    /// # Errors
    /// Those of [`KeyStream::next`].
    pub fn collect<'a>(mut self) -> Fetch<'a, Vec<(K::Owned, N::Owned)>>
    where
        K: 'a,
        N: 'a,
        K::Owned: Send + 'a,
        N::Owned: Send + 'a,
    {
        Fetch::eager(async move {
            let mut keys = Vec::new();
            loop {
                while let Some(key) = self.take()? {
                    keys.push(key);
                }
                self.fill().await?;
                if self.batch.is_empty() {
                    return Ok(keys);
                }
            }
        })
    }

    async fn fill(&mut self) -> Result<()> {
        self.index = None;
        self.batch.clear();
        self.cursor.next_batch(&mut self.batch).await?;
        self.index = Some(0);
        Ok(())
    }

    /// The next key of the batch; `None` at its end.
    fn take(&mut self) -> Result<Option<(K::Owned, N::Owned)>> {
        let Some(index) = self.index.as_mut().filter(|i| **i < self.batch.len()) else {
            return Ok(None);
        };
        let (key, namespace) = self.batch.get(*index);
        *index += 1;
        Ok(Some((K::decode(key)?, N::decode(namespace)?)))
    }
}

impl<K, N> fmt::Debug for KeyStream<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyStream")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

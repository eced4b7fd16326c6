//! Values as bytes: borrowed, shared, or gathered in a batch.

use std::ops::Deref;

use bytes::Bytes;

/// The bytes of a value: borrowed from the store, or shared.
#[derive(Clone, Debug)]
pub enum ValueRef<'a> {
    /// Borrowed from the store.
    Borrowed(&'a [u8]),
    /// Reference-counted, for example a part of a cached block.
    Shared(Bytes),
}

impl Deref for ValueRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for ValueRef<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// What an update does to a value. It starts as 'leave it'.
#[derive(Debug, Default)]
pub struct ValueEdit {
    bytes: Vec<u8>,
    action: EditAction,
}

/// The action of a [`ValueEdit`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EditAction {
    /// Leave the value as it is.
    #[default]
    Keep,
    /// Store the bytes of the edit.
    Put,
    /// Remove the value.
    Clear,
}

impl ValueEdit {
    /// Leaves the value as it is.
    #[inline]
    pub fn keep(&mut self) {
        self.action = EditAction::Keep;
    }

    /// Stores `value`.
    #[inline]
    pub fn put(&mut self, value: &[u8]) {
        self.buffer().extend_from_slice(value);
    }

    /// An emptied buffer to encode the new value into; what it holds afterwards is stored.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.action = EditAction::Put;
        self.bytes.clear();
        &mut self.bytes
    }

    /// Removes the value.
    #[inline]
    pub fn clear(&mut self) {
        self.action = EditAction::Clear;
    }

    /// What to do.
    #[inline]
    pub fn action(&self) -> EditAction {
        self.action
    }

    /// The bytes to store, if the action is [`EditAction::Put`].
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The answers of a `get_many`, packed; reuse it to save allocations.
#[derive(Debug, Default)]
pub struct ValueBatch {
    bytes: Vec<u8>,
    /// One past the end of each value in `bytes`, and whether it is present.
    ends: Vec<(usize, bool)>,
}

impl ValueBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all answers and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds an answer.
    #[inline]
    pub fn push(&mut self, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.bytes.extend_from_slice(value);
        }
        self.ends.push((self.bytes.len(), value.is_some()));
    }

    /// The number of answers.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The answer for the key at `index`.
    ///
    /// # Panics
    /// If `index` is not below [`ValueBatch::len`].
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (end, present) = self.ends[index];
        let start = if index == 0 {
            0
        } else {
            self.ends[index - 1].0
        };
        present.then(|| &self.bytes[start..end])
    }

    /// The answers in the order of the keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        (0..self.len()).map(|i| self.get(i))
    }
}

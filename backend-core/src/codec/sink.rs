//! Where encoders write to.

use smallvec::{Array, SmallVec};

/// A growing buffer that an encoder appends to: a [`Vec`], or a [`SmallVec`] on the stack.
pub trait ByteSink {
    /// Appends `bytes`.
    fn push_bytes(&mut self, bytes: &[u8]);
}

impl ByteSink for Vec<u8> {
    #[inline]
    fn push_bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl<A: Array<Item = u8>> ByteSink for SmallVec<A> {
    #[inline]
    fn push_bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

const INLINE_BYTES: usize = 64;

/// A sink for one short encoding: no allocation up to 64 bytes, and cheaper to append to than a
/// [`SmallVec`] because a few bytes of a known number become one store.
pub(super) struct StackBuffer {
    inline_bytes: usize,
    inline: [u8; INLINE_BYTES],
    /// All of the bytes, once they are more than fit inline.
    spilled: Vec<u8>,
}

impl StackBuffer {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            inline_bytes: 0,
            inline: [0; INLINE_BYTES],
            spilled: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        if self.spilled.is_empty() {
            &self.inline[..self.inline_bytes]
        } else {
            &self.spilled
        }
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        if self.spilled.is_empty() {
            let inline = &self.inline[..self.inline_bytes];
            self.spilled.reserve(inline.len() + bytes.len());
            self.spilled.extend_from_slice(inline);
            // Nothing fits inline from now on, so that appending has one test to make.
            self.inline_bytes = INLINE_BYTES;
        }
        self.spilled.extend_from_slice(bytes);
    }
}

impl ByteSink for StackBuffer {
    #[inline]
    fn push_bytes(&mut self, bytes: &[u8]) {
        let end = self.inline_bytes + bytes.len();
        match self.inline.get_mut(self.inline_bytes..end) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.inline_bytes = end;
            }
            None => self.spill(bytes),
        }
    }
}

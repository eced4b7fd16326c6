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

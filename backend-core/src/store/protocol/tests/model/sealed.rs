//! Parts of a state that are shared between states, with their hash at hand.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A shared value. States differ in few of their parts, so a part is hashed when it is changed
/// and not once per state.
#[derive(Clone, Debug)]
pub(super) struct Sealed<T> {
    value: Arc<T>,
    /// 0 while it is not known.
    hash: u64,
}

impl<T: Clone + Hash> Sealed<T> {
    pub(super) fn new(value: T) -> Self {
        let mut sealed = Self {
            value: Arc::new(value),
            hash: 0,
        };
        sealed.seal();
        sealed
    }

    /// To change it. It is to be sealed again before it is hashed.
    pub(super) fn edit(&mut self) -> &mut T {
        self.hash = 0;
        Arc::make_mut(&mut self.value)
    }

    pub(super) fn seal(&mut self) {
        if self.hash == 0 {
            let mut hasher = DefaultHasher::new();
            self.value.hash(&mut hasher);
            self.hash = hasher.finish() | 1;
        }
    }
}

impl<T: Clone + Hash + Default> Default for Sealed<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Deref for Sealed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Hash for Sealed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        debug_assert!(self.hash != 0, "a part was changed and not sealed");
        state.write_u64(self.hash);
    }
}

impl<T: PartialEq> PartialEq for Sealed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.value == other.value
    }
}

impl<T: Eq> Eq for Sealed<T> {}

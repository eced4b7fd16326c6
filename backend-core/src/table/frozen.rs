//! A table as it was at one moment.

use std::sync::Arc;

use crate::key::StateKey;
use crate::scan::KeyCursor;
use crate::table::cursor::FrozenKeys;
use crate::table::root::Root;
use crate::table::space::Space;

/// A table as it was at one moment, to be read on any thread while its owner goes on.
///
/// Dropping it frees the pages that the owner has written since: do it off the owner's thread.
#[derive(Clone, Debug)]
pub struct FrozenTable {
    pub(super) space: Space,
    pub(super) root: Root,
    /// Tells the table that a view lives.
    views: Arc<()>,
}

impl FrozenTable {
    pub(super) fn new(space: Space, root: Root, views: Arc<()>) -> Self {
        Self { space, root, views }
    }

    /// The value of `key`.
    pub fn get(&self, key: &StateKey) -> Option<&[u8]> {
        self.root.page(self.space.place(key.hash()))?.get(key)
    }

    /// The keys that have a value: those in `namespace`, or all.
    pub fn keys(&self, namespace: Option<&[u8]>) -> Box<dyn KeyCursor> {
        let views = Arc::clone(&self.views);
        Box::new(FrozenKeys::new(self.root.clone(), views, namespace))
    }
}

//! Walking over the keys of a frozen table.

use std::sync::Arc;

use crate::fetch::Fetch;
use crate::scan::{KeyBatch, KeyCursor};
use crate::table::root::Root;

/// A cursor over the keys of a frozen table, in no particular order.
#[derive(Debug)]
pub(super) struct FrozenKeys {
    root: Root,
    /// Tells the table that a view lives.
    _views: Arc<()>,
    namespace: Option<Box<[u8]>>,
    /// The place of the page to go on with; none at the end.
    place: Option<u64>,
    /// The occupied slots of that page that were visited before.
    visited: usize,
}

impl FrozenKeys {
    pub(super) fn new(root: Root, views: Arc<()>, namespace: Option<&[u8]>) -> Self {
        Self {
            root,
            _views: views,
            namespace: namespace.map(Box::from),
            place: Some(0),
            visited: 0,
        }
    }

    fn fill(&mut self, batch: &mut KeyBatch) {
        batch.clear();
        while let Some(place) = self.place {
            let (page, next) = self.root.page_at(place);
            if let Some(page) = page {
                for slot in page.occupied().skip(self.visited) {
                    self.visited += 1;
                    let identity = page.identity(slot);
                    let wanted = self.namespace.as_deref().unwrap_or(identity.namespace);
                    if slot.is_live()
                        && identity.namespace == wanted
                        && !batch.push(identity.key, identity.namespace)
                    {
                        return;
                    }
                }
            }
            self.place = next;
            self.visited = 0;
        }
    }
}

impl KeyCursor for FrozenKeys {
    fn next_batch<'a>(&'a mut self, batch: &'a mut KeyBatch) -> Fetch<'a, ()> {
        self.fill(batch);
        Fetch::ready(())
    }
}

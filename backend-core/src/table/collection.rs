//! The map or list of one key as a page holds it: a tree, and the last time it was cleared.

use crate::generation::{Generation, WriteContext};
use crate::table::tree::Tree;

/// A map or a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Collection {
    pub(super) tree: Tree,
    /// The generation of the last clear that older segments have to be told of; zero if none.
    pub(super) cleared: Generation,
    /// About how many bytes of older entries that clear hides.
    pub(super) hidden_bytes: u32,
}

impl Collection {
    /// What is left of the collection after a clear that has to be remembered.
    pub(super) fn cleared(&self, ctx: &WriteContext) -> Self {
        let hidden = self
            .tree
            .live_bytes()
            .saturating_add(u64::from(self.hidden_bytes));
        Self {
            tree: Tree::new(),
            cleared: ctx.generation,
            hidden_bytes: u32::try_from(hidden).unwrap_or(u32::MAX),
        }
    }

    /// Whether it has an entry.
    pub(super) fn is_live(&self) -> bool {
        self.tree.live_len() > 0
    }

    /// Whether it says nothing: no entry, and no deletion that a snapshot needs.
    pub(super) fn is_void(&self, ctx: &WriteContext) -> bool {
        self.tree.is_drained() && (!ctx.incremental || self.cleared <= ctx.covered)
    }

    /// The memory that it takes beside its place in the page.
    pub(super) fn bytes(&self) -> u64 {
        self.tree.bytes()
    }
}

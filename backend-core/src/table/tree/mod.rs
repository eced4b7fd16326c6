//! The map or list of one key: a persistent B+-tree of packed leaves.
//!
//! A clone shares the root; a write copies only the nodes of one path that a clone still
//! shares. Every entry carries the generation of its last write, every inner node the newest
//! below each child, so that the changes since a generation are found without a scan.

mod leaf;
mod node;
#[cfg(test)]
mod tests;

use triomphe::Arc;

use self::leaf::{Change, Leaf};
use self::node::{Inner, Node, Walk, Write, make_mut};
use crate::generation::{Generation, WriteContext};
use crate::scan::{EntryBatch, SubKeyRange};

/// An ordered map from sub-keys to values.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    root: Option<Arc<Node>>,
    live: u64,
    live_bytes: u64,
    tombstones: u64,
    /// The number of remembered deletions at which it is tried to forget some.
    sweep_at: u64,
}

/// With fewer remembered deletions it is not tried to forget some.
const TOMBSTONES_MIN: u64 = 64;

impl Tree {
    /// An empty tree.
    pub(in crate::table) fn new() -> Self {
        Self::default()
    }

    /// The value of `sub_key`.
    pub(in crate::table) fn get(&self, sub_key: &[u8]) -> Option<&[u8]> {
        self.root.as_ref()?.get(sub_key)
    }

    /// Sets the value of `sub_key`.
    pub(in crate::table) fn put(&mut self, sub_key: &[u8], value: &[u8], context: &WriteContext) {
        self.write(&Write::Put(sub_key, value), context);
    }

    /// Removes `sub_key`; what is not there leaves nothing.
    pub(in crate::table) fn remove(&mut self, sub_key: &[u8], context: &WriteContext) {
        if self.get(sub_key).is_none() {
            return;
        }
        self.write(&Write::Remove(sub_key), context);
        // Each try doubles the number at which the next one comes, so that it costs a constant
        // share of the deletions.
        if self.tombstones > self.sweep_at.max(TOMBSTONES_MIN) {
            self.drop_tombstones(context);
            self.sweep_at = (2 * self.tombstones).max(self.live / 4);
        }
    }

    /// Appends a list element under the generation of the write and the next index in it.
    pub(in crate::table) fn append(&mut self, element: &[u8], context: &WriteContext) {
        let generation = context.generation.0.to_be_bytes();
        let index = match self.last_key() {
            Some(last) if last.len() == 8 && last[..4] == generation => {
                let index = last[4..]
                    .try_into()
                    .map(u32::from_be_bytes)
                    .unwrap_or_default();
                index
                    .checked_add(1)
                    .expect("a list takes fewer than 2^32 appends between freezes")
            }
            _ => 0,
        };
        let mut sub_key = [0; 8];
        sub_key[..4].copy_from_slice(&generation);
        sub_key[4..].copy_from_slice(&index.to_be_bytes());
        self.put(&sub_key, element, context);
    }

    /// Puts or removes an entry of a restored segment, written in `stamp`; nothing is remembered
    /// of what is removed.
    pub(in crate::table) fn load(
        &mut self,
        sub_key: &[u8],
        value: Option<&[u8]>,
        stamp: Generation,
    ) {
        let context = WriteContext {
            generation: stamp,
            covered: stamp,
            anchor: stamp,
            incremental: true,
        };
        match value {
            Some(value) => self.put(sub_key, value, &context),
            None => self.remove(sub_key, &context),
        }
    }

    /// Adds live entries within `range` to `batch`, in order, until it is full or complete.
    pub(in crate::table) fn scan(&self, range: &SubKeyRange, batch: &mut EntryBatch) {
        let start: &[u8] = match &range.start {
            std::ops::Bound::Included(start) | std::ops::Bound::Excluded(start) => start,
            std::ops::Bound::Unbounded => &[],
        };
        for (sub_key, value) in self.walk(start, None) {
            if range.is_beyond(sub_key) {
                break;
            }
            let Some(value) = value else { continue };
            if !range.contains(sub_key) {
                continue;
            }
            if batch.is_full() {
                return;
            }
            batch.push(sub_key, value);
        }
        batch.set_complete();
    }

    /// Live entries in order.
    pub(in crate::table) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.walk(&[], None)
            .filter_map(|(sub_key, value)| Some((sub_key, value?)))
    }

    /// Live entries in order, from `start` on.
    pub(in crate::table) fn iter_from(&self, start: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.walk(start, None)
            .filter_map(|(sub_key, value)| Some((sub_key, value?)))
    }

    /// Entries and remembered deletions written after `newer_than`, in order.
    pub(in crate::table) fn changes(
        &self,
        newer_than: Generation,
    ) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.walk(&[], Some(newer_than))
    }

    /// The number of live entries.
    pub(in crate::table) fn live_len(&self) -> u64 {
        self.live
    }

    /// The bytes of live sub-keys and values.
    pub(in crate::table) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Whether there are neither entries nor remembered deletions.
    pub(in crate::table) fn is_drained(&self) -> bool {
        self.live == 0 && self.tombstones == 0
    }

    /// An estimate of the memory that the tree takes.
    pub(in crate::table) fn bytes(&self) -> u64 {
        let entries = self.live + self.tombstones;
        self.live_bytes + entries * 28 + size_of::<Node>() as u64
    }

    /// Forgets deletions that need not be remembered any more.
    pub(in crate::table) fn drop_tombstones(&mut self, context: &WriteContext) {
        if self.tombstones == 0 {
            return;
        }
        if let Some(root) = &mut self.root {
            self.tombstones -= make_mut(root).drop_tombstones(context);
        }
        self.shrink_root();
    }

    fn walk<'a>(
        &'a self,
        start: &[u8],
        newer_than: Option<Generation>,
    ) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
        self.root
            .iter()
            .flat_map(move |root| Walk::new(root, start, newer_than))
    }

    fn last_key(&self) -> Option<&[u8]> {
        let mut node: &Node = self.root.as_ref()?;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf.len().checked_sub(1).map(|last| leaf.key(last)),
                Node::Inner(inner) => node = &inner.children.last()?.node,
            }
        }
    }

    fn write(&mut self, write: &Write<'_>, context: &WriteContext) {
        let root = self
            .root
            .get_or_insert_with(|| Arc::new(Node::Leaf(Leaf::default())));
        let written = make_mut(root).write(write, context, true);
        let Change {
            live,
            tombstones,
            live_bytes,
        } = written.change;
        self.live = self.live.saturating_add_signed(live);
        self.tombstones = self.tombstones.saturating_add_signed(tombstones);
        self.live_bytes = self.live_bytes.saturating_add_signed(live_bytes);
        if let Some((bound, right)) = written.split {
            let left = root.clone();
            *root = Arc::new(Node::Inner(Inner::above(left, bound, right)));
        }
        self.shrink_root();
    }

    /// A root with one child gives way to it, and an empty one to nothing.
    fn shrink_root(&mut self) {
        while let Some(root) = &self.root {
            match &**root {
                Node::Inner(inner) if inner.children.len() == 1 => {
                    self.root = Some(inner.children[0].node.clone());
                }
                Node::Leaf(leaf) if leaf.len() == 0 => self.root = None,
                _ => return,
            }
        }
    }
}

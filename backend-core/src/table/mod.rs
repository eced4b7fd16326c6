//! The table: all of one state's entries in memory, cheap to freeze.
//!
//! A directory of two levels over the keys' hashes leads to pages of slots; every node and page is
//! behind one reference count. A freeze clones the root, and a write copies just the node and the
//! page that a frozen view still shares. Every entry carries the generation of its last write,
//! every page and node the newest below it, so the changes since a generation are found by
//! skipping what is not newer.

mod batch;
mod bucket;
mod collection;
mod counts;
mod cursor;
mod edit;
mod expire;
mod frozen;
mod load;
mod node;
mod object;
mod ordered;
mod page;
mod root;
mod slot;
mod sorted;
mod space;
mod sweep;
#[cfg(test)]
mod tests;
mod timers;
mod tree;

use std::sync::Arc;

pub use crate::table::frozen::FrozenTable;
pub use crate::table::sorted::SortedMode;
pub use crate::table::timers::{FrozenTimers, TimerTable};

use crate::descriptor::StateKind;
use crate::generation::{Generation, WriteContext};
use crate::hash::KeyHasher;
use crate::key::StateKey;
use crate::range::HashRange;
use crate::table::counts::{Counts, ExpirySweep, Sweep};
use crate::table::edit::Stored;
use crate::table::root::Root;
use crate::table::slot::{Eight, Needle};
use crate::table::space::Space;
use crate::value::{EditAction, ValueEdit};

/// The entries of one state of one task. All keys lie in the task's range.
#[derive(Debug)]
pub struct Table {
    kind: StateKind,
    space: Space,
    root: Root,
    counts: Counts,
    /// The buffer that updates encode into.
    edit: ValueEdit,
    sweep: Sweep,
    expiry: ExpirySweep,
    /// One reference for the table and one for each frozen view.
    views: Arc<()>,
}

impl Table {
    /// An empty table for the keys of `range`.
    pub fn new(kind: StateKind, range: HashRange, hasher: KeyHasher) -> Self {
        let mut counts = Counts::default();
        Self {
            kind,
            space: Space::new(range, hasher),
            root: Root::new(&mut counts),
            counts,
            edit: ValueEdit::default(),
            sweep: Sweep::default(),
            expiry: ExpirySweep::default(),
            views: Arc::new(()),
        }
    }

    /// The kind of the state.
    pub fn kind(&self) -> StateKind {
        self.kind
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, key: &StateKey) -> Option<&[u8]> {
        self.root.page(self.space.place(key.hash()))?.get(key)
    }

    /// Sets the value of `key`.
    #[inline]
    pub fn put(&mut self, key: &StateKey, value: &[u8], ctx: &WriteContext) {
        let place = self.space.place(key.hash());
        if let Some(eight) = Eight::of(key) {
            let mut page = self
                .root
                .page_mut(place, ctx.generation.0, &mut self.counts);
            if let Some(at) = page.view().find_eight(eight)
                && page.overwrite(at, value, ctx.generation)
            {
                return;
            }
        }
        self.store(&Needle::new(key), place, Stored::value(value), ctx);
    }

    /// Removes the value of `key`.
    pub fn remove(&mut self, key: &StateKey, ctx: &WriteContext) {
        self.erase(&Needle::new(key), self.space.place(key.hash()), ctx);
    }

    /// Reads and writes the value of `key` with one look-up.
    #[inline]
    pub fn update(
        &mut self,
        key: &StateKey,
        ctx: &WriteContext,
        edit: impl FnOnce(Option<&[u8]>, &mut ValueEdit),
    ) {
        let place = self.space.place(key.hash());
        let mut page = self
            .root
            .page_mut(place, ctx.generation.0, &mut self.counts);
        let quick = Eight::of(key).and_then(|eight| page.view().find_eight(eight));
        self.edit.keep();
        if let Some(at) = quick {
            edit(
                Some(page.view().slot(at).value_behind_eight()),
                &mut self.edit,
            );
            if self.edit.action() == EditAction::Put
                && page.overwrite(at, self.edit.bytes(), ctx.generation)
            {
                return;
            }
        } else {
            let at = page.view().find(&Needle::new(key));
            let slot = at.map(|at| page.view().slot(at));
            let old = slot
                .filter(|slot| slot.is_live())
                .map(|slot| page.view().value(slot));
            edit(old, &mut self.edit);
        }
        self.finish_update(key, place, ctx);
    }

    #[inline(never)]
    fn finish_update(&mut self, key: &StateKey, place: u64, ctx: &WriteContext) {
        match self.edit.action() {
            EditAction::Keep => {}
            EditAction::Put => {
                let edit = std::mem::take(&mut self.edit);
                self.store(&Needle::new(key), place, Stored::value(edit.bytes()), ctx);
                self.edit = edit;
            }
            EditAction::Clear => self.erase(&Needle::new(key), place, ctx),
        }
    }

    /// The exact number of values, map entries or list elements.
    pub fn entry_count(&self) -> u64 {
        if self.kind == StateKind::Value {
            self.counts.live
        } else {
            self.counts.entries
        }
    }

    /// The number of keys with a value, a map or a list, each namespace counted.
    pub fn key_count(&self) -> u64 {
        self.counts.live
    }

    /// The number of deletions that the table remembers.
    pub fn tombstone_count(&self) -> u64 {
        self.counts.tombstones
    }

    /// The bytes of memory that the table takes, with what was copied for frozen views while the
    /// last of them lives.
    pub fn memory_bytes(&self) -> u64 {
        let has_views = Arc::strong_count(&self.views) > 1;
        let copied = if has_views {
            self.counts.copied_bytes
        } else {
            0
        };
        self.counts.bytes + self.root.bytes() + copied
    }

    /// The table as it is now, to be read on any thread while this one goes on. It costs a
    /// reference count for each node of about 40,000 entries.
    pub fn freeze(&mut self) -> FrozenTable {
        self.frozen(self.root.clone())
    }

    /// [`Table::freeze`] without what has not changed since `newer_than`, as far as that can be
    /// told cheaply: for [`FrozenTable::into_sorted`] of changes. Reads of it find too little.
    pub fn freeze_changes(&mut self, newer_than: Generation) -> FrozenTable {
        self.frozen(self.root.newer_than(newer_than.0))
    }

    fn frozen(&mut self, root: Root) -> FrozenTable {
        if Arc::strong_count(&self.views) == 1 {
            self.counts.copied_bytes = 0;
        }
        FrozenTable::new(self.space, root, Arc::clone(&self.views))
    }

    /// Stores a value by the general way.
    #[inline(never)]
    fn store(&mut self, needle: &Needle<'_>, place: u64, stored: Stored<'_>, ctx: &WriteContext) {
        loop {
            let mut page = self
                .root
                .page_mut(place, ctx.generation.0, &mut self.counts);
            let bytes = page.view().bytes();
            match page.view().find(needle) {
                Some(at) => {
                    let was_live = page.view().slot(at).is_live();
                    page.replace(at, needle, stored, ctx.generation);
                    self.counts.live += u64::from(!was_live);
                    self.counts.tombstones -= u64::from(!was_live);
                }
                None if !page.view().has_room() => {
                    self.root
                        .make_room(place, &self.space, ctx, &mut self.counts);
                    continue;
                }
                None => {
                    page.insert(needle, stored, ctx.generation, ctx.generation);
                    self.counts.live += 1;
                }
            }
            let is_heap_full = page.view().is_heap_full();
            self.counts.resized(bytes, page.view().bytes());
            if is_heap_full {
                self.root
                    .make_room(place, &self.space, ctx, &mut self.counts);
            }
            return;
        }
    }

    /// Removes an entry, and leaves a tombstone if it may lie in a snapshot.
    #[inline(never)]
    fn erase(&mut self, needle: &Needle<'_>, place: u64, ctx: &WriteContext) {
        let mut page = self
            .root
            .page_mut(place, ctx.generation.0, &mut self.counts);
        let Some(at) = page.view().find(needle) else {
            return;
        };
        let slot = *page.view().slot(at);
        let bytes = page.view().bytes();
        let stamp = if slot.is_live() {
            ctx.generation
        } else {
            Generation(slot.stamp)
        };
        if ctx.keeps_tombstone(stamp, slot.born()) {
            if slot.is_live() {
                let hidden = page.view().value(&slot).len() as u32;
                page.replace(at, needle, Stored::Tombstone(hidden), stamp);
                self.counts.live -= 1;
                self.counts.tombstones += 1;
            }
        } else {
            page.remove(at);
            self.counts.live -= u64::from(slot.is_live());
            self.counts.tombstones -= u64::from(!slot.is_live());
        }
        let is_sparse = page.view().is_sparse();
        self.counts.resized(bytes, page.view().bytes());
        if is_sparse {
            self.root.make_dense(place, ctx, &mut self.counts);
        }
        self.sweep_a_little(ctx);
    }
}

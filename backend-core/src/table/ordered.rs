//! Maps and lists: each key's slot leads to a tree.

use crate::generation::{Generation, WriteContext};
use crate::key::StateKey;
use crate::scan::{EntryBatch, SubKeyRange};
use crate::table::Table;
use crate::table::collection::Collection;
use crate::table::edit::Stored;
use crate::table::frozen::FrozenTable;
use crate::table::object::Object;
use crate::table::page::PageView;
use crate::table::slot::Needle;
use crate::table::tree::Tree;

impl Table {
    /// The value of `sub_key` in the map of `key`.
    #[inline]
    pub fn sub_get(&self, key: &StateKey, sub_key: &[u8]) -> Option<&[u8]> {
        tree_of(self.root.page(self.space.place(key.hash()))?, key)?.get(sub_key)
    }

    /// Sets the value of `sub_key` in the map of `key`.
    pub fn sub_put(&mut self, key: &StateKey, sub_key: &[u8], value: &[u8], ctx: &WriteContext) {
        self.change(key, true, ctx, |tree| tree.put(sub_key, value, ctx));
    }

    /// Removes `sub_key` from the map of `key`.
    pub fn sub_remove(&mut self, key: &StateKey, sub_key: &[u8], ctx: &WriteContext) {
        self.change(key, false, ctx, |tree| tree.remove(sub_key, ctx));
    }

    /// Appends an element to the list of `key`.
    pub fn list_append(&mut self, key: &StateKey, element: &[u8], ctx: &WriteContext) {
        self.change(key, true, ctx, |tree| tree.append(element, ctx));
    }

    /// Replaces or removes the element of the list of `key` at `sub_key`, if there is one.
    pub fn list_set(
        &mut self,
        key: &StateKey,
        sub_key: &[u8],
        element: Option<&[u8]>,
        ctx: &WriteContext,
    ) {
        self.change(key, false, ctx, |tree| match element {
            Some(element) if tree.get(sub_key).is_some() => tree.put(sub_key, element, ctx),
            Some(_) => {}
            None => tree.remove(sub_key, ctx),
        });
    }

    /// Replaces the list of `key`; no elements leave no list.
    pub fn list_replace(&mut self, key: &StateKey, elements: &[&[u8]], ctx: &WriteContext) {
        self.clear(key, ctx);
        if !elements.is_empty() {
            self.change(key, true, ctx, |tree| {
                for element in elements {
                    tree.append(element, ctx);
                }
            });
        }
    }

    /// Adds entries of the map or list of `key` within `range` to `batch`, in order, until it is
    /// full or complete.
    pub fn scan(&self, key: &StateKey, range: &SubKeyRange, batch: &mut EntryBatch) {
        let page = self.root.page(self.space.place(key.hash()));
        scan(page.and_then(|page| tree_of(page, key)), range, batch);
    }

    /// Removes the map or list of `key`.
    pub fn clear(&mut self, key: &StateKey, ctx: &WriteContext) {
        let (needle, place) = (Needle::new(key), self.space.place(key.hash()));
        let mut page = self
            .root
            .page_mut(place, ctx.generation.0, &mut self.counts);
        let Some(at) = page.view().find(&needle) else {
            return;
        };
        let slot = *page.view().slot(at);
        let Object::Collection(old) = page.view().object(&slot) else {
            return;
        };
        self.counts.entries -= old.tree.live_len();
        if !ctx.keeps_tombstone(ctx.generation, slot.born()) {
            self.drop_slot(&needle, place, ctx);
            return;
        }
        let rest = old.cleared(ctx);
        let bytes = page.view().bytes();
        page.replace_object(at, Object::Collection(rest));
        page.touch(at, ctx.generation, false);
        self.counts.resized(bytes, page.view().bytes());
        self.counts.revived(slot.is_live(), false);
        self.sweep_a_little(ctx);
    }

    /// Applies `edit` to the tree of `key`; without `create`, only if there is one.
    pub(super) fn change(
        &mut self,
        key: &StateKey,
        create: bool,
        ctx: &WriteContext,
        edit: impl FnOnce(&mut Tree),
    ) {
        let (needle, place) = (Needle::new(key), self.space.place(key.hash()));
        let mut page = self
            .root
            .page_mut(place, ctx.generation.0, &mut self.counts);
        let found = page.view().find(&needle);
        let Some(at) = found else {
            if create {
                let mut collection = Collection::default();
                edit(&mut collection.tree);
                self.counts.entries += collection.tree.live_len();
                self.store(
                    &needle,
                    place,
                    Stored::Object(Object::Collection(collection)),
                    ctx,
                );
            }
            return;
        };
        let was_live = page.view().slot(at).is_live();
        let bytes = page.view().bytes();
        let (before, after, is_live, is_void) = page.edit_collection(at, |collection| {
            let before = collection.tree.live_len();
            edit(&mut collection.tree);
            let is_live = collection.is_live();
            (
                before,
                collection.tree.live_len(),
                is_live,
                !is_live && collection.is_void(ctx),
            )
        });
        page.touch(at, ctx.generation, is_live);
        let born = page.view().slot(at).born();
        self.counts.resized(bytes, page.view().bytes());
        self.counts.entries = self.counts.entries + after - before;
        self.counts.revived(was_live, is_live);
        let is_forgotten = !is_live && !ctx.keeps_tombstone(ctx.generation, born);
        if is_void || is_forgotten {
            self.drop_slot(&needle, place, ctx);
        } else if !is_live {
            self.sweep_a_little(ctx);
        }
    }

    /// Applies an entry of a restored segment: a value, or `None` to remove; nothing is
    /// remembered of what is removed.
    pub(super) fn load_sub(
        &mut self,
        key: &StateKey,
        sub_key: &[u8],
        value: Option<&[u8]>,
        stamp: Generation,
        ctx: &WriteContext,
    ) {
        self.change(key, value.is_some(), ctx, |tree| {
            tree.load(sub_key, value, stamp);
        });
    }

    /// Removes the slot of a key without a trace; its entries have been counted off.
    fn drop_slot(&mut self, needle: &Needle<'_>, place: u64, ctx: &WriteContext) {
        let mut page = self
            .root
            .page_mut(place, ctx.generation.0, &mut self.counts);
        let Some(at) = page.view().find(needle) else {
            return;
        };
        let is_live = page.view().slot(at).is_live();
        let bytes = page.view().bytes();
        page.remove(at);
        let is_sparse = page.view().is_sparse();
        self.counts.resized(bytes, page.view().bytes());
        self.counts.live -= u64::from(is_live);
        self.counts.tombstones -= u64::from(!is_live);
        if is_sparse {
            self.root.make_dense(place, ctx, &mut self.counts);
        }
    }
}

impl FrozenTable {
    /// The value of `sub_key` in the map of `key`.
    pub fn sub_get(&self, key: &StateKey, sub_key: &[u8]) -> Option<&[u8]> {
        tree_of(self.root.page(self.space.place(key.hash()))?, key)?.get(sub_key)
    }

    /// See [`Table::scan`].
    pub fn scan(&self, key: &StateKey, range: &SubKeyRange, batch: &mut EntryBatch) {
        let page = self.root.page(self.space.place(key.hash()));
        scan(page.and_then(|page| tree_of(page, key)), range, batch);
    }
}

fn tree_of<'p>(page: PageView<'p>, key: &StateKey) -> Option<&'p Tree> {
    let slot = page.slot(page.find(&Needle::new(key))?);
    match page.object(slot) {
        Object::Collection(collection) => Some(&collection.tree),
        _ => None,
    }
}

fn scan(tree: Option<&Tree>, range: &SubKeyRange, batch: &mut EntryBatch) {
    match tree {
        Some(tree) => tree.scan(range, batch),
        None => batch.set_complete(),
    }
}

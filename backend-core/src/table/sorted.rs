//! The entries of a frozen table in the order of the format.

use std::cmp::Ordering;

use triomphe::Arc;

use crate::descriptor::StateUid;
use crate::entry::{Entry, EntryKey};
use crate::error::Result;
use crate::generation::Generation;
use crate::range::shard_of;
use crate::table::collection::Collection;
use crate::table::frozen::FrozenTable;
use crate::table::node::NODE_BITS;
use crate::table::object::Object;
use crate::table::page::{At, Identity, Page, PageView};
use crate::table::slot::{OBJECT, Slot};
use crate::table::space::Space;

/// Which entries of a frozen table to visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortedMode {
    /// Every entry that is alive.
    Full,
    /// Every change since a generation, deletions included.
    Changes,
}

/// What [`FrozenTable::into_sorted`] calls with each entry, and with an estimate of the bytes that
/// a deletion hides.
pub(super) type VisitFn<'f> = dyn FnMut(&Entry<'_>, u64) -> Result<()> + 'f;

/// An entry to be sorted: what nearly always decides the order, and where the entry is.
#[derive(Clone, Copy)]
struct Item {
    /// Shard and length of the key.
    group: u32,
    /// The index of the page in its run.
    page: u32,
    /// The first bytes of the key.
    rank: u64,
    at: At,
}

impl Item {
    /// The order as far as it can be told without the page.
    #[inline]
    fn rough(&self) -> u128 {
        u128::from(self.group) << 64 | u128::from(self.rank)
    }
}

/// Pages whose entries are to be sorted together: no other page has an entry of their shards.
struct Run {
    pages: Vec<Page>,
    /// The shard of a page's entries, if it has one only.
    shards: Vec<Option<u8>>,
    shard_max: u8,
}

impl FrozenTable {
    /// Visits the entries newer than `newer_than` in the order of the format and frees pages on
    /// the way. Pages with nothing newer are skipped.
    ///
    /// # Errors
    /// Those of `visit`; the walk ends with the first.
    pub fn into_sorted(
        self,
        state: StateUid,
        newer_than: Generation,
        mode: SortedMode,
        visit: &mut VisitFn<'_>,
    ) -> Result<()> {
        let Self { space, root, .. } = self;
        let mut run = Run {
            pages: Vec::new(),
            shards: Vec::new(),
            shard_max: 0,
        };
        let mut items = Vec::new();
        for (place, depth, node) in root.into_nodes() {
            if node.stamp() <= newer_than.0 {
                continue;
            }
            for (first, stamp, page_depth, page) in Arc::unwrap_or_clone(node).into_pages() {
                if stamp <= newer_than.0 {
                    continue;
                }
                let place = place | (first as u64) << (64 - NODE_BITS) >> depth;
                let (low, high) = space.hashes(place, depth + page_depth);
                let (low, high) = (shard_of(low), shard_of(high));
                if !run.pages.is_empty() && low > run.shard_max {
                    run.visit(state, &space, newer_than, mode, &mut items, visit)?;
                }
                run.pages.push(page);
                run.shards.push((low == high).then_some(low));
                run.shard_max = high;
            }
        }
        run.visit(state, &space, newer_than, mode, &mut items, visit)
    }
}

impl Run {
    /// Visits the entries of all pages in order and drops the pages.
    fn visit(
        &mut self,
        state: StateUid,
        space: &Space,
        newer_than: Generation,
        mode: SortedMode,
        items: &mut Vec<Item>,
        visit: &mut VisitFn<'_>,
    ) -> Result<()> {
        items.clear();
        for (index, page) in self.pages.iter().enumerate() {
            let shard = self.shards[index];
            let is_wanted = |slot: &Slot| {
                slot.stamp > newer_than.0 && (slot.is_live() || mode == SortedMode::Changes)
            };
            collect(page.view(), index as u32, shard, space, is_wanted, items);
        }
        let views: Vec<PageView<'_>> = self.pages.iter().map(Page::view).collect();
        // Two passes, as a comparison that may look at whole keys is one that the sort cannot make
        // without branches.
        items.sort_unstable_by_key(Item::rough);
        for equal in items.chunk_by_mut(|a, b| a.rough() == b.rough()) {
            if equal.len() > 1 {
                equal.sort_unstable_by(|a, b| compare(&views, a, b));
            }
        }
        for item in &*items {
            let page = views[item.page as usize];
            let slot = page.slot(item.at);
            let Identity { key, namespace } = page.identity(slot);
            let entry_key = EntryKey {
                state,
                shard: (item.group >> 24) as u8,
                key,
                namespace,
                sub_key: &[],
            };
            if slot.has(OBJECT)
                && let Object::Collection(collection) = page.object(slot)
            {
                visit_collection(collection, entry_key, newer_than, mode, visit)?;
            } else if slot.is_live() {
                visit(&Entry::put(entry_key, page.value(slot)), 0)?;
            } else {
                let hidden = key.len() + namespace.len() + slot.hidden_bytes() as usize;
                visit(&Entry::delete(entry_key), hidden as u64)?;
            }
        }
        self.pages.clear();
        self.shards.clear();
        Ok(())
    }
}

/// Visits what a map or list has of the wanted entries, in order.
fn visit_collection(
    collection: &Collection,
    prefix: EntryKey<'_>,
    newer_than: Generation,
    mode: SortedMode,
    visit: &mut VisitFn<'_>,
) -> Result<()> {
    if mode == SortedMode::Full {
        return collection.tree.iter().try_for_each(|(sub_key, value)| {
            visit(&Entry::put(EntryKey { sub_key, ..prefix }, value), 0)
        });
    }
    if collection.cleared > newer_than {
        visit(
            &Entry::delete_prefix(prefix),
            u64::from(collection.hidden_bytes),
        )?;
    }
    collection
        .tree
        .changes(newer_than)
        .try_for_each(|(sub_key, value)| {
            let key = EntryKey { sub_key, ..prefix };
            match value {
                Some(value) => visit(&Entry::put(key, value), 0),
                None => visit(&Entry::delete(key), 0),
            }
        })
}

/// Adds the wanted slots of a page to `items`.
fn collect(
    page: PageView<'_>,
    index: u32,
    shard: Option<u8>,
    space: &Space,
    is_wanted: impl Fn(&Slot) -> bool,
    items: &mut Vec<Item>,
) {
    items.reserve(page.head.used as usize);
    for (bucket_index, bucket) in page.buckets.iter().enumerate() {
        for (lane, slot) in bucket.slots.iter().enumerate() {
            if !slot.is_occupied() || !is_wanted(slot) {
                continue;
            }
            let key = page.identity(slot).key;
            let shard = shard.unwrap_or_else(|| shard_of(space.hasher().hash(key)));
            items.push(Item {
                group: u32::from(shard) << 24 | key.len() as u32,
                page: index,
                rank: rank(key),
                at: At {
                    bucket: bucket_index as u32,
                    lane: lane as u32,
                },
            });
        }
    }
}

/// The first eight bytes of a key as a number that is ordered as they are.
#[inline]
fn rank(key: &[u8]) -> u64 {
    if let Some(eight) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*eight);
    }
    let mut padded = [0; 8];
    padded[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(padded)
}

/// The order of two entries with one shard, length of key and rank.
fn compare(views: &[PageView<'_>], a: &Item, b: &Item) -> Ordering {
    let identity = |item: &Item| {
        let page = views[item.page as usize];
        page.identity(page.slot(item.at))
    };
    let (a, b) = (identity(a), identity(b));
    a.key
        .cmp(b.key)
        .then_with(|| a.namespace.len().cmp(&b.namespace.len()))
        .then_with(|| a.namespace.cmp(b.namespace))
}

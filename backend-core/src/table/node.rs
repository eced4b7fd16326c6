//! A node of the directory: a slot map over eight bits of place, and up to 256 pages.

use std::mem::size_of;

use crate::generation::{Generation, WriteContext};
use crate::table::bucket::BUCKET_SLOTS;
use crate::table::counts::Counts;
use crate::table::edit::{PageMut, rebuilt};
use crate::table::page::{BUCKETS_MAX, BUCKETS_MIN, HEAP_BYTES_MAX, Page, PageView};
use crate::table::slot::Slot;

/// The bits of place that a node distinguishes.
pub(super) const NODE_BITS: u32 = 8;

/// Buddies with fewer entries together become one page.
const USED_MERGED_MAX: usize = BUCKETS_MAX * BUCKET_SLOTS / 3;

/// Up to 256 pages, each for all places that begin with some bits.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The index in `pages` for each value of the next eight bits of a place.
    map: [u8; 1 << NODE_BITS],
    /// The newest of `stamps`.
    stamp: u32,
    pages: Vec<Page>,
    /// The newest stamp in each page.
    stamps: Vec<u32>,
    /// How many of the eight bits each page fixes.
    depths: Vec<u8>,
}

impl Node {
    /// A node of one empty page.
    pub(super) fn new() -> Self {
        Self {
            map: [0; 1 << NODE_BITS],
            stamp: 0,
            pages: vec![Page::with_buckets(BUCKETS_MIN)],
            stamps: vec![0],
            depths: vec![0],
        }
    }

    /// A node without pages, as a stand-in.
    pub(super) fn vacant() -> Self {
        Self {
            map: [0; 1 << NODE_BITS],
            stamp: 0,
            pages: Vec::new(),
            stamps: Vec::new(),
            depths: Vec::new(),
        }
    }

    /// The newest stamp in the node; never too old.
    #[inline]
    pub(super) fn stamp(&self) -> u32 {
        self.stamp
    }

    #[inline]
    pub(super) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// The memory that the node takes without its pages.
    pub(super) fn bytes(&self) -> u64 {
        let a_page = size_of::<Page>() + size_of::<u32>() + size_of::<u8>();
        (size_of::<usize>() + size_of::<Self>() + self.pages.capacity() * a_page) as u64
    }

    /// The index of the page for `place`, in a node that fixes its first `depth` bits.
    #[inline]
    pub(super) fn page_index(&self, place: u64, depth: u32) -> usize {
        usize::from(self.map[((place << depth) >> (64 - NODE_BITS)) as usize])
    }

    #[inline]
    pub(super) fn page(&self, index: usize) -> PageView<'_> {
        self.pages[index].view()
    }

    /// The page at `index` to write `stamp` to.
    #[inline]
    pub(super) fn page_mut(
        &mut self,
        index: usize,
        stamp: u32,
        counts: &mut Counts,
    ) -> PageMut<'_> {
        if self.stamps[index] < stamp {
            self.stamps[index] = stamp;
            self.stamp = self.stamp.max(stamp);
        }
        PageMut::from(self.pages[index].body_mut(counts))
    }

    /// The bits that the page at `index` fixes within the node.
    pub(super) fn page_depth(&self, index: usize) -> u32 {
        u32::from(self.depths[index])
    }

    /// The pages in the order of their places: the first map index of each, and its page's.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let first = next;
            let index = usize::from(*self.map.get(first)?);
            next += 1 << (NODE_BITS - self.page_depth(index));
            Some((first, index))
        })
    }

    /// Takes the node apart: its pages in the order of their places, with first map index, stamp
    /// and depth.
    pub(super) fn into_pages(mut self) -> Vec<(usize, u32, u32, Page)> {
        let order: Vec<_> = self.in_order().collect();
        let mut pages: Vec<_> = self.pages.drain(..).map(Some).collect();
        let take = |(first, index): (usize, usize)| {
            let page = pages[index]
                .take()
                .expect("a page stands once in the order");
            (
                first,
                self.stamps[index],
                u32::from(self.depths[index]),
                page,
            )
        };
        order.into_iter().map(take).collect()
    }

    /// A node of these pages, in the order of their places, with stamp and depth.
    pub(super) fn from_pages(pages: impl IntoIterator<Item = (u32, u32, Page)>) -> Self {
        let mut node = Self::vacant();
        let mut next = 0;
        for (stamp, depth, page) in pages {
            let end = next + (1 << (NODE_BITS - depth));
            node.map[next..end].fill(node.pages.len() as u8);
            node.stamp = node.stamp.max(stamp);
            node.pages.push(page);
            node.stamps.push(stamp);
            node.depths.push(depth as u8);
            next = end;
        }
        debug_assert_eq!(next, 1 << NODE_BITS, "the pages cover the node");
        node
    }

    /// Splits a node into two that each fix one bit more. It has two pages or more.
    pub(super) fn split(self) -> [Self; 2] {
        let mut low = self.into_pages();
        let middle = low.partition_point(|(first, ..)| *first < 1 << (NODE_BITS - 1));
        let high = low.split_off(middle);
        [low, high].map(|half| {
            Self::from_pages(
                half.into_iter()
                    .map(|(_, stamp, depth, page)| (stamp, depth - 1, page)),
            )
        })
    }

    /// Whether two nodes that differ in their last bit are sparse enough to become one.
    pub(super) fn can_merge(&self, other: &Self) -> bool {
        let is_shallow = |node: &Self| node.depths.iter().all(|d| u32::from(*d) < NODE_BITS);
        self.pages.len() + other.pages.len() <= 1 << (NODE_BITS - 1)
            && is_shallow(self)
            && is_shallow(other)
    }

    /// Makes one node of two that differ in their last bit.
    pub(super) fn merge(low: Self, high: Self) -> Self {
        let pages = low.into_pages().into_iter().chain(high.into_pages());
        Self::from_pages(pages.map(|(_, stamp, depth, page)| (stamp, depth + 1, page)))
    }

    /// Rebuilds the page at `index` with `bucket_count` buckets, without tombstones that `ctx` lets go
    /// and without garbage.
    pub(super) fn rebuild_page(
        &mut self,
        index: usize,
        bucket_count: usize,
        heap_bytes_max: u32,
        ctx: &WriteContext,
        counts: &mut Counts,
    ) {
        let view = self.pages[index].view();
        let kept = |_, slot: &Slot| is_kept(slot, ctx);
        let page = rebuilt(bucket_count, heap_bytes_max, &[view], kept);
        note_replaced(counts, &[view], &[page.view()]);
        self.pages[index] = page;
    }

    /// Splits the page at `index` by the next bit of `places`, those of its occupied slots.
    pub(super) fn split_page(
        &mut self,
        index: usize,
        depth: u32,
        places: &[u64],
        ctx: &WriteContext,
        counts: &mut Counts,
    ) {
        let old_depth = self.page_depth(index);
        debug_assert!(old_depth < NODE_BITS);
        let bit = 63 - depth - old_depth;
        let view = self.pages[index].view();
        let half = |side: u64| {
            let is_on_side = |place: &u64| *place >> bit & 1 == side;
            let used = places.iter().filter(|place| is_on_side(place)).count();
            rebuilt(
                buckets_for(used),
                HEAP_BYTES_MAX as u32,
                &[view],
                |number, slot| is_on_side(&places[number]) && is_kept(slot, ctx),
            )
        };
        let [low, high] = [half(0), half(1)];
        note_replaced(counts, &[view], &[low.view(), high.view()]);
        let new_index = self.pages.len() as u8;
        let some_byte = ((places[0] << depth) >> (64 - NODE_BITS)) as usize;
        let width = 1 << (NODE_BITS - old_depth);
        let first = some_byte & !(width - 1);
        self.map[first + width / 2..first + width].fill(new_index);
        self.pages[index] = low;
        self.pages.push(high);
        self.stamps.push(self.stamps[index]);
        self.depths[index] += 1;
        self.depths.push(self.depths[index]);
    }

    /// Makes one page of the page for `place` and its buddy, if both are sparse; whether it did.
    pub(super) fn merge_page(
        &mut self,
        place: u64,
        depth: u32,
        ctx: &WriteContext,
        counts: &mut Counts,
    ) -> bool {
        let index = self.page_index(place, depth);
        let page_depth = self.page_depth(index);
        if page_depth == 0 {
            return false;
        }
        let byte = ((place << depth) >> (64 - NODE_BITS)) as usize;
        let buddy = usize::from(self.map[byte ^ 1 << (NODE_BITS - page_depth)]);
        let views = [self.pages[index].view(), self.pages[buddy].view()];
        let used: usize = views.iter().map(|view| view.head.used as usize).sum();
        let heap: usize = views.iter().map(|view| view.head.heap.len()).sum();
        if self.page_depth(buddy) != page_depth
            || used > USED_MERGED_MAX
            || heap > HEAP_BYTES_MAX / 2
        {
            return false;
        }
        let kept = |_, slot: &Slot| is_kept(slot, ctx);
        let page = rebuilt(buckets_for(used), HEAP_BYTES_MAX as u32, &views, kept);
        note_replaced(counts, &views, &[page.view()]);
        self.stamps[index] = self.stamps[index].max(self.stamps[buddy]);
        self.pages[index] = page;
        self.depths[index] -= 1;
        self.remove_page(buddy, index);
        true
    }

    /// Forgets the page at `gone`, whose places now belong to that at `heir`.
    fn remove_page(&mut self, gone: usize, heir: usize) {
        self.pages.swap_remove(gone);
        self.stamps.swap_remove(gone);
        self.depths.swap_remove(gone);
        let moved = self.pages.len();
        for entry in &mut self.map {
            if usize::from(*entry) == gone {
                *entry = heir as u8;
            }
            if usize::from(*entry) == moved {
                *entry = gone as u8;
            }
        }
    }
}

/// Notes that pages were replaced by others with the same live entries, and fewer tombstones
/// perhaps.
fn note_replaced(counts: &mut Counts, old: &[PageView<'_>], new: &[PageView<'_>]) {
    let tombstones = |pages: &[PageView<'_>]| -> u64 {
        pages
            .iter()
            .map(|page| u64::from(page.head.tombstones))
            .sum()
    };
    let bytes = |pages: &[PageView<'_>]| pages.iter().map(|page| page.bytes()).sum::<u64>();
    counts.tombstones = counts.tombstones + tombstones(new) - tombstones(old);
    counts.resized(bytes(old), bytes(new));
}

/// Whether a slot outlives a rebuild of its page.
pub(super) fn is_kept(slot: &Slot, ctx: &WriteContext) -> bool {
    slot.is_live() || ctx.keeps_tombstone(Generation(slot.stamp), slot.born())
}

/// The buckets of a new page for `used` entries: it takes half as many again before it is full.
pub(super) fn buckets_for(used: usize) -> usize {
    let wanted = (used + used / 2).div_ceil(BUCKET_SLOTS).max(BUCKETS_MIN);
    if wanted <= BUCKETS_MAX {
        BUCKETS_MAX.min(wanted.next_power_of_two())
    } else {
        wanted
    }
}

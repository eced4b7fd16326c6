//! The root of a table's directory: a slot map over the first bits of place, and the nodes.

use std::mem::size_of;

use triomphe::Arc;

use crate::generation::WriteContext;
use crate::table::counts::Counts;
use crate::table::edit::PageMut;
use crate::table::node::{NODE_BITS, Node, buckets_for, is_kept};
use crate::table::page::{BUCKETS_MAX, PageView, used_max};
use crate::table::space::Space;

/// The root is not deepened beyond so many map entries a node: a hash function whose top bits are
/// poor must not buy a huge map.
const MAP_ENTRIES_A_NODE_MAX: usize = 64;
/// A page whose entries first differ so many bits further down is grown rather than split.
const SPLIT_LEVELS_MAX: u32 = 12;
/// A page with fewer entries is never split, however large they are.
const SPLIT_ENTRIES_MIN: usize = 4;
/// A node with fewer pages looks whether its buddy is as sparse.
const MERGE_PAGES_MAX: usize = 64;

/// A root map's entry: which node, and how many bits of place it fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(u32);

impl Link {
    /// What an incremental view has in place of nodes that are not newer.
    const NONE: Self = Self(u32::MAX);

    fn new(node: usize, depth: u32) -> Self {
        let node = u32::try_from(node).expect("nodes fit into memory");
        assert!(node < 1 << 24, "a table has fewer than 2^24 nodes");
        Self(node << 8 | depth)
    }

    #[inline]
    pub(super) fn node(self) -> usize {
        (self.0 >> 8) as usize
    }

    #[inline]
    pub(super) fn depth(self) -> u32 {
        self.0 & 0xff
    }
}

/// The directory. A clone shares all nodes.
#[derive(Clone, Debug)]
pub(super) struct Root {
    /// The bits of place that `map` distinguishes.
    depth: u32,
    map: Vec<Link>,
    nodes: Vec<Arc<Node>>,
}

/// What to do with a page that is full.
enum Remedy {
    /// Rebuild it with so many buckets and so much heap.
    Rebuild(usize, u32),
    /// Split it; the places of its occupied slots.
    Split(Vec<u64>),
}

impl Root {
    /// A directory of one empty page.
    pub(super) fn new(counts: &mut Counts) -> Self {
        let node = Node::new();
        counts.bytes += node.bytes() + node.page(0).bytes();
        Self {
            depth: 0,
            map: vec![Link::new(0, 0)],
            nodes: vec![Arc::new(node)],
        }
    }

    /// The memory that the root takes without its nodes.
    pub(super) fn bytes(&self) -> u64 {
        let map = self.map.capacity() * size_of::<Link>();
        (map + self.nodes.capacity() * size_of::<Arc<Node>>()) as u64
    }

    #[inline]
    fn link(&self, place: u64) -> Link {
        // Two shifts, as a root of depth 0 would shift by 64.
        self.map[(place >> 1 >> (63 - self.depth)) as usize]
    }

    /// The page for `place`; none if this is an incremental view without it.
    #[inline]
    pub(super) fn page(&self, place: u64) -> Option<PageView<'_>> {
        let link = self.link(place);
        let node = self.nodes.get(link.node())?;
        Some(node.page(node.page_index(place, link.depth())))
    }

    /// The page for `place` to write `stamp` to; it and its node are copied if they are shared.
    #[inline]
    pub(super) fn page_mut(&mut self, place: u64, stamp: u32, counts: &mut Counts) -> PageMut<'_> {
        let link = self.link(place);
        let node = own(&mut self.nodes[link.node()], counts);
        let index = node.page_index(place, link.depth());
        node.page_mut(index, stamp, counts)
    }

    /// Makes the page for `place` less full by one step; repeat until there is room.
    #[cold]
    pub(super) fn make_room(
        &mut self,
        place: u64,
        space: &Space,
        ctx: &WriteContext,
        counts: &mut Counts,
    ) {
        let link = self.link(place);
        let can_split = self.can_split(link);
        let node = own(&mut self.nodes[link.node()], counts);
        let index = node.page_index(place, link.depth());
        let page_depth = node.page_depth(index);
        let nodes_bytes = node.bytes();
        match remedy(node.page(index), link.depth() + page_depth, space, ctx) {
            Remedy::Rebuild(buckets, heap) => node.rebuild_page(index, buckets, heap, ctx, counts),
            Remedy::Split(places) if page_depth < NODE_BITS => {
                node.split_page(index, link.depth(), &places, ctx, counts);
                counts.resized(nodes_bytes, node.bytes());
            }
            Remedy::Split(_) if can_split => self.split_node(place, counts),
            Remedy::Split(_) => {
                let (buckets, heap) = grown(node.page(index));
                node.rebuild_page(index, buckets, heap, ctx, counts);
            }
        }
    }

    fn can_split(&self, link: Link) -> bool {
        link.depth() < self.depth
            || self.map.len() * 2 <= (self.nodes.len() + 1) * MAP_ENTRIES_A_NODE_MAX
    }

    fn split_node(&mut self, place: u64, counts: &mut Counts) {
        let link = self.link(place);
        if link.depth() == self.depth {
            self.map = self.map.iter().flat_map(|link| [*link; 2]).collect();
            self.depth += 1;
        }
        let old = std::mem::replace(&mut self.nodes[link.node()], Arc::new(Node::vacant()));
        let old_bytes = old.bytes();
        let halves = Arc::unwrap_or_clone(old).split();
        counts.resized(old_bytes, halves.iter().map(Node::bytes).sum());
        let [low, high] = halves.map(Arc::new);
        let new_index = self.nodes.len();
        self.nodes[link.node()] = low;
        self.nodes.push(high);
        let depth = link.depth() + 1;
        let (first, width) = self.span(place, link.depth());
        let (low, high) = self.map[first..first + width].split_at_mut(width / 2);
        low.fill(Link::new(link.node(), depth));
        high.fill(Link::new(new_index, depth));
    }

    /// The map entries of the node that fixes `depth` bits and holds `place`.
    fn span(&self, place: u64, depth: u32) -> (usize, usize) {
        let width = 1 << (self.depth - depth);
        let index = (place >> 1 >> (63 - self.depth)) as usize;
        (index & !(width - 1), width)
    }

    /// Merges or shrinks the page for `place` if it is sparse, and its node likewise.
    pub(super) fn make_dense(&mut self, place: u64, ctx: &WriteContext, counts: &mut Counts) {
        let link = self.link(place);
        let node = own(&mut self.nodes[link.node()], counts);
        let old_bytes = node.bytes();
        if node.merge_page(place, link.depth(), ctx, counts) {
            let is_sparse = node.page_count() <= MERGE_PAGES_MAX;
            counts.resized(old_bytes, node.bytes());
            if is_sparse {
                self.merge_node(place, counts);
            }
            return;
        }
        let index = node.page_index(place, link.depth());
        let page = node.page(index);
        let buckets = buckets_for(page.head.used as usize);
        if buckets * 2 < page.buckets.len() {
            let heap_bytes_max = page.head.heap_bytes_max;
            node.rebuild_page(index, buckets, heap_bytes_max, ctx, counts);
        }
    }

    fn merge_node(&mut self, place: u64, counts: &mut Counts) {
        let link = self.link(place);
        if link.depth() == 0 {
            return;
        }
        let buddy = self.link(place ^ (1 << (64 - link.depth())));
        if buddy.depth() != link.depth()
            || !self.nodes[link.node()].can_merge(&self.nodes[buddy.node()])
        {
            return;
        }
        let is_high = place >> (64 - link.depth()) & 1 == 1;
        let (low, high) = if is_high {
            (buddy, link)
        } else {
            (link, buddy)
        };
        let [low_node, high_node] = [low, high].map(|link| {
            let vacant = Arc::new(Node::vacant());
            let node = std::mem::replace(&mut self.nodes[link.node()], vacant);
            counts.bytes -= node.bytes();
            Arc::unwrap_or_clone(node)
        });
        let merged = Node::merge(low_node, high_node);
        counts.bytes += merged.bytes();
        self.nodes[low.node()] = Arc::new(merged);
        let depth = link.depth() - 1;
        let (first, width) = self.span(place, depth);
        self.map[first..first + width].fill(Link::new(low.node(), depth));
        self.nodes.swap_remove(high.node());
        let moved = self.nodes.len();
        for entry in &mut self.map {
            if entry.node() == moved {
                *entry = Link::new(high.node(), entry.depth());
            }
        }
        while self.depth > 0 && self.map.iter().all(|link| link.depth() < self.depth) {
            self.map = self.map.iter().step_by(2).copied().collect();
            self.depth -= 1;
        }
    }

    /// The same without the nodes that hold nothing newer than `stamp`.
    pub(super) fn newer_than(&self, stamp: u32) -> Self {
        let mut indexes = vec![None; self.nodes.len()];
        let mut nodes = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if node.stamp() > stamp {
                indexes[index] = Some(nodes.len());
                nodes.push(Arc::clone(node));
            }
        }
        let relink = |link: &Link| match indexes[link.node()] {
            Some(index) => Link::new(index, link.depth()),
            None => Link::NONE,
        };
        Self {
            depth: self.depth,
            map: self.map.iter().map(relink).collect(),
            nodes,
        }
    }

    /// Takes the root apart: its nodes in the order of their places, each with its first place and
    /// the bits that it fixes.
    pub(super) fn into_nodes(self) -> impl Iterator<Item = (u64, u32, Arc<Node>)> {
        let mut nodes: Vec<_> = self.nodes.into_iter().map(Some).collect();
        let (map, depth) = (self.map, self.depth);
        (0..map.len()).filter_map(move |index| {
            // The first map entry of a node takes it.
            let link = map[index];
            let node = nodes.get_mut(link.node())?.take()?;
            Some(((index as u64) << 1 << (63 - depth), link.depth(), node))
        })
    }

    /// Rebuilds the page for `place` if it has a tombstone that `ctx` lets go.
    pub(super) fn purge(&mut self, place: u64, ctx: &WriteContext, counts: &mut Counts) {
        let Some(page) = self.page(place) else {
            return;
        };
        if page.head.tombstones == 0 || page.occupied().all(|slot| is_kept(slot, ctx)) {
            return;
        }
        let (buckets, heap_bytes_max) = (page.buckets.len(), page.head.heap_bytes_max);
        let link = self.link(place);
        let node = own(&mut self.nodes[link.node()], counts);
        let index = node.page_index(place, link.depth());
        node.rebuild_page(index, buckets, heap_bytes_max, ctx, counts);
        if node.page(index).is_nearly_empty() {
            self.make_dense(place, ctx, counts);
        }
    }

    /// The page that holds `place`, unless an incremental view lacks it, and the first place of the
    /// next one: to walk over all pages while the table changes.
    pub(super) fn page_at(&self, place: u64) -> (Option<PageView<'_>>, Option<u64>) {
        let link = self.link(place);
        let Some(node) = self.nodes.get(link.node()) else {
            let next = (place >> 1 >> (63 - self.depth)) + 1;
            let is_end = next as usize == self.map.len();
            return (None, (!is_end).then(|| next << 1 << (63 - self.depth)));
        };
        let index = node.page_index(place, link.depth());
        let depth = link.depth() + node.page_depth(index);
        let rest = u64::MAX.checked_shr(depth).unwrap_or(0);
        (Some(node.page(index)), (place | rest).checked_add(1))
    }
}

/// The node to write to: a copy if a frozen view shares it.
#[inline]
fn own<'n>(node: &'n mut Arc<Node>, counts: &mut Counts) -> &'n mut Node {
    if !node.is_unique() {
        copy(node, counts);
    }
    Arc::get_mut(node).expect("a node is the table's own, or has just been copied")
}

#[cold]
#[inline(never)]
fn copy(node: &mut Arc<Node>, counts: &mut Counts) {
    let old_bytes = node.bytes();
    *node = Arc::new(Node::clone(node));
    counts.copied(old_bytes, node.bytes());
}

fn remedy(page: PageView<'_>, depth: u32, space: &Space, ctx: &WriteContext) -> Remedy {
    let buckets = page.buckets.len();
    let used = page.occupied().filter(|slot| is_kept(slot, ctx)).count();
    let heap = page.head.heap.len() - page.head.garbage as usize;
    let heap_max = page.head.heap_bytes_max;
    // What a purge gains must be worth its cost.
    if used <= used_max(buckets) * 3 / 4 && heap <= heap_max as usize * 3 / 4 {
        return Remedy::Rebuild(buckets, heap_max);
    }
    if buckets < BUCKETS_MAX && !page.is_heap_full() {
        return Remedy::Rebuild(grown_buckets(buckets), heap_max);
    }
    if used >= SPLIT_ENTRIES_MIN {
        let places = space.places(page);
        let differing = places
            .iter()
            .fold(0, |all, place| all | (place ^ places[0]));
        let first_bit = differing.leading_zeros();
        if first_bit < 64 && first_bit < depth + SPLIT_LEVELS_MAX {
            return Remedy::Split(places);
        }
    }
    let (buckets, heap_max) = grown(page);
    Remedy::Rebuild(buckets, heap_max)
}

/// Twice as many buckets, but no step over the size at which a page is split.
fn grown_buckets(buckets: usize) -> usize {
    if buckets < BUCKETS_MAX {
        (buckets * 2).min(BUCKETS_MAX)
    } else {
        buckets * 2
    }
}

/// Buckets and heap of a page that is full and cannot be split.
fn grown(page: PageView<'_>) -> (usize, u32) {
    let is_crowded = page.head.used as usize >= used_max(page.buckets.len());
    let mut buckets = page.buckets.len();
    if is_crowded {
        buckets = grown_buckets(buckets);
    }
    let heap_max = page.head.heap_bytes_max;
    // The heap may be several times too large at once.
    let heap_wanted = (page.head.heap.len() as u32).next_power_of_two();
    let heap_max = if page.is_heap_full() {
        heap_wanted.max(heap_max.saturating_mul(2))
    } else {
        heap_max
    };
    (buckets, heap_max)
}

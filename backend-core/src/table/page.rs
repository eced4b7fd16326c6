//! A page: some 200 slots in buckets, in one allocation with their head.

use triomphe::{Arc, HeaderSlice};

use crate::key::StateKey;
use crate::table::bucket::{BUCKET_SLOTS, Bucket};
use crate::table::counts::Counts;
use crate::table::object::{Object, Objects};
use crate::table::slot::{Eight, IN_HEAP, NAMESPACED, Needle, OBJECT, Slot, tag_of};

/// The buckets of a new page.
pub(super) const BUCKETS_MIN: usize = 1;
/// A page of so many buckets, about 6 KiB, is split rather than grown.
pub(super) const BUCKETS_MAX: usize = 48;
/// A page with more in its heap is split rather than left to grow.
pub(super) const HEAP_BYTES_MAX: usize = 8 << 10;

/// Where in a page a slot is.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) bucket: u32,
    pub(super) lane: u32,
}

/// What a page knows beside its buckets.
#[derive(Clone, Debug)]
pub(super) struct PageHead {
    /// The slots that hold an entry or a tombstone.
    pub(super) used: u32,
    /// Those of them that hold a tombstone.
    pub(super) tombstones: u32,
    /// The bytes of `heap` that nothing refers to any more.
    pub(super) garbage: u32,
    /// The size of `heap` at which the page is full; more than [`HEAP_BYTES_MAX`] in a page that
    /// cannot be split.
    pub(super) heap_bytes_max: u32,
    /// Keys, namespaces and values that do not fit into slots.
    pub(super) heap: Vec<u8>,
    /// Larger values.
    pub(super) objects: Objects,
}

/// A page's one allocation.
pub(super) type PageBody = HeaderSlice<PageHead, [Bucket]>;

/// A page, shared with frozen views until it is written.
///
/// An entry lies in the bucket that its home chooses, or in the next one with a free slot.
#[derive(Clone, Debug)]
pub(super) struct Page(Arc<PageBody>);

impl Page {
    /// An empty page.
    pub(super) fn with_buckets(bucket_count: usize) -> Self {
        let head = PageHead {
            used: 0,
            tombstones: 0,
            garbage: 0,
            heap_bytes_max: HEAP_BYTES_MAX as u32,
            heap: Vec::new(),
            objects: Objects::new(),
        };
        let buckets = std::iter::repeat_n(Bucket::EMPTY, bucket_count);
        Self(Arc::from_header_and_iter(head, buckets))
    }

    #[inline]
    pub(super) fn view(&self) -> PageView<'_> {
        PageView {
            head: &self.0.header,
            buckets: &self.0.slice,
        }
    }

    /// The page to write to: a copy of its own if a frozen view shares it.
    #[inline]
    pub(super) fn body_mut(&mut self, counts: &mut Counts) -> &mut PageBody {
        if !self.0.is_unique() {
            self.copy(counts);
        }
        Arc::get_mut(&mut self.0).expect("a page is its own, or has just been copied")
    }

    #[cold]
    #[inline(never)]
    fn copy(&mut self, counts: &mut Counts) {
        let old_bytes = self.view().bytes();
        let head = self.0.header.clone();
        self.0 = Arc::from_header_and_slice(head, &self.0.slice);
        counts.copied(old_bytes, self.view().bytes());
    }
}

/// A page to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageView<'a> {
    pub(super) head: &'a PageHead,
    pub(super) buckets: &'a [Bucket],
}

/// The key and namespace of a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity<'a> {
    pub(super) key: &'a [u8],
    pub(super) namespace: &'a [u8],
}

impl<'a> PageView<'a> {
    /// The value of `key`.
    #[inline]
    pub(super) fn get(self, key: &StateKey) -> Option<&'a [u8]> {
        if let Some(at) = Eight::of(key).and_then(|eight| self.find_eight(eight)) {
            return Some(self.slot(at).value_behind_eight());
        }
        self.get_any(key)
    }

    /// Kept apart, so that the frequent case is short.
    #[inline(never)]
    fn get_any(self, key: &StateKey) -> Option<&'a [u8]> {
        let slot = self.slot(self.find(&Needle::new(key))?);
        slot.is_live().then(|| self.value(slot))
    }

    /// The bucket that an entry with this home would like.
    #[inline]
    pub(super) fn bucket(self, home: u8) -> &'a Bucket {
        &self.buckets[preferred(home, self.buckets.len())]
    }

    /// Where `eight` is, if it is live, in the bucket that it would like, and its value inline.
    #[inline]
    pub(super) fn find_eight(self, eight: Eight) -> Option<At> {
        let index = preferred((eight.mixed >> 56) as u8, self.buckets.len());
        let bucket = &self.buckets[index];
        let lane = bucket.lanes(tag_of(eight.mixed)).next()?;
        eight.is_at(&bucket.slots[lane]).then_some(At {
            bucket: index as u32,
            lane: lane as u32,
        })
    }

    /// Where `needle` is.
    #[inline]
    pub(super) fn find(self, needle: &Needle<'_>) -> Option<At> {
        let mut index = preferred(needle.home(), self.buckets.len());
        // Every bucket of a small page may have passed on an entry, so a miss goes round once only.
        for _ in 0..self.buckets.len() {
            let bucket = &self.buckets[index];
            for lane in bucket.lanes(needle.tag()) {
                let slot = &bucket.slots[lane];
                if needle.is_inline_at(slot)
                    || needle.is_likely_in_heap_at(slot) && self.is_in_heap_at(needle, slot)
                {
                    return Some(At {
                        bucket: index as u32,
                        lane: lane as u32,
                    });
                }
            }
            if bucket.passed() == 0 {
                return None;
            }
            index = next(index, self.buckets.len());
        }
        None
    }

    /// Kept apart, as a look-up of inline entries must not wait for the page's head.
    #[inline(never)]
    fn is_in_heap_at(self, needle: &Needle<'_>, slot: &Slot) -> bool {
        needle.is_in_heap_at(slot, &self.head.heap)
    }

    #[inline]
    pub(super) fn slot(self, at: At) -> &'a Slot {
        &self.buckets[at.bucket as usize].slots[at.lane as usize]
    }

    #[inline]
    pub(super) fn identity(self, slot: &'a Slot) -> Identity<'a> {
        if slot.has(IN_HEAP) {
            let (key_bytes, namespace_bytes) = slot.heap_identity_bytes();
            let bytes = &self.head.heap[slot.heap_offset()..][..key_bytes + namespace_bytes];
            let (key, namespace) = bytes.split_at(key_bytes);
            return Identity { key, namespace };
        }
        let bytes = &slot.payload[..slot.inline_identity_bytes()];
        if slot.has(NAMESPACED) {
            let (key, namespace) = bytes[1..].split_at(bytes.len() - 1 - usize::from(bytes[0]));
            return Identity { key, namespace };
        }
        let namespace = &[];
        Identity {
            key: bytes,
            namespace,
        }
    }

    /// The value of a live slot.
    #[inline]
    pub(super) fn value(self, slot: &'a Slot) -> &'a [u8] {
        if !slot.has(IN_HEAP | OBJECT) {
            return &slot.payload[slot.inline_identity_bytes()..][..slot.inline_value_bytes()];
        }
        self.outer_value(slot)
    }

    fn outer_value(self, slot: &'a Slot) -> &'a [u8] {
        if slot.has(OBJECT) {
            return match self.object(slot) {
                Object::Bytes(value) => value,
                Object::Collection(_) | Object::Vacant(_) => {
                    unreachable!("a live slot's object is there")
                }
            };
        }
        let (key_bytes, namespace_bytes) = slot.heap_identity_bytes();
        let start = slot.heap_offset() + key_bytes + namespace_bytes;
        &self.head.heap[start..][..slot.heap_value_bytes()]
    }

    /// The object of a slot that has one.
    pub(super) fn object(self, slot: &Slot) -> &'a Object {
        self.head.objects.get(slot.word(3))
    }

    /// The memory that the page takes.
    #[inline]
    pub(super) fn bytes(self) -> u64 {
        let own = size_of::<usize>() + size_of::<PageHead>() + size_of_val(self.buckets);
        (own + self.head.heap.capacity()) as u64 + self.head.objects.bytes()
    }

    /// Whether another entry fits without growth.
    #[inline]
    pub(super) fn has_room(self) -> bool {
        (self.head.used as usize) < used_max(self.buckets.len()) && !self.is_heap_full()
    }

    #[inline]
    pub(super) fn is_heap_full(self) -> bool {
        self.head.heap.len() > self.head.heap_bytes_max as usize
    }

    /// Whether the page may be merged or shrunk. True for every fourth size only, so that a
    /// removal seldom looks at the buddy.
    #[inline]
    pub(super) fn is_sparse(self) -> bool {
        self.head.used.is_multiple_of(4) && self.is_nearly_empty()
    }

    /// Whether a fifth of the slots is used or fewer.
    pub(super) fn is_nearly_empty(self) -> bool {
        self.head.used as usize <= self.buckets.len()
    }

    /// The slots that hold something.
    pub(super) fn occupied(self) -> impl Iterator<Item = &'a Slot> {
        let slots = self.buckets.iter().flat_map(|bucket| &bucket.slots);
        slots.filter(|slot| slot.is_occupied())
    }
}

/// How many slots are used when a page is full: 13 of 16, so that one bucket in five passes on
/// an entry.
#[inline]
pub(super) const fn used_max(bucket_count: usize) -> usize {
    (bucket_count * BUCKET_SLOTS * 13).div_ceil(16)
}

/// The bucket that an entry with this home would like.
#[inline]
pub(super) fn preferred(home: u8, bucket_count: usize) -> usize {
    (usize::from(home) * bucket_count) >> 8
}

/// The bucket after `index`.
#[inline]
pub(super) fn next(index: usize, bucket_count: usize) -> usize {
    if index + 1 == bucket_count {
        0
    } else {
        index + 1
    }
}

//! Changing a page that nobody else sees.

use triomphe::Arc;

use crate::generation::Generation;
use crate::table::bucket::{BUCKET_SLOTS, Bucket};
use crate::table::collection::Collection;
use crate::table::counts::Counts;
use crate::table::object::Object;
use crate::table::page::{At, Page, PageBody, PageHead, PageView, next, preferred};
use crate::table::slot::{
    IN_HEAP, INLINE_BESIDE_WORD_MAX, Needle, OBJECT, PAYLOAD_BYTES, Slot, TOMBSTONE,
};

/// A longer value is an object of its own.
pub(super) const VALUE_BYTES_IN_PAGE_MAX: usize = 256;
/// The longest value that a slot can hold.
const VALUE_BYTES_IN_SLOT_MAX: usize = 15;
/// A heap with less garbage is not worth compacting.
const GARBAGE_BYTES_MIN: u32 = 512;

/// What a slot is to hold.
#[derive(Debug)]
pub(super) enum Stored<'v> {
    /// A value.
    Bytes(&'v [u8]),
    /// A larger value.
    Object(Object),
    /// The memory of a deletion, which hides about so many bytes.
    Tombstone(u32),
}

impl<'v> Stored<'v> {
    /// A value of any size.
    #[inline]
    pub(super) fn value(value: &'v [u8]) -> Self {
        if value.len() > VALUE_BYTES_IN_PAGE_MAX {
            Self::Object(Object::Bytes(Arc::from(value)))
        } else {
            Self::Bytes(value)
        }
    }
}

/// A page to write to.
#[derive(Debug)]
pub(super) struct PageMut<'a> {
    pub(super) head: &'a mut PageHead,
    pub(super) buckets: &'a mut [Bucket],
}

impl<'a> From<&'a mut PageBody> for PageMut<'a> {
    #[inline]
    fn from(body: &'a mut PageBody) -> Self {
        Self {
            head: &mut body.header,
            buckets: &mut body.slice,
        }
    }
}

impl PageMut<'_> {
    #[inline]
    pub(super) fn view(&self) -> PageView<'_> {
        PageView {
            head: self.head,
            buckets: self.buckets,
        }
    }

    #[inline]
    fn slot_mut(&mut self, at: At) -> &mut Slot {
        &mut self.buckets[at.bucket as usize].slots[at.lane as usize]
    }

    /// Overwrites an inline value with one of the same length; whether that could be done.
    #[inline]
    pub(super) fn overwrite(&mut self, at: At, value: &[u8], stamp: Generation) -> bool {
        let slot = self.slot_mut(at);
        if slot.has(IN_HEAP | OBJECT | TOMBSTONE) || slot.inline_value_bytes() != value.len() {
            return false;
        }
        let start = slot.inline_identity_bytes();
        if let (Some(place), Some(eight)) = (
            slot.payload[start..].first_chunk_mut::<8>(),
            value.first_chunk::<8>(),
        ) && value.len() == 8
        {
            *place = *eight;
        } else {
            slot.payload[start..start + value.len()].copy_from_slice(value);
        }
        slot.set_stamp(stamp);
        true
    }

    /// Puts in a new entry. There is room.
    pub(super) fn insert(
        &mut self,
        needle: &Needle<'_>,
        stored: Stored<'_>,
        born: Generation,
        stamp: Generation,
    ) {
        let mut slot = self.fill(needle, stored);
        slot.set_times(born, stamp);
        self.place(needle.tag(), slot);
    }

    /// Replaces what the slot at `at` holds; its birth stays.
    pub(super) fn replace(
        &mut self,
        at: At,
        needle: &Needle<'_>,
        stored: Stored<'_>,
        stamp: Generation,
    ) {
        let old = *self.view().slot(at);
        if let Stored::Bytes(value) = stored
            && old.has(IN_HEAP)
            && !old.has(OBJECT | TOMBSTONE)
            && old.heap_value_bytes() == value.len()
        {
            let start = old.heap_offset() + old.heap_bytes() - value.len();
            self.head.heap[start..start + value.len()].copy_from_slice(value);
            self.slot_mut(at).set_stamp(stamp);
            return;
        }
        self.release(&old);
        let mut slot = self.fill(needle, stored);
        slot.set_times(old.born(), stamp);
        self.head.tombstones += u32::from(slot.has(TOMBSTONE));
        *self.slot_mut(at) = slot;
        self.compact_if_worthwhile();
    }

    /// Replaces the object of the slot at `at`.
    pub(super) fn replace_object(&mut self, at: At, object: Object) {
        let index = self.slot_mut(at).word(3);
        self.head.objects.edit(index, |old| *old = object);
    }

    /// Changes the map or list of the slot at `at`.
    pub(super) fn edit_collection<T>(
        &mut self,
        at: At,
        edit: impl FnOnce(&mut Collection) -> T,
    ) -> T {
        let index = self.slot_mut(at).word(3);
        self.head.objects.edit(index, |object| match object {
            Object::Collection(collection) => edit(collection),
            _ => unreachable!("the slots of maps and lists lead to collections"),
        })
    }

    /// Sets the last write of the slot at `at`, and whether it holds anything.
    pub(super) fn touch(&mut self, at: At, stamp: Generation, is_live: bool) {
        let slot = self.slot_mut(at);
        let was_live = slot.is_live();
        slot.set_stamp(stamp);
        slot.set_live(is_live);
        self.head.tombstones = self.head.tombstones + u32::from(was_live) - u32::from(is_live);
    }

    /// Removes the slot at `at` without a trace.
    pub(super) fn remove(&mut self, at: At) {
        let old = *self.view().slot(at);
        self.release(&old);
        self.head.used -= 1;
        self.buckets[at.bucket as usize].free(at.lane as usize);
        let mut index = preferred(old.home(), self.buckets.len());
        while index != at.bucket as usize {
            self.buckets[index].unpass();
            index = next(index, self.buckets.len());
        }
        self.compact_if_worthwhile();
    }

    /// Copies a slot of another page with all that hangs off it.
    pub(super) fn adopt(&mut self, source: PageView<'_>, tag: u8, slot: &Slot) {
        let mut slot = *slot;
        if slot.has(IN_HEAP) {
            let bytes = &source.head.heap[slot.heap_offset()..][..slot.heap_bytes()];
            slot.set_word(0, self.head.heap.len() as u32);
            self.head.heap.extend_from_slice(bytes);
        }
        if slot.has(OBJECT) {
            let index = self.head.objects.add(source.object(&slot).clone());
            slot.set_word(3, index);
        }
        self.place(tag, slot);
    }

    /// Puts `slot` into the first bucket with a free one, from its home on.
    fn place(&mut self, tag: u8, slot: Slot) {
        self.head.used += 1;
        self.head.tombstones += u32::from(slot.has(TOMBSTONE));
        debug_assert!(self.head.used as usize <= self.buckets.len() * BUCKET_SLOTS);
        let mut index = preferred(slot.home(), self.buckets.len());
        loop {
            let bucket = &mut self.buckets[index];
            if let Some(lane) = bucket.free_lane() {
                bucket.fill(lane, tag, slot);
                return;
            }
            bucket.pass();
            index = next(index, self.buckets.len());
        }
    }

    /// A slot without stamp for `needle`, and what hangs off it.
    fn fill(&mut self, needle: &Needle<'_>, stored: Stored<'_>) -> Slot {
        match stored {
            Stored::Bytes(value) => self.fill_with_bytes(needle, value),
            Stored::Object(object) => {
                let index = self.head.objects.add(object);
                self.fill_with_word(needle, OBJECT, index)
            }
            Stored::Tombstone(hidden_bytes) => self.fill_with_word(needle, TOMBSTONE, hidden_bytes),
        }
    }

    fn fill_with_bytes(&mut self, needle: &Needle<'_>, value: &[u8]) -> Slot {
        if let Some(start) = needle.inline_bytes()
            && start + value.len() <= PAYLOAD_BYTES
            && value.len() <= VALUE_BYTES_IN_SLOT_MAX
        {
            let mut slot = needle.inline_slot();
            slot.payload[start..start + value.len()].copy_from_slice(value);
            slot.set_inline_value_bytes(value.len());
            return slot;
        }
        let mut slot = self.heap_slot(needle);
        self.head.heap.extend_from_slice(value);
        slot.set_word(3, value.len() as u32);
        slot
    }

    fn fill_with_word(&mut self, needle: &Needle<'_>, flag: u8, word: u32) -> Slot {
        let inline_bytes = needle.inline_bytes();
        let mut slot = match inline_bytes {
            // A longer inline key leaves a tombstone no place for its size, which is a guess anyway.
            Some(_) if flag == TOMBSTONE => needle.inline_slot(),
            Some(bytes) if bytes <= INLINE_BESIDE_WORD_MAX => needle.inline_slot(),
            _ => self.heap_slot(needle),
        };
        slot.set_flag(flag);
        if slot.has(IN_HEAP) || slot.inline_identity_bytes() <= INLINE_BESIDE_WORD_MAX {
            slot.set_word(3, word);
        }
        slot
    }

    fn heap_slot(&mut self, needle: &Needle<'_>) -> Slot {
        let offset = u32::try_from(self.head.heap.len()).expect("a page's heap is below 4 GiB");
        self.head.heap.extend_from_slice(needle.bytes);
        needle.heap_slot(offset)
    }

    /// Lets go of what hangs off a slot that is about to be overwritten.
    fn release(&mut self, slot: &Slot) {
        if slot.has(IN_HEAP) {
            self.head.garbage += slot.heap_bytes() as u32;
        }
        if slot.has(OBJECT) {
            drop(self.head.objects.take(slot.word(3)));
        }
        self.head.tombstones -= u32::from(slot.has(TOMBSTONE));
    }

    #[inline]
    fn compact_if_worthwhile(&mut self) {
        let garbage = self.head.garbage;
        if garbage >= GARBAGE_BYTES_MIN && garbage as usize * 2 > self.head.heap.len() {
            self.compact();
        }
    }

    #[cold]
    fn compact(&mut self) {
        let live = self.head.heap.len() - self.head.garbage as usize;
        let mut heap = Vec::with_capacity(live + live / 4);
        let slots = self.buckets.iter_mut().flat_map(|bucket| &mut bucket.slots);
        for slot in slots.filter(|slot| slot.has(IN_HEAP)) {
            let bytes = &self.head.heap[slot.heap_offset()..][..slot.heap_bytes()];
            slot.set_word(0, heap.len() as u32);
            heap.extend_from_slice(bytes);
        }
        debug_assert_eq!(heap.len(), live);
        self.head.heap = heap;
        self.head.garbage = 0;
    }
}

/// A page of `bucket_count` buckets with the slots of `sources` that are `kept`; the predicate gets
/// a running number of the occupied slots.
pub(super) fn rebuilt(
    bucket_count: usize,
    heap_bytes_max: u32,
    sources: &[PageView<'_>],
    mut kept: impl FnMut(usize, &Slot) -> bool,
) -> Page {
    let mut page = Page::with_buckets(bucket_count);
    let mut unshared = Counts::default();
    let mut edit = PageMut::from(page.body_mut(&mut unshared));
    edit.head.heap_bytes_max = heap_bytes_max;
    let mut number = 0;
    for source in sources {
        for bucket in source.buckets {
            for (lane, slot) in bucket.slots.iter().enumerate() {
                if slot.is_occupied() {
                    if kept(number, slot) {
                        edit.adopt(*source, bucket.tag(lane), slot);
                    }
                    number += 1;
                }
            }
        }
    }
    page
}

//! Look-ups of many keys at once, with their cache misses overlapped.

use std::hint::black_box;

use crate::generation::WriteContext;
use crate::key::StateKey;
use crate::table::Table;
use crate::table::page::PageView;
use crate::table::slot::Needle;
use crate::value::ValueEdit;

/// The keys whose slots are fetched before the first of them is looked at.
const BATCH_KEYS: usize = 64;

impl Table {
    /// Calls `visit` with the index and the value of each of `keys`, in their order.
    #[inline]
    pub fn get_many<'t>(
        &'t self,
        keys: &[StateKey],
        mut visit: impl FnMut(usize, Option<&'t [u8]>),
    ) {
        for (batch, keys) in keys.chunks(BATCH_KEYS).enumerate() {
            let pages = self.touch(keys);
            for (index, (key, page)) in keys.iter().zip(pages).enumerate() {
                let value = page.and_then(|page| page.get(key));
                visit(batch * BATCH_KEYS + index, value);
            }
        }
    }

    /// [`Table::update`] for each of `keys`, in their order; `edit` also gets the index.
    #[inline]
    pub fn update_many(
        &mut self,
        keys: &[StateKey],
        ctx: &WriteContext,
        mut edit: impl FnMut(usize, Option<&[u8]>, &mut ValueEdit),
    ) {
        for (batch, keys) in keys.chunks(BATCH_KEYS).enumerate() {
            self.touch(keys);
            for (index, key) in keys.iter().enumerate() {
                self.update(key, ctx, |old, new| {
                    edit(batch * BATCH_KEYS + index, old, new);
                });
            }
        }
    }

    /// The page of each key. Reads a word of its bucket, so that all are on their way from memory
    /// together: a look-up by itself is too long for the processor to begin many ahead.
    #[inline]
    fn touch(&self, keys: &[StateKey]) -> [Option<PageView<'_>>; BATCH_KEYS] {
        let mut pages = [None; BATCH_KEYS];
        let mut buckets = [None; BATCH_KEYS];
        for (index, key) in keys.iter().enumerate() {
            pages[index] = self.root.page(self.space.place(key.hash()));
            buckets[index] = pages[index].map(|page| page.bucket(Needle::home_of(key)));
        }
        let buckets = buckets[..keys.len()].iter().flatten();
        black_box(buckets.fold(0, |sum, bucket| sum ^ bucket.touch()));
        pages
    }
}

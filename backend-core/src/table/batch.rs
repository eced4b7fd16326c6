//! Look-ups of many keys at once, with their cache misses overlapped.

use std::hint::black_box;

use crate::generation::WriteContext;
use crate::key::StateKey;
use crate::table::Table;
use crate::table::page::preferred;
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
            self.touch(keys);
            for (index, key) in keys.iter().enumerate() {
                visit(batch * BATCH_KEYS + index, self.get(key));
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

    /// Reads a word of each key's page and slots, so that they are on their way from memory
    /// together: a look-up by itself is too long for the processor to begin many ahead.
    #[inline]
    fn touch(&self, keys: &[StateKey]) {
        let mut buckets = [None; BATCH_KEYS];
        for (bucket, key) in buckets.iter_mut().zip(keys) {
            if let Some(page) = self.root.page(self.space.place(key.hash())) {
                *bucket = page
                    .buckets
                    .get(preferred(Needle::home_of(key), page.buckets.len()));
            }
        }
        let sum = buckets[..keys.len()]
            .iter()
            .flatten()
            .fold(0, |sum, bucket| sum ^ bucket.touch());
        black_box(sum);
    }
}

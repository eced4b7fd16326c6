//! Forgetting deletions that no snapshot needs any more.

use crate::generation::WriteContext;
use crate::table::Table;

/// With fewer tombstones a table is not swept by its deletions.
const TOMBSTONES_MIN: u64 = 64;
/// Deletions for each page that they sweep.
const DELETIONS_A_PAGE: u64 = 8;

impl Table {
    /// Visits up to `pages_max` pages, forgets tombstones that `ctx` lets go, and merges what has
    /// become sparse. The next call goes on from there; whether the end was reached.
    pub fn sweep(&mut self, ctx: &WriteContext, pages_max: usize) -> bool {
        let bounds = (ctx.covered, ctx.anchor, ctx.incremental);
        for _ in 0..pages_max {
            let began = *self.sweep.began.get_or_insert(bounds);
            let place = self.sweep.place;
            self.root.purge(place, ctx, &mut self.counts);
            // The page may have been merged: its end is looked up afterwards.
            let (_, next) = self.root.page_at(place);
            self.sweep.place = next.unwrap_or(0);
            if next.is_none() {
                self.sweep.done = Some(began);
                self.sweep.began = None;
                return true;
            }
        }
        false
    }

    /// The share of a deletion in sweeping: so tombstones that can go never outnumber what is alive
    /// for long, whoever calls [`Table::sweep`] or does not.
    #[inline]
    pub(super) fn sweep_a_little(&mut self, ctx: &WriteContext) {
        let tombstones = self.counts.tombstones;
        if tombstones.is_multiple_of(DELETIONS_A_PAGE)
            && tombstones > TOMBSTONES_MIN + self.counts.live / 4
            && self.sweep.done != Some((ctx.covered, ctx.anchor, ctx.incremental))
        {
            self.sweep(ctx, 1);
        }
    }
}

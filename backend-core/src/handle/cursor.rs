//! A walk over the entries of one key, as bytes.

use std::ops::Bound;

use bytes::Bytes;

use crate::contract::{KeyedStore, Pressure};
use crate::descriptor::StateId;
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::Fetch;
use crate::key::StateKey;
use crate::scan::{EntryBatch, SubKeyRange};

/// Walks over the entries of a map or list in order, batch by batch: each entry once, whatever is
/// written through the cursor.
pub(super) struct EntryCursor<'a> {
    store: &'a mut dyn KeyedStore,
    state: StateId,
    key: &'a StateKey,
    /// What has not been read into `batch` yet.
    range: SubKeyRange,
    batch: EntryBatch,
    /// Whether `batch` holds the answer to a scan. A scan that was dropped may leave anything.
    filled: bool,
    /// How many entries of `batch` the cursor has stepped on.
    stepped: usize,
    /// Whether the last entry that was stepped on can be changed.
    on_entry: bool,
}

/// The first batch is small, for readers who stop early.
const FIRST_ENTRIES_MAX: usize = 32;
const FIRST_BYTES_TARGET: usize = 4 << 10;

impl<'a> EntryCursor<'a> {
    pub(super) fn new(
        store: &'a mut dyn KeyedStore,
        state: StateId,
        key: &'a StateKey,
        range: SubKeyRange,
    ) -> Self {
        let mut batch = EntryBatch::new(FIRST_ENTRIES_MAX, FIRST_BYTES_TARGET);
        // Stores need not answer for ranges that end before they begin.
        let is_void = is_void(&range);
        if is_void {
            batch.set_complete();
        }
        Self {
            store,
            state,
            key,
            range,
            batch,
            filled: is_void,
            stepped: 0,
            on_entry: false,
        }
    }

    /// Steps on the next entry of the batch. `false`: the batch is at its end.
    #[inline]
    pub(super) fn step_in_batch(&mut self) -> bool {
        self.on_entry = self.filled && self.stepped < self.batch.len();
        self.stepped += usize::from(self.on_entry);
        self.on_entry
    }

    /// Steps on the next entry, of the next batch if need be. `false`: there is none.
    pub(super) async fn step(&mut self) -> Result<bool> {
        if self.step_in_batch() {
            return Ok(true);
        }
        if self.filled {
            if self.batch.is_complete() || self.batch.is_empty() {
                return Ok(false);
            }
            let (last, _) = self.batch.get(self.batch.len() - 1);
            self.range.start = Bound::Excluded(Bytes::copy_from_slice(last));
            self.batch = EntryBatch::default();
            self.filled = false;
        }
        self.stepped = 0;
        self.batch.clear();
        self.store
            .scan(self.state, self.key, &self.range, &mut self.batch)
            .await?;
        self.filled = true;
        Ok(self.step_in_batch())
    }

    /// The sub-key and value of the entry that was stepped on.
    #[inline]
    pub(super) fn entry(&self) -> (&[u8], &[u8]) {
        self.batch.get(self.stepped - 1)
    }

    /// Removes the map entry that was stepped on.
    pub(super) fn remove(&mut self) -> Result<Pressure> {
        self.check_on_entry()?;
        let (sub_key, _) = self.batch.get(self.stepped - 1);
        let pressure = self.store.map_remove(self.state, self.key, sub_key)?;
        self.on_entry = false;
        Ok(pressure)
    }

    /// Sets the value of the map entry that was stepped on.
    pub(super) fn set(&mut self, value: &[u8]) -> Result<Pressure> {
        self.check_on_entry()?;
        let (sub_key, _) = self.batch.get(self.stepped - 1);
        self.store.map_put(self.state, self.key, sub_key, value)
    }

    fn check_on_entry(&self) -> Result<()> {
        if self.on_entry {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Invalid,
            "the cursor is on no entry: none was read yet, or it was removed",
        ))
    }
}

/// Whether the map or list of `key` has no entry.
pub(super) fn is_empty<'a>(
    store: &'a mut dyn KeyedStore,
    state: StateId,
    key: &'a StateKey,
) -> Fetch<'a, bool> {
    Fetch::eager(async move {
        let mut batch = EntryBatch::new(1, 1);
        store
            .scan(state, key, &SubKeyRange::ALL, &mut batch)
            .await?;
        Ok(batch.is_empty())
    })
}

fn is_void(range: &SubKeyRange) -> bool {
    match (&range.start, &range.end) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start >= end,
    }
}

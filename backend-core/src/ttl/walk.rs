//! Going through the entries of a map or list that may have expired.

use std::ops::Bound;

use bytes::Bytes;

use crate::contract::KeyedStore;
use crate::descriptor::{StateId, StateKind};
use crate::error::Result;
use crate::key::StateKey;
use crate::scan::{EntryBatch, SubKeyRange};
use crate::ttl::seal::open;
use crate::ttl::timing::{Timing, Verdict};

/// The map or list that is read.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    pub(super) state: StateId,
    pub(super) kind: StateKind,
    pub(super) key: &'a StateKey,
    pub(super) timing: Timing,
    pub(super) now_ms: u64,
}

impl Walk<'_> {
    /// Adds what is shown of `range` to `batch` until it is full or complete; what has expired is
    /// removed on the way, and what is shown is refreshed.
    pub(super) async fn scan(
        &self,
        store: &mut impl KeyedStore,
        range: &SubKeyRange,
        batch: &mut EntryBatch,
    ) -> Result<()> {
        let mut range = range.clone();
        let mut sealed = EntryBatch::like(batch);
        while !batch.is_full() {
            sealed.clear();
            store
                .scan(self.state, self.key, &range, &mut sealed)
                .await?;
            for (sub_key, value) in sealed.iter() {
                if batch.is_full() {
                    return Ok(());
                }
                let verdict = self.timing.judge(value, self.now_ms);
                let value = open(value).1;
                if self.timing.shows(verdict) {
                    batch.push(sub_key, value);
                }
                match verdict {
                    Verdict::Live => {}
                    Verdict::Refresh => self.refresh(store, sub_key, value)?,
                    Verdict::Expired => self.remove(store, sub_key)?,
                }
            }
            if sealed.is_complete() {
                batch.set_complete();
                return Ok(());
            }
            range.start = behind(&sealed);
        }
        Ok(())
    }

    fn refresh(&self, store: &mut impl KeyedStore, sub_key: &[u8], value: &[u8]) -> Result<()> {
        let mut sealed = Vec::new();
        self.timing.seal(value, self.now_ms, &mut sealed);
        if self.kind == StateKind::List {
            store.list_set(self.state, self.key, sub_key, Some(&sealed))?;
        } else {
            store.map_put(self.state, self.key, sub_key, &sealed)?;
        }
        Ok(())
    }

    fn remove(&self, store: &mut impl KeyedStore, sub_key: &[u8]) -> Result<()> {
        if self.kind == StateKind::List {
            store.list_set(self.state, self.key, sub_key, None)?;
        } else {
            store.map_remove(self.state, self.key, sub_key)?;
        }
        Ok(())
    }
}

/// Where a scan goes on behind `batch`.
pub(super) fn behind(batch: &EntryBatch) -> Bound<Bytes> {
    match batch.iter().next_back() {
        Some((last, _)) => Bound::Excluded(Bytes::copy_from_slice(last)),
        // Only a batch that is complete is empty.
        None => Bound::Unbounded,
    }
}

//! A frozen view that hides what has expired by the time it is read.

use crate::clock::SharedEnvironment;
use crate::contract::StateView;
use crate::descriptor::StateId;
use crate::error::Result;
use crate::fetch::Fetch;
use crate::key::StateKey;
use crate::scan::{EntryBatch, KeyCursor, SubKeyRange};
use crate::ttl::seal::{SEAL_BYTES, open};
use crate::ttl::timing::Timing;
use crate::ttl::walk::behind;
use crate::value::ValueRef;

/// A view of sealed values.
pub(super) struct TimedView {
    pub(super) inner: Box<dyn StateView>,
    pub(super) timings: Vec<Option<Timing>>,
    pub(super) environment: SharedEnvironment,
}

impl TimedView {
    fn timing(&self, state: StateId) -> Option<Timing> {
        self.timings.get(state.0 as usize).copied().flatten()
    }

    fn opened<'a>(
        &self,
        timing: Timing,
        found: Fetch<'a, Option<ValueRef<'a>>>,
    ) -> Fetch<'a, Option<ValueRef<'a>>> {
        let now_ms = self.environment.now_ms();
        found.and_then(move |found| {
            Ok(found
                .filter(|sealed| timing.shows(timing.judge(sealed, now_ms)))
                .map(opened_ref))
        })
    }

    async fn scan_opened(
        &self,
        timing: Timing,
        state: StateId,
        key: &StateKey,
        range: &SubKeyRange,
        batch: &mut EntryBatch,
    ) -> Result<()> {
        let now_ms = self.environment.now_ms();
        let mut range = range.clone();
        let mut sealed = EntryBatch::like(batch);
        while !batch.is_full() {
            sealed.clear();
            self.inner.scan(state, key, &range, &mut sealed).await?;
            for (sub_key, value) in sealed.iter() {
                if batch.is_full() {
                    return Ok(());
                }
                if timing.shows(timing.judge(value, now_ms)) {
                    batch.push(sub_key, open(value).1);
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
}

/// The value in a sealed one.
pub(super) fn opened_ref(sealed: ValueRef<'_>) -> ValueRef<'_> {
    match sealed {
        ValueRef::Borrowed(sealed) => ValueRef::Borrowed(open(sealed).1),
        ValueRef::Shared(sealed) => ValueRef::Shared(sealed.slice(SEAL_BYTES..)),
    }
}

impl StateView for TimedView {
    fn get<'a>(&'a self, state: StateId, key: &'a StateKey) -> Fetch<'a, Option<ValueRef<'a>>> {
        let found = self.inner.get(state, key);
        match self.timing(state) {
            None => found,
            Some(timing) => self.opened(timing, found),
        }
    }

    fn map_get<'a>(
        &'a self,
        state: StateId,
        key: &'a StateKey,
        sub_key: &'a [u8],
    ) -> Fetch<'a, Option<ValueRef<'a>>> {
        let found = self.inner.map_get(state, key, sub_key);
        match self.timing(state) {
            None => found,
            Some(timing) => self.opened(timing, found),
        }
    }

    fn scan<'a>(
        &'a self,
        state: StateId,
        key: &'a StateKey,
        range: &'a SubKeyRange,
        batch: &'a mut EntryBatch,
    ) -> Fetch<'a, ()> {
        match self.timing(state) {
            None => self.inner.scan(state, key, range, batch),
            Some(timing) => Fetch::eager(self.scan_opened(timing, state, key, range, batch)),
        }
    }

    fn keys(&self, state: StateId, namespace: Option<&[u8]>) -> Result<Box<dyn KeyCursor>> {
        self.inner.keys(state, namespace)
    }
}

//! Timers as they were at one moment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::descriptor::StateUid;
use crate::entry::{Entry, EntryKey};
use crate::error::Result;
use crate::generation::Generation;
use crate::hash::KeyHasher;
use crate::range::HashRange;
use crate::table::sorted::SortedMode;
use crate::table::timers::key::{decode, encode};
use crate::table::tree::Tree;
use crate::timer::{Timer, TimerBatch, time_bytes};
use crate::upload::EntrySink;

/// The timers of a state as they were at one moment, to be written on any thread.
#[derive(Clone, Debug)]
pub struct FrozenTimers {
    pub(super) first_shard: u8,
    pub(super) trees: Vec<Tree>,
}

impl FrozenTimers {
    /// Visits the timers newer than `newer_than` in the order of the format and frees them on the
    /// way.
    ///
    /// # Errors
    /// Those of `visit`; the walk ends with the first.
    pub fn into_sorted(
        self,
        state: StateUid,
        newer_than: Generation,
        mode: SortedMode,
        visit: &mut EntrySink<'_>,
    ) -> Result<()> {
        for (shard, tree) in (self.first_shard..=u8::MAX).zip(self.trees) {
            let mut visit = |sub_key: &[u8], is_live: bool| {
                let timer = decode(sub_key);
                let key = EntryKey {
                    state,
                    shard,
                    key: &time_bytes(timer.time),
                    namespace: timer.key,
                    sub_key: timer.namespace,
                };
                if is_live {
                    visit(&Entry::put(key, &[]), 0)
                } else {
                    visit(&Entry::delete(key), sub_key.len() as u64)
                }
            };
            match mode {
                SortedMode::Full => {
                    for (timer, _) in tree.iter() {
                        visit(timer, true)?;
                    }
                }
                SortedMode::Changes => {
                    for (timer, value) in tree.changes(newer_than) {
                        visit(timer, value.is_some())?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Adds the timers of keys in `range` behind `after` to `batch`, in the order of all `trees`.
pub(super) fn of_shards(
    trees: &[Tree],
    first_shard: u8,
    hasher: &KeyHasher,
    range: HashRange,
    after: Option<&Timer<'_>>,
    batch: &mut TimerBatch,
) {
    let mut start = Vec::new();
    if let Some(timer) = after {
        encode(timer, &mut start);
    }
    let is_wanted = |bytes: &[u8]| {
        let is_behind = after.is_none() || bytes > &start[..];
        is_behind && range.contains(hasher.hash(decode(bytes).key))
    };
    let shards = range.shards();
    let mut walks: Vec<_> = (first_shard..=u8::MAX)
        .zip(trees)
        .filter(|(shard, _)| shards.contains(shard))
        .map(|(_, tree)| tree.iter_from(&start).filter(|(bytes, _)| is_wanted(bytes)))
        .collect();
    let mut heads: BinaryHeap<_> = walks
        .iter_mut()
        .enumerate()
        .filter_map(|(walk, timers)| Some(Reverse((timers.next()?.0, walk))))
        .collect();
    while let Some(Reverse((timer, walk))) = heads.pop() {
        if batch.is_full() {
            return;
        }
        batch.push(&decode(timer));
        if let Some((next, _)) = walks[walk].next() {
            heads.push(Reverse((next, walk)));
        }
    }
    batch.set_complete();
}

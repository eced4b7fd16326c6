//! Timers in memory: for each shard of the task's range a persistent tree in the order of time.
//!
//! A freeze clones the roots, at most 256 of them. What a snapshot needs comes out of the trees in
//! the order of the format, without being sorted.

mod frozen;
mod key;

pub use self::frozen::FrozenTimers;
use self::frozen::of_shards;
use self::key::{decode, encode};
use crate::entry::{Entry, Op};
use crate::error::Result;
use crate::generation::{Generation, WriteContext};
use crate::hash::KeyHasher;
use crate::key::StateKey;
use crate::range::{HashRange, shard_of};
use crate::table::tree::Tree;
use crate::timer::{Timer, TimerBatch};

/// The timers of one state of one task.
#[derive(Debug)]
pub struct TimerTable {
    hasher: KeyHasher,
    range: HashRange,
    /// By shard, from the range's first one on.
    trees: Vec<Tree>,
    /// The least timer of each tree, encoded; empty if it has none.
    heads: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

impl TimerTable {
    /// No timers, for the keys of `range`.
    pub fn new(range: HashRange, hasher: KeyHasher) -> Self {
        let shards = range.shards().count();
        Self {
            hasher,
            range,
            trees: vec![Tree::default(); shards],
            heads: vec![Vec::new(); shards],
            buffer: Vec::new(),
        }
    }

    /// Adds a timer, once. Says whether the least time has changed.
    pub fn add(&mut self, key: &StateKey, time: i64, ctx: &WriteContext) -> bool {
        let before = self.next_time();
        let slice = self.slice(key.shard());
        encode(&timer_of(key, time), &mut self.buffer);
        if self.trees[slice].get(&self.buffer).is_some() {
            return false;
        }
        self.trees[slice].put(&self.buffer, &[], ctx);
        self.raise(slice);
        before.is_none_or(|least| time < least)
    }

    /// Removes a timer. Says whether it was there.
    pub fn remove(&mut self, key: &StateKey, time: i64, ctx: &WriteContext) -> bool {
        let slice = self.slice(key.shard());
        encode(&timer_of(key, time), &mut self.buffer);
        let is_there = self.trees[slice].get(&self.buffer).is_some();
        if is_there {
            self.trees[slice].remove(&self.buffer, ctx);
            self.lower(slice);
        }
        is_there
    }

    /// The least time.
    pub fn next_time(&self) -> Option<i64> {
        self.first().map(|slice| decode(&self.heads[slice]).time)
    }

    /// Removes timers that are due at `until` or earlier, in order, and adds them to `batch` until
    /// it is full or complete.
    pub fn pop(&mut self, until: i64, batch: &mut TimerBatch, ctx: &WriteContext) {
        while let Some(slice) = self.first() {
            let head = std::mem::take(&mut self.heads[slice]);
            let timer = decode(&head);
            if timer.time > until {
                self.heads[slice] = head;
                break;
            }
            if batch.is_full() {
                self.heads[slice] = head;
                return;
            }
            batch.push(&timer);
            self.trees[slice].remove(&head, ctx);
            self.buffer = head;
            self.find_head(slice);
        }
        batch.set_complete();
    }

    /// Adds the timers of keys in `range` that stand behind `after` to `batch`, in order, until it
    /// is full or complete.
    pub fn scan(&self, range: HashRange, after: Option<&Timer<'_>>, batch: &mut TimerBatch) {
        of_shards(
            &self.trees,
            *self.range.shards().start(),
            &self.hasher,
            range,
            after,
            batch,
        );
    }

    /// The number of timers.
    pub fn len(&self) -> u64 {
        self.trees.iter().map(Tree::live_len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// The bytes of memory that the timers take, as an estimate.
    pub fn memory_bytes(&self) -> u64 {
        self.trees.iter().map(Tree::bytes).sum()
    }

    /// The timers as they are now, to be written on any thread while the owner goes on.
    pub fn freeze(&self) -> FrozenTimers {
        FrozenTimers {
            first_shard: *self.range.shards().start(),
            trees: self.trees.clone(),
        }
    }

    /// Forgets deletions that no snapshot needs any more.
    pub fn sweep(&mut self, ctx: &WriteContext) {
        for tree in &mut self.trees {
            tree.drop_tombstones(ctx);
        }
    }

    /// Applies an entry of a restored segment, which is of generation `stamp`; the oldest segment
    /// comes first. Timers of keys outside the range are skipped.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] if key or namespace are too long; [`crate::ErrorKind::Corrupt`]
    /// if the entry is no timer.
    pub fn load(&mut self, entry: &Entry<'_>, stamp: Generation) -> Result<()> {
        let timer = Timer::of_entry(&entry.key).ok_or_else(|| {
            crate::Error::new(crate::ErrorKind::Corrupt, "an entry is no timer")
                .with("key_bytes", entry.key.key.len())
        })?;
        let hash = self.hasher.hash(timer.key);
        if !self.range.contains(hash) {
            return Ok(());
        }
        let slice = self.slice(shard_of(hash));
        encode(&timer, &mut self.buffer);
        let value = (entry.op == Op::Put).then_some(&[][..]);
        self.trees[slice].load(&self.buffer, value, stamp);
        if value.is_some() {
            self.raise(slice);
        } else {
            self.lower(slice);
        }
        Ok(())
    }

    fn slice(&self, shard: u8) -> usize {
        usize::from(shard - *self.range.shards().start())
    }

    /// The tree with the least timer.
    fn first(&self) -> Option<usize> {
        let heads = self.heads.iter().enumerate();
        let there = heads.filter(|(_, head)| !head.is_empty());
        there
            .min_by_key(|(_, head)| &head[..])
            .map(|(slice, _)| slice)
    }

    /// What is in the buffer has come to a tree.
    fn raise(&mut self, slice: usize) {
        let head = &mut self.heads[slice];
        if head.is_empty() || self.buffer < *head {
            head.clear();
            head.extend_from_slice(&self.buffer);
        }
    }

    /// What is in the buffer has gone from a tree.
    fn lower(&mut self, slice: usize) {
        if self.heads[slice] == self.buffer {
            self.find_head(slice);
        }
    }

    /// Finds the least timer behind the buffer, which holds what was the least one: deletions that
    /// are remembered lie before it, so they are not walked over again.
    fn find_head(&mut self, slice: usize) {
        let next = self.trees[slice].iter_from(&self.buffer).next();
        let head = &mut self.heads[slice];
        head.clear();
        if let Some((timer, _)) = next {
            head.extend_from_slice(timer);
        }
    }
}

fn timer_of(key: &StateKey, time: i64) -> Timer<'_> {
    Timer {
        time,
        key: key.key(),
        namespace: key.namespace(),
    }
}

#[cfg(test)]
mod tests;

//! Merging runs of segments: what is left when they are applied one after the other.
//!
//! Merging old A with new B: a prefix delete if either has one, A's puts only if B has no prefix
//! delete for their key and namespace, then B's. At the bottom, where nothing older lies below,
//! deletes and expired entries go; elsewhere an expired entry becomes a delete.

use crate::entry::{Entry, Op};
use crate::error::Result;
use crate::segment::block_entries::{BlockEntries, RawEntry};

/// Gives the blocks of one source, in order.
pub trait BlockSource {
    /// The next block; `None` at the end.
    ///
    /// # Errors
    /// Those of reading.
    fn next_block(&mut self) -> Result<Option<BlockEntries>>;
}

/// How entries that are dropped or kept at a merge are told apart.
#[derive(Clone, Copy, Debug)]
pub struct MergeRules {
    /// Whether nothing older lies below the output.
    pub reaches_bottom: bool,
    /// Entries that expire at this time or earlier are gone, in milliseconds since 1970.
    pub now_ms: u64,
}

/// A source with the entry that it is at.
struct Head<S> {
    source: S,
    block: Option<BlockEntries>,
    /// Whether `block` is at an entry.
    is_live: bool,
}

impl<S: BlockSource> Head<S> {
    fn advance(&mut self) -> Result<()> {
        loop {
            if let Some(block) = &mut self.block
                && block.advance()?
            {
                self.is_live = true;
                return Ok(());
            }
            self.is_live = false;
            self.block = self.source.next_block()?;
            if self.block.is_none() {
                return Ok(());
            }
        }
    }

    fn current(&self) -> Option<RawEntry<'_>> {
        self.block
            .as_ref()
            .filter(|_| self.is_live)
            .map(BlockEntries::current)
    }
}

/// Merges `sources`, oldest first, and hands every entry that is left to `emit`, in order.
///
/// `admit` says which entries count: it sees each entry once, with the index of its source and
/// its encoded key.
///
/// # Errors
/// Those of reading, of `admit` and of `emit`.
pub fn merge<S: BlockSource>(
    sources: Vec<S>,
    rules: MergeRules,
    mut admit: impl FnMut(usize, &Entry<'_>, &[u8]) -> Result<bool>,
    mut emit: impl FnMut(&Entry<'_>) -> Result<()>,
) -> Result<()> {
    let mut heads: Vec<Head<S>> = sources
        .into_iter()
        .map(|source| Head {
            source,
            block: None,
            is_live: false,
        })
        .collect();
    let mut step = |index: usize, head: &mut Head<S>| -> Result<()> {
        loop {
            head.advance()?;
            match head.current() {
                Some(raw) if !admit(index, &raw.entry(), raw.key)? => {}
                _ => return Ok(()),
            }
        }
    };
    for (index, head) in heads.iter_mut().enumerate() {
        step(index, head)?;
    }
    let mut prefix = Prefix::default();
    let mut key: Vec<u8> = Vec::new();
    loop {
        let live = heads.iter().filter_map(Head::current);
        let Some(least) = live.min_by(|a, b| a.key.cmp(b.key)) else {
            return Ok(());
        };
        key.clear();
        key.extend_from_slice(least.key);
        prefix.enter(&key[..least.prefix_bytes]);
        let merged_op = if let Some(newest) = newest_at(&heads, &key, |op| op == Op::DeletePrefix) {
            prefix.hides_below = newest;
            if !rules.reaches_bottom {
                let raw = heads[newest]
                    .current()
                    .expect("the head was found at the key");
                emit(&Entry::delete_prefix(raw.entry().key))?;
            }
            Op::DeletePrefix
        } else {
            let newest = newest_at(&heads, &key, |_| true).expect("some head is at the least key");
            let raw = heads[newest]
                .current()
                .expect("the head was found at the key");
            if newest >= prefix.hides_below
                && let Some(entry) = kept(&raw.entry(), rules)
            {
                emit(&entry)?;
            }
            Op::Put
        };
        for (index, head) in heads.iter_mut().enumerate() {
            let is_merged = head.current().is_some_and(|raw| {
                raw.key == key && (raw.op == Op::DeletePrefix) == (merged_op == Op::DeletePrefix)
            });
            if is_merged {
                step(index, head)?;
            }
        }
    }
}

/// The newest head at `key` whose operation is `wanted`. A prefix delete comes before the other
/// entries of its key and namespace.
fn newest_at<S: BlockSource>(
    heads: &[Head<S>],
    key: &[u8],
    wanted: impl Fn(Op) -> bool,
) -> Option<usize> {
    heads.iter().rposition(|head| {
        head.current()
            .is_some_and(|raw| raw.key == key && wanted(raw.op))
    })
}

/// What is known about the key and namespace that the merge is at.
#[derive(Debug, Default)]
struct Prefix {
    bytes: Vec<u8>,
    /// Sources below this index are hidden by a prefix delete.
    hides_below: usize,
}

impl Prefix {
    fn enter(&mut self, prefix: &[u8]) {
        if self.bytes != prefix {
            self.bytes.clear();
            self.bytes.extend_from_slice(prefix);
            self.hides_below = 0;
        }
    }
}

fn kept<'a>(entry: &Entry<'a>, rules: MergeRules) -> Option<Entry<'a>> {
    let is_expired = entry
        .expires_ms
        .is_some_and(|expiry| expiry <= rules.now_ms);
    let is_gone = entry.op == Op::Delete || is_expired;
    match (is_gone, rules.reaches_bottom) {
        (true, true) => None,
        (true, false) => Some(Entry::delete(entry.key)),
        (false, _) => Some(*entry),
    }
}

//! What a task's chain holds: the puts that are left when its runs are applied one after the
//! other.

use crate::contract::TaskPart;
use crate::entry::Op;
use crate::error::{Error, Result};
use crate::hash::KeyHasher;
use crate::inspect::cursor::{Cursor, RunBlocks};
use crate::range::HashRange;
use crate::runtime::IoRuntime;
use crate::segment::{Clip, RawEntry, SegmentRef};
use crate::storage::Storage;

/// The puts that are left, in the order of their keys; deletes have done their work. Memory holds
/// a region of each run, and the next one.
///
/// It waits for reads, so it runs on a thread that [`IoRuntime::blocking`] gave.
pub(super) struct Merged {
    /// Oldest first.
    cursors: Vec<Cursor>,
    has_begun: bool,
    /// The cursor at whose entry the merge is.
    at: Option<usize>,
    key: Vec<u8>,
    /// The key and namespace of `key`.
    prefix: Vec<u8>,
    /// Cursors below this index are hidden by a prefix delete of `prefix`.
    hides_below: usize,
    /// Entries that were seen, those that are hidden and the deletes as well.
    seen: u64,
    /// The bytes of their keys and values.
    seen_bytes: u64,
}

impl Merged {
    /// What `part`, whose objects lie in `storage`, holds in `range`.
    pub(super) fn open(
        part: &TaskPart,
        range: HashRange,
        hasher: KeyHasher,
        storage: &Storage,
        runtime: &IoRuntime,
    ) -> Self {
        let runs = part
            .segments
            .chunk_by(|a, b| a.run == b.run && a.clip == b.clip);
        let cursors = runs.filter_map(|run| open_run(run, range, hasher, storage, runtime));
        Self::new(cursors.collect())
    }

    /// What is left of `cursors`, oldest first.
    pub(super) fn new(cursors: Vec<Cursor>) -> Self {
        Self {
            cursors,
            has_begun: false,
            at: None,
            key: Vec::new(),
            prefix: Vec::new(),
            hides_below: 0,
            seen: 0,
            seen_bytes: 0,
        }
    }

    /// Goes to the next put; `false` at the end.
    ///
    /// # Errors
    /// Those of reading; [`crate::ErrorKind::Corrupt`] and [`crate::ErrorKind::Mismatch`] name
    /// the object.
    pub(super) fn advance(&mut self) -> Result<bool> {
        if !self.has_begun {
            self.has_begun = true;
            self.cursors.iter_mut().try_for_each(Cursor::advance)?;
        } else if self.at.take().is_some() {
            self.step_over(false)?;
        }
        loop {
            let live = self.cursors.iter().filter_map(Cursor::current);
            let Some(least) = live.min_by(|a, b| a.key.cmp(b.key)) else {
                return Ok(false);
            };
            self.key.clear();
            self.key.extend_from_slice(least.key);
            let prefix = &self.key[..least.prefix_bytes];
            if self.prefix != prefix {
                self.prefix.clear();
                self.prefix.extend_from_slice(prefix);
                self.hides_below = 0;
            }
            if let Some(newest) = self.newest(|op| op == Op::DeletePrefix) {
                self.hides_below = newest;
                self.step_over(true)?;
                continue;
            }
            let newest = self.newest(|_| true).expect("a cursor is at the least key");
            let raw = self.cursors[newest].current();
            let is_put = raw.is_some_and(|raw| raw.op == Op::Put);
            if is_put && newest >= self.hides_below {
                self.at = Some(newest);
                return Ok(true);
            }
            self.step_over(false)?;
        }
    }

    /// The put.
    pub(super) fn current(&self) -> Option<RawEntry<'_>> {
        self.at.and_then(|at| self.cursors[at].current())
    }

    /// Adds to an error which object the put is from.
    pub(super) fn place(&self, e: Error) -> Error {
        match self.at {
            Some(at) => self.cursors[at].place(e),
            None => e,
        }
    }

    /// How many entries were seen.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// The bytes of the keys and values of those entries.
    pub(super) fn seen_bytes(&self) -> u64 {
        self.seen_bytes
    }

    /// How many entries the clips left out.
    pub(super) fn clipped(&self) -> u64 {
        self.cursors.iter().map(Cursor::clipped).sum()
    }

    /// The newest cursor at the least key whose operation is `wanted`.
    fn newest(&self, wanted: impl Fn(Op) -> bool) -> Option<usize> {
        self.cursors.iter().rposition(|cursor| {
            cursor
                .current()
                .is_some_and(|raw| raw.key == self.key && wanted(raw.op))
        })
    }

    /// Moves on the cursors at the least key: those at prefix deletes, or the others.
    fn step_over(&mut self, prefix_deletes: bool) -> Result<()> {
        for cursor in &mut self.cursors {
            let there = cursor.current().filter(|raw| {
                raw.key == self.key && (raw.op == Op::DeletePrefix) == prefix_deletes
            });
            if let Some(raw) = there {
                self.seen += 1;
                self.seen_bytes += bytes_of(&raw);
                cursor.advance()?;
            }
        }
        Ok(())
    }
}

/// The bytes of an entry's key and value, as they are before a block is encoded.
pub(super) fn bytes_of(raw: &RawEntry<'_>) -> u64 {
    (raw.key.len() + raw.value.len()) as u64
}

fn open_run(
    run: &[SegmentRef],
    range: HashRange,
    hasher: KeyHasher,
    storage: &Storage,
    runtime: &IoRuntime,
) -> Option<Cursor> {
    let clip = Clip::new(run[0].clip.intersect(range)?, hasher);
    let blocks = RunBlocks::open(run, storage, clip.shards(), runtime);
    Some(Cursor::new(Box::new(blocks), clip))
}

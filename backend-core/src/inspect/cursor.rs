//! The entries of one run that count, one after the other.

use std::sync::Arc;

use crate::chain::KeySpan;
use crate::entry::Op;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::IoRuntime;
use crate::segment::{BlockEntries, Clip, RawEntry, SegmentRef, SegmentSource, SegmentStream};
use crate::storage::Storage;

/// What an error says if the segments of a run overlap.
pub(super) const OUT_OF_ORDER: &str = "the entries of a run are not in order";

/// Blocks in the order of their keys, which somebody has to wait for.
pub(super) trait Blocks: Send {
    /// The next block; `None` at the end.
    fn next_block(&mut self) -> Result<Option<BlockEntries>>;

    /// Adds to an error which object it is about.
    fn place(&self, e: Error) -> Error;
}

/// The blocks of the segments of a run, one segment after the other.
pub(super) struct RunBlocks {
    runtime: IoRuntime,
    streams: std::vec::IntoIter<(SegmentStream, SegmentSource)>,
    current: Option<(SegmentStream, SegmentSource)>,
}

impl RunBlocks {
    /// The blocks of `run` that may hold something in `shards`.
    pub(super) fn open(
        run: &[SegmentRef],
        storage: &Storage,
        shards: (u8, u8),
        runtime: &IoRuntime,
    ) -> Self {
        let streams = run.iter().map(|segment| {
            let source = SegmentSource::new(&segment.meta, storage);
            let meta = Arc::clone(&segment.meta);
            let stream = SegmentStream::new(meta, source.clone(), KeySpan::default(), shards);
            (stream, source)
        });
        let streams: Vec<_> = streams.collect();
        Self {
            runtime: runtime.clone(),
            streams: streams.into_iter(),
            current: None,
        }
    }
}

impl Blocks for RunBlocks {
    fn next_block(&mut self) -> Result<Option<BlockEntries>> {
        loop {
            if let Some((stream, _)) = &mut self.current
                && let Some(block) = self.runtime.wait(stream.next_block())?
            {
                return Ok(Some(block));
            }
            let Some(next) = self.streams.next() else {
                return Ok(None);
            };
            self.current = Some(next);
        }
    }

    fn place(&self, e: Error) -> Error {
        match &self.current {
            Some((_, source)) => source.place_error(e),
            None => e,
        }
    }
}

/// A run with the entry that it is at. It leaves out what a clip does not admit, and refuses
/// entries that are not in order.
pub(super) struct Cursor {
    blocks: Box<dyn Blocks>,
    clip: Clip,
    block: Option<BlockEntries>,
    /// Whether `block` is at an entry.
    is_live: bool,
    last: Option<(Vec<u8>, Op)>,
    /// Entries that the clip left out.
    clipped: u64,
}

impl Cursor {
    /// The entries of `blocks` that `clip` admits; [`Cursor::advance`] goes to the first.
    pub(super) fn new(blocks: Box<dyn Blocks>, clip: Clip) -> Self {
        Self {
            blocks,
            clip,
            block: None,
            is_live: false,
            last: None,
            clipped: 0,
        }
    }

    /// Goes to the next entry, or to the end.
    pub(super) fn advance(&mut self) -> Result<()> {
        loop {
            let Some(block) = &mut self.block else {
                self.is_live = false;
                self.block = self.blocks.next_block()?;
                if self.block.is_none() {
                    return Ok(());
                }
                continue;
            };
            if !block.advance().map_err(|e| self.blocks.place(e))? {
                self.block = None;
                continue;
            }
            let raw = block.current();
            check_order(&mut self.last, &raw).map_err(|e| self.blocks.place(e))?;
            let admits = self.clip.admits(&raw.entry().key);
            if admits.map_err(|e| self.blocks.place(e))? {
                self.is_live = true;
                return Ok(());
            }
            self.clipped += 1;
        }
    }

    /// The entry; `None` at the end.
    pub(super) fn current(&self) -> Option<RawEntry<'_>> {
        let block = self.block.as_ref().filter(|_| self.is_live);
        block.map(BlockEntries::current)
    }

    pub(super) fn place(&self, e: Error) -> Error {
        self.blocks.place(e)
    }

    pub(super) fn clipped(&self) -> u64 {
        self.clipped
    }
}

fn check_order(last: &mut Option<(Vec<u8>, Op)>, raw: &RawEntry<'_>) -> Result<()> {
    let Some((key, op)) = last else {
        *last = Some((raw.key.to_vec(), raw.op));
        return Ok(());
    };
    let repeats = *key == raw.key && *op == Op::DeletePrefix && raw.op != Op::DeletePrefix;
    if **key >= *raw.key && !repeats {
        return Err(
            Error::new(ErrorKind::Corrupt, OUT_OF_ORDER).with("key", raw.key.escape_ascii())
        );
    }
    key.clear();
    key.extend_from_slice(raw.key);
    *op = raw.op;
    Ok(())
}

//! Items that somebody has to wait for, made on a thread that may wait, and handed out in batches
//! of bounded size.

use std::collections::VecDeque;

use crate::error::{Error, ErrorKind, Result};
use crate::runtime::IoRuntime;

/// Items of a batch, and bytes after which it ends.
const ITEMS_MAX: usize = 256;
const BYTES_TARGET: usize = 256 << 10;

/// Makes items one after the other.
pub(super) trait Source: Send + 'static {
    type Item: Send + 'static;

    /// The next item; `None` at the end. It may block.
    fn next(&mut self) -> Result<Option<Self::Item>>;

    /// About how much memory an item takes.
    fn bytes_of(item: &Self::Item) -> usize;
}

/// Hands out the items of a source.
pub(super) struct Pump<S: Source> {
    io: IoRuntime,
    /// `None` while a batch is made, and behind the end.
    source: Option<Box<S>>,
    batch: VecDeque<S::Item>,
    is_at_end: bool,
}

struct Batch<S: Source> {
    source: Box<S>,
    items: VecDeque<S::Item>,
    is_last: bool,
}

impl<S: Source> Pump<S> {
    pub(super) fn new(io: IoRuntime, source: S) -> Self {
        Self {
            io,
            source: Some(Box::new(source)),
            batch: VecDeque::new(),
            is_at_end: false,
        }
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// Those of the source; afterwards, and after a call that was dropped,
    /// [`ErrorKind::Closed`].
    pub(super) async fn next(&mut self) -> Result<Option<S::Item>> {
        loop {
            if let Some(item) = self.batch.pop_front() {
                return Ok(Some(item));
            }
            if self.is_at_end {
                return Ok(None);
            }
            let source = self.source.take().ok_or_else(|| {
                Error::new(
                    ErrorKind::Closed,
                    "a walk over a snapshot ended with an error or was dropped",
                )
            })?;
            let batch = self.io.blocking(move || fill(source)).await?;
            self.batch = batch.items;
            self.is_at_end = batch.is_last;
            self.source = (!batch.is_last).then_some(batch.source);
        }
    }
}

fn fill<S: Source>(mut source: Box<S>) -> Result<Batch<S>> {
    let mut items = VecDeque::new();
    let mut bytes = 0;
    while items.len() < ITEMS_MAX && bytes < BYTES_TARGET {
        let Some(item) = source.next()? else {
            return Ok(Batch {
                source,
                items,
                is_last: true,
            });
        };
        bytes += S::bytes_of(&item);
        items.push_back(item);
    }
    Ok(Batch {
        source,
        items,
        is_last: false,
    })
}

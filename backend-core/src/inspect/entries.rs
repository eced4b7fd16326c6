//! The entries of one key in a snapshot, batch by batch.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::inspect::cursor::Blocks;
use crate::inspect::merged::Merged;
use crate::inspect::pump::{Pump, Source};
use crate::inspect::states::version_of;
use crate::inspect::stored::StoredValue;
use crate::manifest::StateMeta;
use crate::runtime::IoRuntime;
use crate::segment::{BlockEntries, PrefixBlocks, SegmentLookup};

/// The blocks of a run that may hold one key and namespace.
pub(super) struct PrefixRun {
    io: IoRuntime,
    prefix: Vec<u8>,
    lookups: VecDeque<SegmentLookup>,
    current: Option<PrefixBlocks>,
}

impl PrefixRun {
    pub(super) fn new(lookups: VecDeque<SegmentLookup>, prefix: Vec<u8>, io: IoRuntime) -> Self {
        Self {
            io,
            prefix,
            lookups,
            current: None,
        }
    }
}

impl Blocks for PrefixRun {
    fn next_block(&mut self) -> Result<Option<BlockEntries>> {
        loop {
            if let Some(blocks) = &mut self.current
                && let Some(block) = self.io.wait(blocks.next_block())?
            {
                return Ok(Some(block));
            }
            let Some(next) = self.lookups.pop_front() else {
                return Ok(None);
            };
            self.current = Some(next.blocks_of(self.prefix.clone()));
        }
    }

    fn place(&self, e: Error) -> Error {
        match &self.current {
            Some(blocks) => blocks.place_error(e),
            None => e,
        }
    }
}

/// An element of a list, or an entry of a map, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEntry {
    /// The user key of a map, as its codec made it; for a list generation and index.
    pub sub_key: Bytes,
    /// Its value.
    pub value: StoredValue,
}

/// The entries of one key; see [`crate::inspect::SnapshotReader::entries`].
pub struct Entries {
    pump: Pump<KeyEntries>,
}

/// The entries of one key, one after the other.
struct KeyEntries {
    merged: Merged,
    prefix: Vec<u8>,
    state: StateMeta,
    clock_ms: u64,
}

impl Entries {
    pub(super) fn new(
        io: IoRuntime,
        merged: Merged,
        prefix: Vec<u8>,
        state: StateMeta,
        clock_ms: u64,
    ) -> Self {
        let entries = KeyEntries {
            merged,
            prefix,
            state,
            clock_ms,
        };
        Self {
            pump: Pump::new(io, entries),
        }
    }

    /// The next entry; `None` at the end.
    ///
    /// A future that is dropped before it is ready ends the walk.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] and [`crate::ErrorKind::NotFound`] name an object that is
    /// damaged or missing; [`crate::ErrorKind::Transient`] if the store did not answer. After an
    /// error, and after a future that was dropped, [`crate::ErrorKind::Closed`].
    pub async fn next(&mut self) -> Result<Option<StoredEntry>> {
        self.pump.next().await
    }
}

impl Source for KeyEntries {
    type Item = StoredEntry;

    fn next(&mut self) -> Result<Option<StoredEntry>> {
        while self.merged.advance()? {
            let raw = self.merged.current().expect("the merge is at an entry");
            // Blocks also hold what lies beside the key.
            if *raw.key < *self.prefix {
                continue;
            }
            if !raw.key.starts_with(&self.prefix) {
                return Ok(None);
            }
            if raw.expires_ms.is_some_and(|ms| ms <= self.clock_ms) {
                continue;
            }
            let schema = version_of(&self.state, raw.schema.0).map_err(|e| self.merged.place(e))?;
            return Ok(Some(StoredEntry {
                sub_key: Bytes::copy_from_slice(&raw.key[self.prefix.len()..]),
                value: StoredValue {
                    bytes: Bytes::copy_from_slice(raw.value),
                    schema,
                    expires_ms: raw.expires_ms,
                },
            }));
        }
        Ok(None)
    }

    fn bytes_of(entry: &StoredEntry) -> usize {
        entry.sub_key.len() + entry.value.bytes.len()
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries").finish_non_exhaustive()
    }
}

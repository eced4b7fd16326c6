//! Entries that own their bytes, and reading all of a segment.

use std::cell::OnceCell;
use std::future::Future;
use std::sync::Arc;

use backend_core::chain::KeySpan;
use backend_core::entry::{Entry, EntryKey, Op, SchemaTag};
use backend_core::segment::{BlockEntries, SegmentMeta, SegmentSource, SegmentStream};
use backend_core::{Result, StateUid};
use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};

/// An entry that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) state: u32,
    pub(crate) shard: u8,
    pub(crate) key: Vec<u8>,
    pub(crate) namespace: Vec<u8>,
    pub(crate) sub_key: Vec<u8>,
    pub(crate) op: Op,
    pub(crate) schema: u8,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) value: Vec<u8>,
}

impl Owned {
    pub(crate) fn of(entry: &Entry<'_>) -> Self {
        Self {
            state: entry.key.state.0,
            shard: entry.key.shard,
            key: entry.key.key.into(),
            namespace: entry.key.namespace.into(),
            sub_key: entry.key.sub_key.into(),
            op: entry.op,
            schema: entry.schema.0,
            expires_ms: entry.expires_ms,
            value: entry.value.into(),
        }
    }

    pub(crate) fn key(&self) -> EntryKey<'_> {
        EntryKey {
            state: StateUid(self.state),
            shard: self.shard,
            key: &self.key,
            namespace: &self.namespace,
            sub_key: &self.sub_key,
        }
    }

    pub(crate) fn entry(&self) -> Entry<'_> {
        Entry {
            key: self.key(),
            op: self.op,
            schema: SchemaTag(self.schema),
            expires_ms: self.expires_ms,
            value: &self.value,
        }
    }
}

thread_local! {
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
}

/// What `work` gives, on a runtime of this thread.
pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| {
            let built = Builder::new_current_thread().build();
            built.expect("a runtime of one thread needs nothing of the system")
        });
        runtime.block_on(work)
    })
}

/// Shows `see` every entry of the blocks in `span`, in order.
pub(crate) fn for_each(
    meta: &Arc<SegmentMeta>,
    bytes: &Bytes,
    span: KeySpan,
    mut see: impl FnMut(&Entry<'_>),
) -> Result<()> {
    let source = SegmentSource::of_bytes(bytes.clone());
    let mut stream = SegmentStream::new(Arc::clone(meta), source, span, (0, u8::MAX));
    while let Some(block) = wait(stream.next_block())? {
        let mut block: BlockEntries = block;
        while let Some(entry) = block.next_entry()? {
            see(&entry);
        }
    }
    Ok(())
}

/// The entries of the blocks in `span`.
pub(crate) fn read(meta: &Arc<SegmentMeta>, bytes: &Bytes, span: KeySpan) -> Result<Vec<Owned>> {
    let mut entries = Vec::new();
    for_each(meta, bytes, span, |entry| entries.push(Owned::of(entry)))?;
    Ok(entries)
}

//! From the parts of a snapshot to a store.

use std::sync::Arc;

use backend_core::chain::{Chain, KeySpan};
use backend_core::entry::Op;
use backend_core::lineage::Lineage;
use backend_core::segment::{Clip, SegmentRef, SegmentSource, SegmentStream};
use backend_core::ttl::seal;
use backend_core::{
    Error, ErrorKind, Generation, HashRange, Result, TaskPart, TaskRestore, TaskScope,
};

use crate::shared::Shared;
use crate::states::States;
use crate::store::MemoryStore;

/// Fills a store with what `restored` holds of the scope's range.
pub(crate) async fn restore(
    shared: Shared,
    scope: TaskScope,
    restored: TaskRestore,
) -> Result<MemoryStore> {
    check(&scope, &restored)?;
    let mut states = States::default();
    for part in &restored.parts {
        for descriptor in &part.states {
            states.restore(descriptor, &scope)?;
        }
    }
    let newest = restored
        .parts
        .iter()
        .map(|part| part.generation_max)
        .max()
        .unwrap_or_default();
    for part in &restored.parts {
        for segment in &part.segments {
            load(&mut states, &scope, &restored, segment, newest).await?;
        }
    }
    let policy = shared.options.chain.clone();
    let lineage = if restored.source.is_same(&shared.storage) {
        // A task that owns less than it restores refers to no more than it owns.
        let owned: Vec<TaskPart> = restored
            .parts
            .iter()
            .map(|part| clipped(part, scope.range))
            .collect();
        let chain = Chain::from_parts(&owned);
        Lineage::restored(chain, newest, restored.snapshot, policy)
    } else {
        // The segments lie elsewhere, so the first snapshot here writes everything.
        Lineage::empty(policy)
    };
    Ok(MemoryStore::with(shared, scope, states, lineage, newest))
}

fn check(scope: &TaskScope, restored: &TaskRestore) -> Result<()> {
    let differs = |what: &'static str, stored: String, asked: String| {
        Err(Error::new(
            ErrorKind::Mismatch,
            "a task does not fit the snapshot that it restores",
        )
        .with("what", what)
        .with("operator", &scope.operator)
        .with("snapshot", restored.snapshot)
        .expected_got(stored, asked))
    };
    if restored.hash != scope.hasher.id() {
        return differs(
            "key hash",
            restored.hash.to_string(),
            scope.hasher.id().to_string(),
        );
    }
    if restored.key_codec != scope.key_codec {
        return differs(
            "key codec",
            restored.key_codec.to_string(),
            scope.key_codec.to_string(),
        );
    }
    if !restored.range.covers(scope.range) {
        return differs("range", restored.range.to_string(), scope.range.to_string());
    }
    Ok(())
}

fn clipped(part: &TaskPart, range: HashRange) -> TaskPart {
    let segments = part.segments.iter().filter_map(|segment| {
        let clip = segment.clip.intersect(range)?;
        Some(SegmentRef {
            clip,
            ..segment.clone()
        })
    });
    TaskPart {
        segments: segments.collect(),
        ..part.clone()
    }
}

async fn load(
    states: &mut States,
    scope: &TaskScope,
    restored: &TaskRestore,
    segment: &SegmentRef,
    newest: Generation,
) -> Result<()> {
    let Some(range) = segment.clip.intersect(scope.range) else {
        return Ok(());
    };
    let clip = Clip::new(range, scope.hasher);
    let source = SegmentSource::new(&segment.meta, &restored.source);
    let mut stream = SegmentStream::new(
        Arc::clone(&segment.meta),
        source.clone(),
        KeySpan::default(),
        clip.shards(),
    );
    let mut sealed = Vec::new();
    while let Some(mut block) = stream.next_block().await? {
        while let Some(mut entry) = block.next_entry().map_err(|e| source.place_error(e))? {
            if !clip.admits(&entry.key).map_err(|e| source.place_error(e))? {
                continue;
            }
            if entry
                .expires_ms
                .is_some_and(|expiry| expiry <= restored.ttl_clock_ms)
            {
                (entry.op, entry.value, entry.expires_ms) = (Op::Delete, &[], None);
            }
            let state = states.by_uid(entry.key.state).ok_or_else(|| {
                source.place_error(
                    Error::new(
                        ErrorKind::Corrupt,
                        "a segment holds a state that its snapshot does not know",
                    )
                    .with("state_uid", format_args!("{:#010x}", entry.key.state.0)),
                )
            })?;
            if state.descriptor.ttl.is_some() && entry.op == Op::Put {
                sealed.clear();
                seal(entry.expires_ms, entry.value, &mut sealed);
                entry.value = &sealed;
            }
            state.load(&entry, newest)?;
        }
    }
    Ok(())
}

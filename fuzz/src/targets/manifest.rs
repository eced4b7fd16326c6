//! Manifests: decoded, they encode to the same bytes; by sections they say the same; and what
//! follows from them is computed without overflow.

use std::sync::Arc;

use backend_core::chain::{Chain, ChainPolicy};
use backend_core::manifest::limits::{EXPANSION_BYTES_FREE, EXPANSION_FACTOR_MAX};
use backend_core::manifest::{Footer, MANIFEST_END_BYTES, Manifest, ManifestPart, Position, Span};
use backend_core::names::ObjectName;
use backend_core::segment::SegmentLocation;
use backend_core::{Epoch, Result, SnapshotId};
use bytes::Bytes;

use crate::cursor::Cursor;
use crate::memory::bounded;
use crate::targets::check_refusal;
use crate::targets::segment::read_whole;

/// `docs/format.md`, 'Memory of a reader'.
const BYTES_PER_BYTE: usize = 8;
const HEADER_BYTES: usize = 32;

pub(super) fn check(bytes: &[u8]) -> bool {
    let position = position(bytes);
    let object = position
        .unwrap_or(Position::new(Epoch(1), SnapshotId(1)))
        .object();
    let expansion = EXPANSION_FACTOR_MAX as usize * bytes.len() + EXPANSION_BYTES_FREE as usize;
    let bytes_max = BYTES_PER_BYTE * bytes.len() + expansion;
    let whole = bounded("a manifest", bytes_max, || Manifest::decode(object, bytes));
    let sections = bounded("a manifest's sections", bytes_max, || {
        by_sections(object, bytes)
    });
    match whole {
        Ok((manifest, digest)) => {
            let encoded = manifest.encode().expect("what was decoded encodes again");
            assert_eq!(encoded.bytes, bytes, "a manifest has two forms");
            assert_eq!(encoded.digest, digest);
            let sections = sections.expect("what decodes as a whole decodes by sections");
            assert_eq!(sections, manifest);
            assert!(!manifest.to_string().is_empty());
            check_chains(&manifest);
            // A restored task begins with the generation after all that it restores.
            for part in &manifest.parts {
                let _ = part.task.generation_max.next();
            }
            check_inline(&manifest);
            true
        }
        Err(e) => {
            check_refusal(&e);
            false
        }
    }
}

/// Where the manifest says that it lies: a store asks for what it will get.
fn position(bytes: &[u8]) -> Option<Position> {
    let mut fields = Cursor::new(bytes);
    fields.take(HEADER_BYTES)?;
    fields.blob()?;
    let (epoch, id) = (fields.u64()?, fields.u64()?);
    Some(Position::new(Epoch(epoch), SnapshotId(id)))
}

/// Reads the end and then each section by its range, as a store does.
fn by_sections(object: ObjectName, bytes: &[u8]) -> Result<Manifest> {
    let end = bytes.len().saturating_sub(MANIFEST_END_BYTES as usize);
    let footer = Footer::decode(&bytes[end..], bytes.len() as u64)?;
    let section = |span: &Span| {
        let range = span.range();
        &bytes[range.start as usize..range.end as usize]
    };
    let meta = footer.decode_meta(object, section(&footer.meta))?;
    let operators = footer.decode_operators(section(&footer.operators))?;
    let index = footer.decode_index(section(&footer.index))?;
    let parts = index
        .iter()
        .map(|entry| footer.decode_part(entry, &operators, section(&entry.span)))
        .collect::<Result<Vec<ManifestPart>>>()?;
    Ok(Manifest {
        meta,
        operators,
        parts,
    })
}

/// A restored task makes a chain of what manifests say, and plans merges over it.
fn check_chains(manifest: &Manifest) {
    let policy = ChainPolicy::default();
    for operator in &manifest.operators {
        let parts: Vec<_> = manifest
            .parts_of(&operator.id)
            .map(|part| &*part.task)
            .collect();
        let tasks = parts.iter().map(|part| (vec![*part], part.range));
        let all = (parts.clone(), backend_core::HashRange::ALL);
        for (parts, range) in tasks.chain([all]) {
            let mut chain = Chain::from_parts(parts);
            let _ = (
                chain.next_run(),
                policy.advise(&chain),
                policy.is_overdue(&chain),
            );
            if let Some(plan) = policy.plan(&chain, range) {
                assert!(!plan.inputs.is_empty(), "a merge of nothing is planned");
                let _ = plan.input_bytes();
                assert!(
                    chain.replace(&plan, &[]),
                    "a plan does not fit its own chain"
                );
            }
        }
    }
}

/// Inline segments are read from the manifest alone.
fn check_inline(manifest: &Manifest) {
    let parts = manifest.parts.iter().flat_map(|part| &part.task.segments);
    for segment in parts {
        if let SegmentLocation::Inline(bytes) = &segment.meta.location {
            let meta = Arc::clone(&segment.meta);
            let bytes: Bytes = bytes.clone();
            if let Err(e) = read_whole(&meta, &bytes) {
                check_refusal(&e);
            }
        }
    }
}

//! How large a snapshot is.

use std::collections::BTreeMap;

use stateline::{Digest, Manifest};

/// The segments of a snapshot, each once: after a rescale several tasks share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
}

impl Size {
    pub(crate) fn of(manifest: &Manifest) -> Self {
        let segments: BTreeMap<Digest, u64> = manifest
            .parts
            .iter()
            .flat_map(|part| &part.task.segments)
            .map(|segment| (segment.meta.digest, segment.meta.bytes))
            .collect();
        Self {
            segments: segments.len() as u64,
            bytes: segments.values().sum(),
        }
    }
}

//! What a snapshot may refer to: the objects of its base, and those written for later ids up to
//! its own. A coordinator declines anything else.
//!
//! A segment can be durable and yet in no confirmed manifest, when its snapshot was subsumed by
//! one that began before the segment was there. A chain that holds such a segment is right, and
//! no use to a snapshot whose base is the newer one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::contract::Trigger;
use crate::ids::SnapshotId;
use crate::names::ObjectName;
use crate::segment::{SegmentLocation, SegmentRef};

/// Snapshots whose parts are remembered. A base that is forgotten costs a full snapshot.
const PARTS_MAX: usize = 64;

/// The objects of this task's part of each snapshot that may be, or may become, a base.
#[derive(Debug, Default)]
pub(super) struct Parts(BTreeMap<SnapshotId, Arc<BTreeSet<ObjectName>>>);

/// What one snapshot may refer to.
#[derive(Clone, Debug)]
pub(super) struct Permitted {
    id: SnapshotId,
    /// `None` where no coordinator checks.
    base: Option<SnapshotId>,
    /// The objects of the base's part.
    of_base: Arc<BTreeSet<ObjectName>>,
}

impl Parts {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Notes that this task's part of snapshot `id` is durable and consists of `segments`.
    pub(super) fn note<'a>(
        &mut self,
        id: SnapshotId,
        segments: impl Iterator<Item = &'a SegmentRef>,
    ) {
        let objects = segments.filter_map(|segment| segment.meta.location.object());
        self.0.insert(id, Arc::new(objects.collect()));
        if self.0.len() > PARTS_MAX {
            // The first is the base of the last trigger, and the base of the next one unless a
            // snapshot is confirmed before.
            let second = self.0.keys().nth(1).copied();
            second.and_then(|id| self.0.remove(&id));
        }
    }

    /// What the snapshot of `trigger` may refer to. Parts older than its base are forgotten,
    /// because bases do not go back.
    pub(super) fn permitted(&mut self, trigger: &Trigger) -> Permitted {
        if let Some(base) = trigger.base {
            self.0 = self.0.split_off(&base);
        }
        let of_base = trigger.base.and_then(|base| self.0.get(&base).cloned());
        Permitted {
            id: trigger.id,
            base: trigger.base,
            of_base: of_base.unwrap_or_default(),
        }
    }
}

impl Permitted {
    /// The snapshot that asks.
    pub(super) fn id(&self) -> SnapshotId {
        self.id
    }

    /// Whether the snapshot may refer to all of `segments`.
    pub(super) fn covers(&self, segments: &[SegmentRef]) -> bool {
        let Some(base) = self.base else {
            return true;
        };
        segments.iter().all(|segment| {
            let written_for = match &segment.meta.location {
                SegmentLocation::Inline(_) => return true,
                SegmentLocation::Object(name) => name.snapshot,
                SegmentLocation::Packed { name, .. } => name.snapshot,
            };
            let is_new = base < written_for && written_for <= self.id;
            let object = segment.meta.location.object();
            is_new || object.is_some_and(|object| self.of_base.contains(&object))
        })
    }
}

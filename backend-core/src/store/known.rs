//! What collections have read of manifests, which never change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt};

use crate::error::Result;
use crate::manifest::Position;
use crate::manifest::limits::MANIFEST_BYTES_MAX;
use crate::names::ObjectName;
use crate::store::load::decode;
use crate::store::protocol::{Candidate, ObjectSet};
use crate::store::remote::Remote;

/// Manifests that are read at a time.
pub(super) const READS_AT_ONCE: usize = 8;

/// What was read of the manifests that are kept, so that the next collection asks for new ones
/// only. Whether they are still there it has to see for itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Of each snapshot that was live.
    pub(super) heads: BTreeMap<Position, Candidate>,
    /// The objects that each kept snapshot names.
    objects: BTreeMap<Position, ObjectSet>,
}

impl Known {
    /// The objects of the snapshots at `positions`; `on_missing` says whether one may be gone.
    /// All others are forgotten.
    pub(super) async fn objects_of(
        &mut self,
        remote: &Remote,
        positions: &BTreeSet<Position>,
        on_missing: impl AsyncFn(Position) -> Result<()>,
    ) -> Result<BTreeSet<ObjectName>> {
        self.objects.retain(|p, _| positions.contains(p));
        let unread: Vec<_> = positions
            .iter()
            .filter(|p| !self.objects.contains_key(p))
            .copied()
            .collect();
        let mut read = stream::iter(unread)
            .map(|position| async move {
                let object = position.object();
                let bytes = remote.get(object, MANIFEST_BYTES_MAX).await?;
                let manifest = bytes.map(|bytes| decode(&remote.job, object, &bytes));
                let objects = manifest.transpose()?.map(|(m, _)| Arc::new(m.objects()));
                Ok((position, objects))
            })
            .buffered(READS_AT_ONCE);
        while let Some(outcome) = read.next().await {
            match outcome? {
                (position, Some(objects)) => {
                    self.objects.insert(position, objects);
                }
                (position, None) => on_missing(position).await?,
            }
        }
        Ok(self
            .objects
            .values()
            .flat_map(|o| o.iter())
            .copied()
            .collect())
    }
}

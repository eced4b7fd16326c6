//! The deletions of one collection, or their count.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::manifest::Position;
use crate::names::{Folder, ObjectName};
use crate::storage::Listed;
use crate::store::collect_report::{CollectOptions, CollectReport};
use crate::store::known::Known;
use crate::store::planned::{Planned, gone};
use crate::store::protocol::Sweep;
use crate::store::remote::Remote;

/// What names no snapshot is left alone for so long: a probe, or a pin that is being made. Should
/// a clock be wrong, who made it is told that the store lost it, and makes another.
const UNNAMED_MS_MIN: u64 = 24 * 60 * 60 * 1_000;

pub(super) struct Sweeping<'a> {
    remote: &'a Remote,
    options: &'a CollectOptions,
    report: &'a mut CollectReport,
    known: &'a mut Known,
    batch: Vec<ObjectName>,
}

impl<'a> Sweeping<'a> {
    /// Deletes, or only counts if `report` is dry.
    pub(super) fn new(
        remote: &'a Remote,
        options: &'a CollectOptions,
        report: &'a mut CollectReport,
        known: &'a mut Known,
    ) -> Self {
        Self {
            remote,
            options,
            report,
            known,
            batch: Vec::new(),
        }
    }

    pub(super) async fn sweep(mut self, planned: &Planned, sweep: &Sweep) -> Result<()> {
        let manifests = self.remote.list(Folder::Snapshots).await?;
        let there = manifests.iter().filter_map(|object| match object.name {
            ObjectName::Manifest(epoch, id) => Some(Position::new(epoch, id)),
            _ => None,
        });
        let named = self.named_objects(planned, sweep, &there.collect()).await?;
        if !self.report.is_dry {
            self.batch.extend(&planned.superseded);
            self.flush().await?;
        }
        for object in manifests {
            if let ObjectName::Manifest(epoch, id) = object.name
                && sweep.dooms_manifest(Position::new(epoch, id))
                && self.doom(object.name, object.bytes).await?
            {
                self.report.manifests += 1;
            }
        }
        // No manifest may outlive what it names, unless it is condemned.
        self.flush().await?;
        for folder in [Folder::Segments, Folder::Parts] {
            let mut listed = self.remote.listed(folder);
            while let Some(listed) = listed.recv().await {
                match listed? {
                    Listed::Object(object) => {
                        if sweep.dooms_object(&object.name, &named)
                            && self.doom(object.name, object.bytes).await?
                        {
                            self.report.objects += 1;
                        }
                    }
                    // Nothing refers to it, and it may be somebody's.
                    Listed::Stranger(name, _) => self.report.add_stranger(name),
                }
            }
            self.flush().await?;
        }
        if self.report.is_complete {
            self.tidy_staged(sweep, named).await?;
            self.tidy_pins(planned, sweep).await?;
            self.tidy_probes().await?;
        }
        Ok(())
    }

    /// The objects of every snapshot that is kept, if those are `there`.
    async fn named_objects(
        &mut self,
        planned: &Planned,
        sweep: &Sweep,
        there: &BTreeSet<Position>,
    ) -> Result<BTreeSet<ObjectName>> {
        let on_missing = async |position| {
            // Whoever pinned it came too late, and was told so.
            if planned.kept.contains_key(&position) {
                return Err(gone(self.remote, position).await);
            }
            Ok(())
        };
        let mut kept = BTreeSet::new();
        for position in sweep.kept() {
            if there.contains(&position) {
                kept.insert(position);
            } else {
                on_missing(position).await?;
            }
        }
        self.known.objects_of(self.remote, &kept, on_missing).await
    }

    /// Notes that an object goes, unless enough have gone.
    async fn doom(&mut self, object: ObjectName, bytes: u64) -> Result<bool> {
        let done = self.report.manifests + self.report.objects;
        if self.options.deletes_max.is_some_and(|max| done >= max) {
            self.report.is_complete = false;
            return Ok(false);
        }
        self.report.bytes += bytes;
        self.batch.push(object);
        if self.batch.len() >= self.options.batch.get() {
            self.flush().await?;
        }
        Ok(true)
    }

    async fn flush(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() || self.report.is_dry {
            return Ok(());
        }
        let count = batch.len() as u32;
        self.remote.delete_all(batch).await?;
        if let Some(pause) = self.options.pause_after(count) {
            self.remote.sleep(pause).await?;
        }
        Ok(())
    }

    /// Removes what killed writers did not finish.
    async fn tidy_staged(&mut self, sweep: &Sweep, named: BTreeSet<ObjectName>) -> Result<()> {
        let rule = sweep.clone();
        let is_dry = self.report.is_dry;
        let now_ms = self.remote.env.now_ms();
        let staged = self.remote.blocking(move |storage| {
            let (mut files, mut bytes) = (0, 0);
            for folder in Folder::ALL {
                for file in storage.staged(folder)? {
                    let is_unnamed =
                        matches!(file.object, ObjectName::Pin(_) | ObjectName::Probe(_));
                    let is_old = now_ms.saturating_sub(file.modified_ms) > UNNAMED_MS_MIN;
                    let is_doomed = if is_unnamed {
                        is_old
                    } else {
                        rule.dooms_object(&file.object, &named) || rule.is_past(&file.object)
                    };
                    if is_doomed && (is_dry || file.delete()?) {
                        files += 1;
                        bytes += file.bytes;
                    }
                }
            }
            Ok((files, bytes))
        });
        let (objects, bytes) = staged.await?;
        self.report.objects += objects;
        self.report.bytes += bytes;
        Ok(())
    }

    /// Removes pins that hold nothing, and claims of savepoints that are gone.
    async fn tidy_pins(&mut self, planned: &Planned, sweep: &Sweep) -> Result<()> {
        self.batch.extend(&planned.idle_pins);
        for position in self.remote.claimed_savepoints().await? {
            if sweep.dooms_manifest(position) {
                let Position { epoch, id } = position;
                self.batch.push(ObjectName::Claimed(epoch, id));
            }
        }
        self.flush().await
    }

    /// Removes what killed openers of the store left.
    async fn tidy_probes(&mut self) -> Result<()> {
        let now_ms = self.remote.env.now_ms();
        for listed in self.remote.list_all(Folder::Probe).await? {
            if let Listed::Object(object) = listed
                && now_ms.saturating_sub(object.modified_ms) > UNNAMED_MS_MIN
            {
                self.batch.push(object.name);
            }
        }
        self.flush().await
    }
}

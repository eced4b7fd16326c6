//! Carrying out a collection: what no kept snapshot needs is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use tokio::sync::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::UniqueId;
use crate::manifest::limits::{MANIFEST_BYTES_MAX, RECORD_BYTES_MAX};
use crate::manifest::{Condemn, Position};
use crate::names::{Folder, ObjectName};
use crate::store::collect_report::{CollectOptions, CollectReport};
use crate::store::load::{Listing, decode, missing};
use crate::store::pinning::Pins;
use crate::store::protocol::{
    CollectStep, Collecting, Holds, KeepReason, Others, Retention, Sweep, fenced, is_passed_over,
    retain,
};
use crate::store::publish::{create, in_doubt};
use crate::store::remote::{Remote, Tries};

/// Manifests that are read at a time.
const READS_AT_ONCE: usize = 8;

/// One collection, begun by [`crate::store::Coordinator::collection`]. Those of one coordinator
/// wait for each other.
///
/// It can run beside snapshots and commits. What it has decided stays right however long it
/// takes, even if the coordinator is fenced meanwhile; it can be dropped or killed anywhere, and
/// the next collection does what is left.
#[derive(Debug)]
pub struct Collection {
    remote: Remote,
    index: u64,
    holds: Holds,
    retention: Retention,
    options: CollectOptions,
    /// Collections of one coordinator take turns.
    turn: Arc<Mutex<()>>,
    planned: Option<Planned>,
}

/// What a collection knows once it has looked around.
#[derive(Debug)]
struct Planned {
    collecting: Collecting,
    kept: BTreeMap<Position, KeepReason>,
    condemned: Vec<Position>,
    /// Records that the new one makes unnecessary.
    superseded: Vec<ObjectName>,
    /// Pins that hold no more.
    expired: Vec<ObjectName>,
    pinned: BTreeSet<Position>,
}

impl Collection {
    pub(super) fn new(
        remote: Remote,
        index: u64,
        holds: Holds,
        retention: Retention,
        options: CollectOptions,
        turn: Arc<Mutex<()>>,
    ) -> Self {
        Self {
            remote,
            index,
            holds,
            retention,
            options,
            turn,
            planned: None,
        }
    }

    /// Says what would be deleted, and changes nothing.
    ///
    /// # Errors
    /// As [`Collection::run`].
    pub async fn dry_run(&self) -> Result<CollectReport> {
        let planned = self.plan().await?;
        let record = planned.collecting.record();
        let sweep = Sweep::new(record, self.holds.floor, &planned.pinned);
        let mut report = CollectReport::new(&planned.kept, &planned.condemned, true);
        Sweeping::new(&self.remote, &self.options, &mut report, true)
            .sweep(&planned, &sweep)
            .await?;
        Ok(report)
    }

    /// Collects. After an error it can be called again and goes on with the same decision.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] if a newer coordinator leads: nothing was deleted.
    /// [`ErrorKind::InDoubt`] and [`ErrorKind::Transient`] if the store gives no clear answer:
    /// call again. [`ErrorKind::Declined`] if a later collection ran before it was called again:
    /// nothing is left to do. [`ErrorKind::Corrupt`], [`ErrorKind::NotFound`] and others if a manifest that
    /// is kept, a record or a pin cannot be read: nothing was deleted. A stranger among the
    /// objects of state stops the collection where it is found.
    pub async fn run(&mut self) -> Result<CollectReport> {
        let turn = Arc::clone(&self.turn);
        let _turn = turn.lock().await;
        match self.run_now().await {
            Err(e) => Err(self.remote.overtaken(self.holds.confirmed.epoch, e).await),
            report => report,
        }
    }

    async fn run_now(&mut self) -> Result<CollectReport> {
        if self.planned.is_none() {
            self.planned = Some(self.plan().await?);
        }
        let planned = self.planned.as_mut().expect("it was planned just now");
        let sweep = condemn(&self.remote, planned).await?;
        let mut report = CollectReport::new(&planned.kept, &planned.condemned, false);
        Sweeping::new(&self.remote, &self.options, &mut report, false)
            .sweep(planned, &sweep)
            .await?;
        Ok(report)
    }

    async fn plan(&self) -> Result<Planned> {
        let remote = &self.remote;
        let listing = remote.listing().await?;
        let live = listing
            .manifests
            .iter()
            .filter(|(p, _)| listing.is_live(*p));
        let mut heads = stream::iter(live)
            .map(|(position, bytes)| async move {
                (*position, remote.candidate(*position, *bytes).await)
            })
            .buffered(READS_AT_ONCE);
        let (mut candidates, mut damaged) = (Vec::new(), Vec::new());
        while let Some((position, head)) = heads.next().await {
            match head {
                Ok(candidate) => candidates.push(candidate),
                Err(e) if e.kind() == ErrorKind::Corrupt => damaged.push((position, e)),
                Err(e) => return Err(e),
            }
        }
        // A damaged one that the job went past holds nothing up; any other may be needed.
        for (position, e) in damaged {
            if !is_passed_over(position, &candidates) {
                return Err(e);
            }
        }
        let pins = Pins::read(remote).await?;
        let others = Others {
            pinned: pins.held,
            claimed: remote.claimed_savepoints().await?,
        };
        let now_ms = remote.env.now_ms();
        let kept = retain(
            &self.holds,
            &candidates,
            &listing.condemned,
            &self.retention,
            &others,
            now_ms,
        );
        let below = self.holds.confirmed;
        if !kept.contains_key(&below) {
            return Err(gone(remote, below).await);
        }
        let record = Condemn {
            job: remote.job.clone(),
            epoch: below.epoch,
            index: self.index,
            unique: UniqueId(remote.env.unique()),
            below,
            except: kept.keys().filter(|p| **p < below).copied().collect(),
        };
        let condemned = candidates.iter().map(|c| c.position);
        Ok(Planned {
            condemned: condemned.filter(|p| record.condemns(*p)).collect(),
            superseded: superseded_by(&record, &listing),
            collecting: Collecting::new(record, &self.holds),
            kept,
            expired: pins.expired,
            pinned: others.pinned,
        })
    }
}

/// The records that `record` makes unnecessary: it condemns all that they do.
fn superseded_by(record: &Condemn, listing: &Listing) -> Vec<ObjectName> {
    let older = listing.condemned.iter().filter(|older| {
        older.unique != record.unique
            && older.below <= record.below
            && !record.except.iter().any(|p| older.condemns(*p))
    });
    older
        .map(|older| ObjectName::Collect(older.epoch, older.index))
        .collect()
}

/// Writes the record, looks for a successor, and lists pins.
async fn condemn(remote: &Remote, planned: &mut Planned) -> Result<Sweep> {
    let collecting = &mut planned.collecting;
    let (epoch, index) = (collecting.record().epoch, collecting.record().index);
    let object = ObjectName::Collect(epoch, index);
    let mut tries = Tries::default();
    loop {
        match collecting.step() {
            CollectStep::Create => {
                let bytes = collecting.record().encode()?;
                let answer = create(remote, object, bytes, &mut tries).await?;
                collecting.on_create(answer);
            }
            CollectStep::ReadBack => {
                let bytes = remote.get(object, RECORD_BYTES_MAX).await;
                let found = match bytes.map_err(|e| in_doubt(object, e))? {
                    Some(bytes) => Some(Condemn::decode(object, &remote.job, &bytes)?.unique),
                    None => None,
                };
                collecting.on_read_back(found);
            }
            CollectStep::Look(next) => {
                let claim = remote.size(ObjectName::Epoch(next)).await?;
                collecting.on_look(claim.is_some());
            }
            CollectStep::ListPins => {
                collecting.on_pins(Pins::read(remote).await?.held);
            }
            CollectStep::Sweep(sweep) => return Ok(sweep),
            CollectStep::Fenced(by) => return Err(fenced(epoch, by)),
            CollectStep::Taken(unique) => {
                return Err(Error::new(
                    ErrorKind::Fenced,
                    "another coordinator of the same epoch collects",
                )
                .with("object", object)
                .with("fenced_by", unique));
            }
        }
    }
}

/// The deletions of one collection, or their count.
struct Sweeping<'a> {
    remote: &'a Remote,
    options: &'a CollectOptions,
    report: &'a mut CollectReport,
    is_dry: bool,
    batch: Vec<ObjectName>,
}

impl<'a> Sweeping<'a> {
    fn new(
        remote: &'a Remote,
        options: &'a CollectOptions,
        report: &'a mut CollectReport,
        is_dry: bool,
    ) -> Self {
        Self {
            remote,
            options,
            report,
            is_dry,
            batch: Vec::new(),
        }
    }

    async fn sweep(mut self, planned: &Planned, sweep: &Sweep) -> Result<()> {
        let named = named_objects(self.remote, planned, sweep).await?;
        if !self.is_dry {
            self.batch.extend(&planned.superseded);
            self.flush().await?;
        }
        for object in self.remote.list(Folder::Snapshots).await? {
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
            while let Some(object) = listed.recv().await {
                let object = object?;
                if sweep.dooms_object(&object.name, &named)
                    && self.doom(object.name, object.bytes).await?
                {
                    self.report.objects += 1;
                }
            }
            self.flush().await?;
        }
        if !self.is_dry && self.report.is_complete {
            self.tidy(planned, sweep, named).await?;
        }
        Ok(())
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
        if batch.is_empty() || self.is_dry {
            return Ok(());
        }
        let count = batch.len() as u32;
        self.remote.delete_all(batch).await?;
        if let Some(pause) = self.options.pause_after(count) {
            self.remote.sleep(pause).await?;
        }
        Ok(())
    }

    /// Removes pins that have expired, claims of savepoints that are gone, and what killed writers
    /// did not finish.
    async fn tidy(
        &mut self,
        planned: &Planned,
        sweep: &Sweep,
        named: BTreeSet<ObjectName>,
    ) -> Result<()> {
        let rule = sweep.clone();
        let staged = self.remote.blocking(move |storage| {
            let dooms = |object: &ObjectName| rule.dooms_object(object, &named);
            let segments = storage.delete_staged(Folder::Segments, dooms)?;
            let parts = storage.delete_staged(Folder::Parts, dooms)?;
            Ok((segments.0 + parts.0, segments.1 + parts.1))
        });
        let (objects, bytes) = staged.await?;
        self.report.objects += objects;
        self.report.bytes += bytes;
        self.batch.extend(&planned.expired);
        for position in self.remote.claimed_savepoints().await? {
            if sweep.dooms_manifest(position) {
                let Position { epoch, id } = position;
                self.batch.push(ObjectName::Claimed(epoch, id));
            }
        }
        self.flush().await
    }
}

/// The objects of every snapshot that is kept.
async fn named_objects(
    remote: &Remote,
    planned: &Planned,
    sweep: &Sweep,
) -> Result<BTreeSet<ObjectName>> {
    let objects_of = |position: Position| async move {
        let object = position.object();
        match remote.get(object, MANIFEST_BYTES_MAX).await? {
            Some(bytes) => Ok(decode(&remote.job, object, &bytes)?.0.objects()),
            // Whoever pinned it came too late, and was told so.
            None if !planned.kept.contains_key(&position) => Ok(BTreeSet::new()),
            None => Err(gone(remote, position).await),
        }
    };
    let mut kept = stream::iter(sweep.kept())
        .map(objects_of)
        .buffered(READS_AT_ONCE);
    let mut named = BTreeSet::new();
    while let Some(objects) = kept.next().await {
        named.append(&mut objects?);
    }
    Ok(named)
}

/// Why a manifest that is kept is gone.
async fn gone(remote: &Remote, position: Position) -> Error {
    match remote.condemned().await {
        Ok(records) if records.iter().any(|record| record.condemns(position)) => Error::new(
            ErrorKind::Declined,
            "a later collection has deleted what this one would keep",
        )
        .with("snapshot", position),
        Ok(_) => missing(position.object()),
        Err(e) => e,
    }
}

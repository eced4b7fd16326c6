//! Carrying out a collection: what no kept snapshot needs is deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use tokio::sync::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Epoch, UniqueId};
use crate::manifest::limits::RECORD_BYTES_MAX;
use crate::manifest::{Condemn, Position};
use crate::names::ObjectName;
use crate::store::collect_report::{CollectOptions, CollectReport};
use crate::store::known::{Known, READS_AT_ONCE};
use crate::store::load::Listing;
use crate::store::pinning::Pins;
use crate::store::planned::{Planned, gone};
use crate::store::protocol::{
    Candidate, CollectStep, Collecting, Holds, Others, Retention, Sweep, fenced, is_passed_over,
    retain,
};
use crate::store::publish::{create, in_doubt};
use crate::store::remote::{Remote, Tries};
use crate::store::sweeping::Sweeping;

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
    /// Collections of one coordinator take turns, and hand on what they have read.
    turn: Arc<Mutex<Known>>,
    planned: Option<Planned>,
}

impl Collection {
    pub(super) fn new(
        remote: Remote,
        index: u64,
        holds: Holds,
        retention: Retention,
        options: CollectOptions,
        turn: Arc<Mutex<Known>>,
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
        // It may be asked for while another collection runs.
        let mut known = match self.turn.try_lock() {
            Ok(known) => known.clone(),
            Err(_) => Known::default(),
        };
        let planned = self.plan(&mut known).await?;
        let record = planned.collecting.record();
        let sweep = Sweep::new(record, self.holds.floor, &planned.pinned);
        let mut report = CollectReport::new(&planned.kept, &planned.condemned, true);
        Sweeping::new(&self.remote, &self.options, &mut report, &mut known)
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
    /// is kept, a record or a pin cannot be read, or a stranger lies among them: nothing was
    /// deleted.
    pub async fn run(&mut self) -> Result<CollectReport> {
        let turn = Arc::clone(&self.turn);
        let mut known = turn.lock().await;
        match self.run_now(&mut known).await {
            Err(e) => Err(self.remote.overtaken(self.holds.confirmed.epoch, e).await),
            report => report,
        }
    }

    async fn run_now(&mut self, known: &mut Known) -> Result<CollectReport> {
        if self.planned.is_none() {
            self.planned = Some(self.plan(known).await?);
        }
        let planned = self.planned.as_mut().expect("it was planned just now");
        let sweep = condemn(&self.remote, planned).await?;
        let mut report = CollectReport::new(&planned.kept, &planned.condemned, false);
        Sweeping::new(&self.remote, &self.options, &mut report, known)
            .sweep(planned, &sweep)
            .await?;
        Ok(report)
    }

    async fn plan(&self, known: &mut Known) -> Result<Planned> {
        let remote = &self.remote;
        let listing = remote.listing().await?;
        let candidates = candidates(remote, &listing, known).await?;
        let pins = Pins::read(remote).await?;
        let others = Others {
            pinned: pins.held.clone(),
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
            idle_pins: idle_pins(&pins, below, &listing),
            pinned: others.pinned,
        })
    }
}

fn idle_pins(pins: &Pins, below: Position, listing: &Listing) -> Vec<ObjectName> {
    let there: BTreeSet<_> = listing.manifests.iter().map(|(p, _)| *p).collect();
    let gone = pins
        .all
        .iter()
        .filter(|(_, position)| *position < below && !there.contains(position))
        .map(|(pin, _)| *pin);
    pins.expired.iter().copied().chain(gone).collect()
}

/// What there is to choose from.
async fn candidates(
    remote: &Remote,
    listing: &Listing,
    known: &mut Known,
) -> Result<Vec<Candidate>> {
    let live = listing
        .manifests
        .iter()
        .filter(|(p, _)| listing.is_live(*p));
    let heads = &known.heads;
    let mut heads = stream::iter(live)
        .map(|(position, bytes)| async move {
            let head = match heads.get(position) {
                Some(candidate) => Ok(*candidate),
                None => remote.candidate(*position, *bytes).await,
            };
            (*position, head)
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
    drop(heads);
    known.heads = candidates.iter().map(|c| (c.position, *c)).collect();
    // A damaged one that the job went past holds nothing up; any other may be needed.
    for (position, e) in damaged {
        if !is_passed_over(position, &candidates) {
            return Err(e);
        }
    }
    Ok(candidates)
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
    // The look that counts comes behind the record. This one spares the successor a record of
    // somebody who was overtaken long ago: it would narrow what old snapshots are kept.
    let next = Epoch(epoch.0 + 1);
    if remote.size(ObjectName::Epoch(next)).await?.is_some() {
        return Err(fenced(epoch, next));
    }
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

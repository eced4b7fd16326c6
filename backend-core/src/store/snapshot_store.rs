//! A job's snapshots in an object store.

use std::sync::Arc;

use crate::clock::SharedEnvironment;
use crate::error::{ErrorKind, Result};
use crate::ids::{Epoch, JobId, OperatorId, SnapshotId, TaskIndex};
use crate::manifest::{ManifestPart, Position, SnapshotKind};
use crate::runtime::IoRuntime;
use crate::storage::Storage;
use crate::store::collect::Collection;
use crate::store::collect_report::{CollectOptions, CollectReport};
use crate::store::coordinator::Coordinator;
use crate::store::options::StoreOptions;
use crate::store::probe::probe;
use crate::store::protocol::{Adopt, Holds, Retention, is_passed_over};
use crate::store::publish::claim_epoch;
use crate::store::remote::Remote;
use crate::store::snapshot::Snapshot;
use crate::store::summary::SnapshotSummary;

/// The snapshots of one job. Clones share the store and its threads.
///
/// All requests run on threads of its own, so its futures can be polled by any executor.
///
/// ```
/// use backend_core::clock::SystemEnvironment;
/// use backend_core::storage::Storage;
/// use backend_core::store::SnapshotStore;
/// use backend_core::{JobId, SnapshotMode};
///
/// # fn main() -> backend_core::Result<()> {
/// futures::executor::block_on(async {
///     let job = JobId::new("counts")?;
///     let store = SnapshotStore::open(Storage::memory(), job, SystemEnvironment::shared()).await?;
///     let mut coordinator = store.claim().await?;
///     let trigger = coordinator.trigger(SnapshotMode::Full)?;
///     // .. every task takes a snapshot for `trigger` and acknowledges it; here there is none.
///     let confirmed = coordinator.commit(trigger.id, Vec::new(), "offsets".into()).await?;
///     assert_eq!(confirmed.permit.position(), confirmed.snapshot.position());
///     assert_eq!(store.latest().await?.expect("it is there").engine(), "offsets");
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SnapshotStore {
    remote: Remote,
    /// Whether the store is known to do what claims and pins rest on.
    is_probed: bool,
}

impl SnapshotStore {
    /// The snapshots of `job` in `storage`, which must be the job's own directory.
    ///
    /// It tries out whether the store creates on condition and lists what it has created, under
    /// a name in `probe/` that it removes again.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] that says what the store did wrong; those of requests.
    pub async fn open(storage: Storage, job: JobId, env: SharedEnvironment) -> Result<Self> {
        Self::open_with(storage, job, env, StoreOptions::default()).await
    }

    /// [`SnapshotStore::open`] with other settings.
    ///
    /// # Errors
    /// Also [`crate::ErrorKind::Invalid`] for a setting that cannot be.
    pub async fn open_with(
        storage: Storage,
        job: JobId,
        env: SharedEnvironment,
        options: StoreOptions,
    ) -> Result<Self> {
        let remote = Remote::new(storage, job, env, options, None)?;
        Self {
            remote,
            is_probed: false,
        }
        .probed()
        .await
    }

    /// The snapshots of `job` in `storage`, for whoever only reads: the store is not tried out,
    /// so nothing is written, until something is to be.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Transient`] if the operating system gives no threads.
    pub fn open_to_read(storage: Storage, job: JobId, env: SharedEnvironment) -> Result<Self> {
        let remote = Remote::new(storage, job, env, StoreOptions::default(), None)?;
        Ok(Self {
            remote,
            is_probed: false,
        })
    }

    /// [`SnapshotStore::open_with`] on a runtime that is there already, instead of threads of
    /// its own.
    ///
    /// # Errors
    /// Those of [`SnapshotStore::open_with`].
    pub async fn open_on(
        runtime: IoRuntime,
        storage: Storage,
        job: JobId,
        env: SharedEnvironment,
        options: StoreOptions,
    ) -> Result<Self> {
        let remote = Remote::new(storage, job, env, options, Some(runtime))?;
        Self {
            remote,
            is_probed: false,
        }
        .probed()
        .await
    }

    /// This store, once it has been tried out.
    async fn probed(mut self) -> Result<Self> {
        self.check_probed().await?;
        self.is_probed = true;
        Ok(self)
    }

    /// Tries the store out unless that was done when it was opened.
    pub(super) async fn check_probed(&self) -> Result<()> {
        if self.is_probed {
            return Ok(());
        }
        probe(&self.remote).await
    }

    /// The job.
    pub fn job(&self) -> &JobId {
        &self.remote.job
    }

    /// Where it lies.
    pub fn storage(&self) -> &Storage {
        &self.remote.storage
    }

    /// Claims the next epoch, and adopts nothing yet.
    pub(crate) async fn claim_epoch(&self) -> Result<Epoch> {
        self.check_probed().await?;
        claim_epoch(&self.remote).await
    }

    /// Adopts a snapshot for `epoch`, which [`SnapshotStore::claim_epoch`] gave.
    pub(crate) async fn adopt(&self, epoch: Epoch, adopt: Adopt) -> Result<Coordinator> {
        Coordinator::adopt(self.remote.clone(), epoch, adopt).await
    }

    /// Where there are snapshots that are not condemned, ascending, without those that the job
    /// went past; whether the others can be read is not looked at.
    pub(crate) async fn live_positions(&self) -> Result<Vec<Position>> {
        let listing = self.remote.listing().await?;
        let live = listing
            .manifests
            .iter()
            .filter(|(p, _)| listing.is_live(*p));
        let (mut positions, mut candidates) = (Vec::new(), Vec::new());
        for (position, bytes) in live {
            positions.push(*position);
            match self.remote.candidate(*position, *bytes).await {
                Ok(candidate) => candidates.push(candidate),
                Err(e) if e.kind() == ErrorKind::Transient => return Err(e),
                Err(_) => {}
            }
        }
        positions.retain(|p| !is_passed_over(*p, &candidates));
        Ok(positions)
    }

    /// How it is asked, for whoever looks into it.
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Every snapshot that is not condemned, oldest first. One that a fenced coordinator put and
    /// could not confirm is among them.
    ///
    /// # Errors
    /// Those of [`SnapshotStore::load`]: one that cannot be read is not left out.
    pub async fn list(&self) -> Result<Vec<SnapshotSummary>> {
        self.remote.summaries().await
    }

    /// One snapshot.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] if there is no such manifest,
    /// [`crate::ErrorKind::Corrupt`] if it is damaged, [`crate::ErrorKind::Unsupported`] if its
    /// version is unknown, [`crate::ErrorKind::Mismatch`] if it is of another job or place.
    pub async fn load(&self, epoch: Epoch, id: SnapshotId) -> Result<Snapshot> {
        self.remote.load(Position::new(epoch, id)).await
    }

    /// The part of one task of a snapshot, without reading the others: for manifests of many
    /// tasks.
    ///
    /// # Errors
    /// As [`SnapshotStore::load`]; [`crate::ErrorKind::NotFound`] also if there is no such task.
    pub async fn load_part(
        &self,
        position: Position,
        operator: &OperatorId,
        task: TaskIndex,
    ) -> Result<ManifestPart> {
        self.remote.load_part(position, operator, task).await
    }

    /// The snapshot that a coordinator would adopt now; `None` only if there is no manifest
    /// that is not condemned.
    ///
    /// # Errors
    /// As [`SnapshotStore::load`]: a snapshot that cannot be read is not passed over.
    pub async fn latest(&self) -> Result<Option<Snapshot>> {
        self.remote.latest().await
    }

    /// Claims the next epoch, which fences every coordinator before, and adopts the newest
    /// snapshot.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Fenced`] if another coordinator claimed at the same time or later;
    /// [`crate::ErrorKind::InDoubt`] if the store gives no clear answer;
    /// those of [`SnapshotStore::load`] if the newest snapshot cannot be read.
    pub async fn claim(&self) -> Result<Coordinator> {
        let epoch = self.claim_epoch().await?;
        self.adopt(epoch, Adopt::Newest).await
    }

    /// [`SnapshotStore::claim`], but adopts the snapshot at `position`, by an operator's wish.
    /// What was committed after it is given up: the snapshots stay until the next collection,
    /// unless they are pinned, and nothing builds on them.
    ///
    /// # Errors
    /// Those of [`SnapshotStore::claim`]; [`crate::ErrorKind::NotFound`] if the snapshot is
    /// condemned or not there. The epoch is claimed then, and nothing was adopted.
    pub async fn claim_at(&self, position: Position) -> Result<Coordinator> {
        let epoch = self.claim_epoch().await?;
        self.adopt(epoch, Adopt::At(position)).await
    }

    /// What a collection under `retention` would delete now, if no snapshot is pending. It
    /// changes nothing and fences nobody. `None` for a job without a snapshot.
    ///
    /// # Errors
    /// Those of [`Collection::run`].
    pub async fn plan_collection(&self, retention: &Retention) -> Result<Option<CollectReport>> {
        let Some(latest) = self.latest().await? else {
            return Ok(None);
        };
        let confirmed = latest.position();
        // Increments pass over a savepoint: what it was triggered upon is their base.
        let base = latest.manifest().meta.base;
        let base = base.filter(|_| latest.kind() == SnapshotKind::Savepoint);
        let holds = Holds {
            confirmed,
            floor: base.unwrap_or(confirmed.id),
            bases: base
                .map(|id| Position::new(confirmed.epoch, id))
                .into_iter()
                .collect(),
        };
        let options = CollectOptions::default();
        let (remote, retention) = (self.remote.clone(), retention.clone());
        let plan = Collection::new(remote, 0, holds, retention, options, Arc::default());
        plan.dry_run().await.map(Some)
    }
}

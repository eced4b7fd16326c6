//! A job's snapshots in an object store.

use crate::clock::SharedEnvironment;
use crate::error::Result;
use crate::ids::{Epoch, JobId, OperatorId, SnapshotId, TaskIndex};
use crate::manifest::{ManifestPart, Position};
use crate::storage::Storage;
use crate::store::coordinator::Coordinator;
use crate::store::options::StoreOptions;
use crate::store::probe::probe;
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
        let remote = Remote::new(storage, job, env, options)?;
        probe(&remote).await?;
        Ok(Self { remote })
    }

    /// The job.
    pub fn job(&self) -> &JobId {
        &self.remote.job
    }

    /// Where it lies.
    pub fn storage(&self) -> &Storage {
        &self.remote.storage
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
        Coordinator::claim(self.remote.clone()).await
    }
}

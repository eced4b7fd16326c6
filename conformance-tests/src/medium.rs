//! An object store in memory that holds, fails and damages what it is told to.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backend_core::SnapshotId;
use backend_core::names::ObjectName;
use backend_core::storage::Storage;
use bytes::Bytes;
use futures::executor::block_on;
use futures::stream::{BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// How long a held put is waited for before the test is given up. No result depends on it.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where the objects of one test lie. Clones share them.
#[derive(Clone)]
pub struct Medium {
    shelf: Arc<Shelf>,
    storage: Storage,
}

#[derive(Debug, Default)]
struct Shelf {
    objects: InMemory,
    plan: Mutex<Plan>,
    /// A put has arrived at a gate.
    arrived: Condvar,
    /// A gate has been opened.
    opened: Notify,
}

#[derive(Debug, Default)]
struct Plan {
    held: BTreeSet<SnapshotId>,
    failing: BTreeSet<SnapshotId>,
    /// Snapshots with a put at the gate now.
    waiting: BTreeSet<SnapshotId>,
    fails_all: bool,
    bytes_put: u64,
}

impl Medium {
    /// An empty medium on which everything succeeds.
    pub fn new() -> Self {
        let shelf = Arc::new(Shelf::default());
        let storage = Storage::new(Arc::clone(&shelf) as Arc<dyn ObjectStore>, Path::default());
        Self { shelf, storage }
    }

    /// The storage to hand to a backend.
    pub fn storage(&self) -> Storage {
        self.storage.clone()
    }

    /// From now on puts of segments of `snapshot` wait.
    pub fn hold(&self, snapshot: SnapshotId) {
        self.shelf.plan.lock().held.insert(snapshot);
    }

    /// Lets the puts of `snapshot` go on.
    pub fn release(&self, snapshot: SnapshotId) {
        self.shelf.plan.lock().held.remove(&snapshot);
        self.shelf.opened.notify_waiters();
    }

    /// From now on puts of segments of `snapshot` fail without effect.
    pub fn fail(&self, snapshot: SnapshotId) {
        self.shelf.plan.lock().failing.insert(snapshot);
    }

    /// Whether, from now on, every put fails without effect.
    pub fn fail_all(&self, fails: bool) {
        self.shelf.plan.lock().fails_all = fails;
    }

    /// Blocks until a put of a segment of `snapshot` is held.
    ///
    /// # Panics
    /// If none arrives within a minute.
    pub fn wait_until_held(&self, snapshot: SnapshotId) {
        let mut plan = self.shelf.plan.lock();
        while !plan.waiting.contains(&snapshot) {
            let wait = self.shelf.arrived.wait_for(&mut plan, PATIENCE);
            assert!(
                !wait.timed_out(),
                "snapshot {snapshot} put no segment within {PATIENCE:?}"
            );
        }
    }

    /// The bytes of all puts that succeeded.
    pub fn bytes_put(&self) -> u64 {
        self.shelf.plan.lock().bytes_put
    }

    /// Every object, in the order of their names.
    pub fn objects(&self) -> Vec<Path> {
        let listed: Vec<_> = block_on(self.shelf.objects.list(None).collect());
        let mut paths: Vec<_> = listed
            .into_iter()
            .map(|meta| meta.expect("memory lists").location)
            .collect();
        paths.sort_unstable();
        paths
    }

    /// The bytes of an object.
    ///
    /// # Panics
    /// If it is not there.
    pub fn read(&self, path: &Path) -> Bytes {
        let found = block_on(async { self.shelf.objects.get(path).await?.bytes().await });
        found.expect("the object is there")
    }

    /// Puts `bytes` in the place of an object.
    pub fn overwrite(&self, path: &Path, bytes: Bytes) {
        block_on(self.shelf.objects.put(path, PutPayload::from_bytes(bytes)))
            .expect("memory takes a put");
    }

    /// Deletes an object.
    pub fn delete(&self, path: &Path) {
        block_on(self.shelf.objects.delete(path)).expect("memory deletes");
    }
}

impl Default for Medium {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Medium").finish_non_exhaustive()
    }
}

impl Shelf {
    /// Waits at the gate, if there is one for `snapshot`.
    async fn pass(&self, snapshot: SnapshotId) {
        loop {
            let opened = self.opened.notified();
            tokio::pin!(opened);
            // Enabled before the look, so that no opening in between is missed.
            opened.as_mut().enable();
            {
                let mut plan = self.plan.lock();
                if !plan.held.contains(&snapshot) {
                    plan.waiting.remove(&snapshot);
                    return;
                }
                plan.waiting.insert(snapshot);
                self.arrived.notify_all();
            }
            opened.await;
        }
    }

    fn fails(&self, snapshot: Option<SnapshotId>) -> bool {
        let plan = self.plan.lock();
        plan.fails_all || snapshot.is_some_and(|id| plan.failing.contains(&id))
    }
}

fn snapshot_of(path: &Path) -> Option<SnapshotId> {
    match path.as_ref().parse() {
        Ok(ObjectName::Segment(name)) => Some(name.snapshot),
        _ => None,
    }
}

impl fmt::Display for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a test's medium")
    }
}

#[async_trait]
impl ObjectStore for Shelf {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let snapshot = snapshot_of(path);
        if let Some(id) = snapshot {
            self.pass(id).await;
        }
        if self.fails(snapshot) {
            return Err(object_store::Error::Generic {
                store: "a test's medium",
                source: "this put fails on purpose".into(),
            });
        }
        let bytes = payload.content_length() as u64;
        let result = self.objects.put_opts(path, payload, options).await?;
        self.plan.lock().bytes_put += bytes;
        Ok(result)
    }

    async fn put_multipart_opts(
        &self,
        _path: &Path,
        _options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(object_store::Error::NotImplemented {
            operation: "put_multipart_opts".into(),
            implementer: "a test's medium".into(),
        })
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.objects.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

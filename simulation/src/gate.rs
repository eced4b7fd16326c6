//! One process's way to the store: each request waits for the scheduler's verdict.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;

use crate::numbers::Numbers;
use crate::world::{Late, ProcessId, Verdict, World};

/// The store as one process sees it.
#[derive(Debug)]
pub(crate) struct Gate {
    world: Arc<World>,
    process: ProcessId,
    /// How often each object was read, and each folder listed: with the seed this decides what
    /// does not wait for the scheduler, whichever thread asks first.
    asked: Mutex<BTreeMap<Path, u64>>,
}

/// A change on its way: if its process stops waiting, it may still take effect.
struct OnItsWay<'a> {
    world: &'a World,
    change: Option<Late>,
}

impl OnItsWay<'_> {
    fn arrive(&mut self) {
        self.change = None;
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        if let Some(change) = self.change.take() {
            self.world.leave(change);
        }
    }
}

impl Gate {
    /// The way of `process` to `world`.
    pub(crate) fn new(world: Arc<World>, process: ProcessId) -> Arc<Self> {
        Arc::new(Self {
            world,
            process,
            asked: Mutex::default(),
        })
    }

    async fn ask(&self, what: String) -> Verdict {
        self.world.ask(self.process, what).await
    }

    /// Chance for the next request that is about `path`.
    fn chance(&self, path: &Path) -> Numbers {
        let mut asked = self.asked.lock();
        let times = asked.entry(path.clone()).or_default();
        *times += 1;
        let path = path.as_ref().bytes();
        let seed = self.world.seed ^ u64::from(self.process.0) << 32 ^ *times << 48;
        Numbers::new(path.fold(seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        }))
    }

    /// State is read beside everything else: such reads do not wait, and fail by chance.
    fn fails_to_read(&self, path: &Path) -> bool {
        !self.world.is_calm() && self.chance(path).happens(5)
    }
}

fn failure() -> Error {
    Error::Generic {
        store: "Gate",
        source: "a fault of the simulation".into(),
    }
}

fn is_state(path: &Path) -> bool {
    path.as_ref().contains("segments/")
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process.0)
    }
}

#[async_trait]
impl ObjectStore for Gate {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let mut on_its_way = OnItsWay {
            world: &self.world,
            change: Some(Late::Put(path.clone(), payload.clone(), options.clone())),
        };
        let verdict = self.ask(format!("put {path}")).await;
        if verdict == Verdict::Stall {
            drop(on_its_way);
            return std::future::pending().await;
        }
        on_its_way.arrive();
        if verdict == Verdict::FailBefore {
            return Err(failure());
        }
        let outcome = self.world.objects.put_opts(path, payload, options).await;
        if verdict == Verdict::FailAfter {
            return Err(failure());
        }
        outcome
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.world.objects.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        if is_state(path) {
            if self.fails_to_read(path) {
                return Err(failure());
            }
        } else {
            match self.ask(format!("get {path}")).await {
                Verdict::Pass => {}
                Verdict::FailBefore | Verdict::FailAfter => return Err(failure()),
                Verdict::Stall => return std::future::pending().await,
            }
        }
        self.world.objects.get_opts(path, options).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.world.objects.get_ranges(path, ranges).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (world, process) = (Arc::clone(&self.world), self.process);
        let deleted = paths.and_then(move |path| {
            let world = Arc::clone(&world);
            async move {
                let mut on_its_way = OnItsWay {
                    world: &world,
                    change: Some(Late::Delete(path.clone())),
                };
                let verdict = world.ask(process, format!("delete {path}")).await;
                if verdict == Verdict::Stall {
                    drop(on_its_way);
                    return std::future::pending().await;
                }
                on_its_way.arrive();
                drop(on_its_way);
                if verdict == Verdict::FailBefore {
                    return Err(failure());
                }
                world.objects.delete(&path).await?;
                if verdict == Verdict::FailAfter {
                    return Err(failure());
                }
                Ok(path)
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (world, process) = (Arc::clone(&self.world), self.process);
        let prefix = prefix.cloned().unwrap_or_default();
        let mut numbers = self.chance(&prefix);
        let listed = async move {
            match world.ask(process, format!("list {prefix}")).await {
                Verdict::Pass => {}
                Verdict::FailBefore | Verdict::FailAfter => return vec![Err(failure())],
                Verdict::Stall => return std::future::pending().await,
            }
            let mut found: Vec<_> = world.objects.list(Some(&prefix)).collect().await;
            // No store owes anybody an order.
            for i in (1..found.len()).rev() {
                found.swap(i, numbers.below(i + 1));
            }
            found
        };
        stream::once(listed).flat_map(stream::iter).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.world.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.world.objects.copy_opts(from, to, options).await
    }
}

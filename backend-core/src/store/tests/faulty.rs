//! An object store that fails on purpose: before taking effect, after it, or never answering.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;

use crate::names::ObjectName;

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It fails and nothing happened.
    PutBefore,
    /// There is no space.
    PutFull,
    /// It may not be read.
    Deny,
    /// It takes effect, and fails nevertheless.
    PutAfter,
    /// It never answers, and takes effect when [`Faulty::land`] is called.
    PutStall,
    /// It takes effect, and is sent again.
    PutTwice,
    /// A read fails.
    Read,
    /// What is there is replaced although it was to be created only.
    Replace,
    /// A read finds what is not there.
    Invent,
    /// A listing is empty.
    HideList,
    /// A listing fails.
    List,
    /// A deletion fails.
    Delete,
}

/// The faults to come, each with the folder that it waits for.
#[derive(Debug, Default)]
struct Script {
    faults: Vec<(Fault, &'static str)>,
    held: Vec<(Path, PutPayload, PutOptions)>,
    /// Objects that appear, or go, just before an object is read for the first time.
    changes: Vec<(String, ObjectName, Option<Bytes>)>,
}

#[derive(Debug)]
pub(super) struct Faulty {
    inner: Arc<dyn ObjectStore>,
    script: Mutex<Script>,
    /// Whether a conditional put is a look, some time, and a put.
    looks_then_puts: AtomicBool,
}

impl Faulty {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::new(InMemory::new()),
            script: Mutex::default(),
            looks_then_puts: AtomicBool::new(false),
        })
    }

    /// Creating on condition is no longer atomic.
    pub(super) fn look_then_put(&self) {
        self.looks_then_puts.store(true, Ordering::Relaxed);
    }

    /// The next `count` requests that `fault` can befall in `folder` meet it.
    pub(super) fn plan(&self, fault: Fault, folder: &'static str, count: usize) {
        let faults = std::iter::repeat_n((fault, folder), count);
        self.script.lock().faults.extend(faults);
    }

    /// Lets the stalled puts take effect.
    pub(super) async fn land(&self) {
        let held = std::mem::take(&mut self.script.lock().held);
        for (path, payload, options) in held {
            // It may find its place taken: that is one of the cases.
            let _ = self.inner.put_opts(&path, payload, options).await;
        }
    }

    /// `object` appears just before `read` is read for the first time.
    pub(super) fn arrive(&self, read: String, object: ObjectName, bytes: Bytes) {
        self.script.lock().changes.push((read, object, Some(bytes)));
    }

    /// `object` goes just before `read` is read for the first time.
    pub(super) fn vanish(&self, read: String, object: ObjectName) {
        self.script.lock().changes.push((read, object, None));
    }

    /// The faults that have not happened are off.
    pub(super) fn forget(&self) {
        self.script.lock().faults.clear();
    }

    /// The faults that have not happened.
    pub(super) fn left(&self) -> usize {
        self.script.lock().faults.len()
    }

    fn next(&self, path: &Path, among: &[Fault]) -> Option<Fault> {
        let faults = &mut self.script.lock().faults;
        let meets = |(fault, folder): &(Fault, &'static str)| {
            among.contains(fault) && path.as_ref().contains(folder)
        };
        let index = faults.iter().position(meets)?;
        Some(faults.remove(index).0)
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

fn failure() -> object_store::Error {
    object_store::Error::Generic {
        store: "Faulty",
        source: "planned".into(),
    }
}

fn full() -> object_store::Error {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    object_store::Error::Generic {
        store: "Faulty",
        source: full.into(),
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        let among = [
            Fault::PutBefore,
            Fault::PutFull,
            Fault::PutAfter,
            Fault::PutStall,
            Fault::Replace,
            Fault::PutTwice,
        ];
        match self.next(path, &among) {
            Some(Fault::PutBefore) => return Err(failure()),
            Some(Fault::PutFull) => return Err(full()),
            Some(Fault::PutAfter) => {
                self.inner.put_opts(path, payload, options).await?;
                return Err(failure());
            }
            Some(Fault::PutTwice) => {
                let (payload, options) = (payload.clone(), options.clone());
                // It may find its place taken, as the second one does.
                let _ = self.inner.put_opts(path, payload, options).await;
            }
            Some(Fault::PutStall) => {
                let held = (path.clone(), payload, options);
                self.script.lock().held.push(held);
                return std::future::pending().await;
            }
            Some(Fault::Replace) => options.mode = PutMode::Overwrite,
            _ => {}
        }
        if self.looks_then_puts.load(Ordering::Relaxed) && self.inner.head(path).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            options.mode = PutMode::Overwrite;
        }
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let changes = std::mem::take(&mut self.script.lock().changes);
        for (read, object, bytes) in changes {
            let place = Path::from(object.to_string());
            match bytes {
                _ if path.as_ref() != read => {
                    self.script.lock().changes.push((read, object, bytes));
                }
                Some(bytes) => {
                    self.inner.put(&place, bytes.into()).await?;
                }
                None => self.inner.delete(&place).await?,
            }
        }
        match self.next(path, &[Fault::Read, Fault::Invent, Fault::Deny]) {
            Some(Fault::Deny) => Err(object_store::Error::PermissionDenied {
                path: path.to_string(),
                source: "planned".into(),
            }),
            Some(Fault::Invent) => {
                let (path, payload) = (Path::from("invented"), PutPayload::from_static(b"x"));
                self.inner.put(&path, payload).await?;
                self.inner.get_opts(&path, options).await
            }
            Some(_) => Err(failure()),
            None => self.inner.get_opts(path, options).await,
        }
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(path, ranges).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let inner = Arc::clone(&self.inner);
        let is_doomed = {
            let faults = &mut self.script.lock().faults;
            let at = faults.iter().position(|(fault, _)| *fault == Fault::Delete);
            at.map(|at| faults.remove(at)).is_some()
        };
        if is_doomed {
            return futures::stream::iter([Err(failure())]).boxed();
        }
        inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let among = [Fault::HideList, Fault::List];
        match self.next(prefix.unwrap_or(&Path::default()), &among) {
            Some(Fault::List) => futures::stream::iter([Err(failure())]).boxed(),
            Some(_) => futures::stream::empty().boxed(),
            None => self.inner.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

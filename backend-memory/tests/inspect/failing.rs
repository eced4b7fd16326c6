//! An object store that fails for good after some puts.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// After so many puts every other one fails, with or without taking effect once.
#[derive(Debug)]
pub(crate) struct Failing {
    inner: Arc<InMemory>,
    left: AtomicU32,
    /// Whether the first put that fails takes effect nevertheless.
    takes_effect: bool,
}

impl Failing {
    pub(crate) fn after(inner: Arc<InMemory>, puts: u32, takes_effect: bool) -> Self {
        Self {
            inner,
            left: AtomicU32::new(puts + 1),
            takes_effect,
        }
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Failing")
    }
}

#[async_trait]
impl ObjectStore for Failing {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        if path.as_ref().starts_with("probe/") {
            return self.inner.put_opts(path, payload, options).await;
        }
        let one_less = |left: u32| Some(left.saturating_sub(1));
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        let left = left.unwrap_or(0);
        if left > 1 {
            return self.inner.put_opts(path, payload, options).await;
        }
        if left == 1 && self.takes_effect {
            self.inner.put_opts(path, payload, options).await?;
        }
        Err(object_store::Error::Generic {
            store: "Failing",
            source: "planned".into(),
        })
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(path, options).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(path, ranges).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

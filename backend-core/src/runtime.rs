//! The runtime that a backend owns: all its I/O runs here, whoever polls the futures.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Error, ErrorKind, Result};

/// A small thread pool for uploads, downloads and merges. Clones share it; the last one to go
/// shuts it down without waiting.
#[derive(Clone, Debug)]
pub struct IoRuntime {
    handle: Handle,
    _owner: Arc<Owner>,
}

#[derive(Debug)]
struct Owner(Option<Runtime>);

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Ends a task when its future is dropped.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl IoRuntime {
    /// A pool of `threads` threads.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if the operating system gives no threads.
    pub fn new(threads: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("stateline-io")
            .enable_all()
            .build()
            .map_err(|e| {
                Error::new(
                    ErrorKind::Transient,
                    "the runtime for I/O could not be started",
                )
                .because(e)
            })?;
        Ok(Self {
            handle: runtime.handle().clone(),
            _owner: Arc::new(Owner(Some(runtime))),
        })
    }

    /// The runtime of somebody else, which must have its clock and its I/O enabled, and which
    /// must outlive all work.
    pub fn on(handle: Handle) -> Self {
        Self {
            handle,
            _owner: Arc::new(Owner(None)),
        }
    }

    /// Runs `work` on the pool from the first poll on. The future may be polled anywhere, and
    /// dropping it ends the work at its next await.
    pub fn run<T, W>(&self, work: W) -> impl Future<Output = Result<T>> + Send + 'static + use<T, W>
    where
        T: Send + 'static,
        W: Future<Output = Result<T>> + Send + 'static,
    {
        let runtime = self.clone();
        async move {
            let task = runtime.handle.spawn(work);
            let _guard = AbortOnDrop(task.abort_handle());
            task.await.unwrap_or_else(|e| Err(stopped(e)))
        }
    }

    /// Runs `work` on the pool at once, and lets it go on by itself.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Waits for `work` on a thread that [`IoRuntime::blocking`] gave.
    ///
    /// # Panics
    /// On a thread that drives futures.
    pub fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.handle.block_on(work)
    }

    /// Runs `work`, which computes for long or blocks, on a thread of its own from the pool.
    ///
    /// # Errors
    /// Those of `work`; [`ErrorKind::Cancelled`] if the pool is shut down first.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.handle
            .spawn_blocking(work)
            .await
            .unwrap_or_else(|e| Err(stopped(e)))
    }
}

fn stopped(e: tokio::task::JoinError) -> Error {
    if e.is_panic() {
        std::panic::resume_unwind(e.into_panic());
    }
    Error::new(
        ErrorKind::Cancelled,
        "the backend was closed while work was under way",
    )
}

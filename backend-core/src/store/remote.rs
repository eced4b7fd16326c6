//! Requests to a job's directory: on the store's own threads, with a time limit, tried again a
//! bounded number of times.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::mpsc;

use crate::clock::SharedEnvironment;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::JobId;
use crate::names::{Folder, ObjectName};
use crate::runtime::IoRuntime;
use crate::storage::{Created, Listed, ListedObject, Storage};
use crate::store::options::StoreOptions;
use crate::store::protocol::CreateAnswer;

/// A job's directory and all that is needed to ask it. Clones share everything.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) storage: Storage,
    pub(crate) job: JobId,
    pub(crate) env: SharedEnvironment,
    pub(crate) io: IoRuntime,
    pub(crate) options: StoreOptions,
}

/// Listed objects that wait to be looked at.
const LISTED_AHEAD: usize = 1_024;

/// Counts the tries of one request.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    done: u32,
}

impl Tries {
    /// Whether there has been none so far.
    pub(crate) fn is_first(&self) -> bool {
        self.done == 0
    }
}

impl Remote {
    pub(crate) fn new(
        storage: Storage,
        job: JobId,
        env: SharedEnvironment,
        options: StoreOptions,
        io: Option<IoRuntime>,
    ) -> Result<Self> {
        options.validate()?;
        let io = match io {
            Some(io) => io,
            None => IoRuntime::new(options.io_threads)?,
        };
        Ok(Self {
            storage,
            job,
            env,
            io,
            options,
        })
    }

    /// One try to create an object; the error says why the answer is in doubt.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the store cannot create on condition;
    /// [`ErrorKind::Refused`] if this try did nothing.
    pub(crate) async fn create_once(
        &self,
        name: ObjectName,
        bytes: Bytes,
    ) -> Result<(CreateAnswer, Option<Error>)> {
        let put = move |storage: Storage| async move { storage.create(&name, bytes).await };
        match self.once(put).await {
            Ok(Created::Yes) => Ok((CreateAnswer::Created, None)),
            Ok(Created::Exists) => Ok((CreateAnswer::Exists, None)),
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::Refused) => Err(e),
            Err(e) => Ok((CreateAnswer::InDoubt, Some(e.with("object", name)))),
        }
    }

    pub(crate) async fn get(&self, name: ObjectName, bytes_max: u64) -> Result<Option<Bytes>> {
        self.retried(move |storage| async move { storage.get(&name, bytes_max).await })
            .await
    }

    pub(crate) async fn get_range(&self, name: ObjectName, range: Range<u64>) -> Result<Bytes> {
        self.retried(move |storage| {
            let range = range.clone();
            async move { storage.get_range(&name, range).await }
        })
        .await
    }

    pub(crate) async fn size(&self, name: ObjectName) -> Result<Option<u64>> {
        self.retried(move |storage| async move { storage.size(&name).await })
            .await
    }

    pub(crate) async fn list(&self, folder: Folder) -> Result<Vec<ListedObject>> {
        self.retried(move |storage| async move { storage.list(folder).await })
            .await
    }

    /// What lies in a folder, as it is listed: for folders that are larger than memory.
    pub(super) fn listed(&self, folder: Folder) -> mpsc::Receiver<Result<Listed>> {
        let (found, listed) = mpsc::channel(LISTED_AHEAD);
        let storage = self.storage.clone();
        let time_max = self.options.request_time_max();
        self.io.spawn(async move {
            let mut stream = storage.list_each(folder);
            loop {
                let item = match tokio::time::timeout(time_max, stream.next()).await {
                    Ok(None) => return,
                    Ok(Some(item)) => item,
                    Err(_) => Err(out_of_time(time_max)),
                };
                let is_last = item.is_err();
                if found.send(item).await.is_err() || is_last {
                    return;
                }
            }
        });
        listed
    }

    pub(super) async fn delete_all(&self, names: Vec<ObjectName>) -> Result<()> {
        let names = Arc::new(names);
        self.retried(move |storage| {
            let names = Arc::clone(&names);
            async move { storage.delete_all(&names).await }
        })
        .await
    }

    /// Runs `work`, which asks the file system, on a thread of its own.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Storage) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let storage = self.storage.clone();
        self.io.blocking(move || work(&storage)).await
    }

    pub(crate) async fn list_all(&self, folder: Folder) -> Result<Vec<Listed>> {
        self.retried(move |storage| async move { storage.list_all(folder).await })
            .await
    }

    pub(crate) async fn delete(&self, name: ObjectName) -> Result<()> {
        self.retried(move |storage| async move { storage.delete(&name).await })
            .await
    }

    /// Sleeps before the next try, or gives `error` back if there were too many.
    pub(crate) async fn pause(&self, tries: &mut Tries, error: Error) -> Result<()> {
        tries.done += 1;
        if tries.done >= self.options.tries_max {
            return Err(error.with("tries", tries.done));
        }
        self.sleep(self.options.backoff(tries.done)).await
    }

    pub(super) async fn sleep(&self, time: Duration) -> Result<()> {
        let sleep = async move {
            tokio::time::sleep(time).await;
            Ok(())
        };
        self.io.run(sleep).await
    }

    async fn retried<T, F>(&self, mut request: impl FnMut(Storage) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let mut tries = Tries::default();
        loop {
            match self.once(&mut request).await {
                Err(e) if e.kind() == ErrorKind::Transient => self.pause(&mut tries, e).await?,
                outcome => return outcome,
            }
        }
    }

    async fn once<T, F>(&self, request: impl FnOnce(Storage) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let time_max = self.options.request_time_max();
        let request = request(self.storage.clone());
        let limited = async move {
            tokio::time::timeout(time_max, request)
                .await
                .unwrap_or_else(|_| Err(out_of_time(time_max)))
        };
        self.io.run(limited).await
    }
}

fn out_of_time(time_max: Duration) -> Error {
    Error::new(
        ErrorKind::Transient,
        "the object store did not answer in time",
    )
    .with("request_ms_max", time_max.as_millis())
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("storage", &self.storage)
            .field("job", &self.job)
            .finish_non_exhaustive()
    }
}

//! A job's directory in an object store: bytes in and out by name, with every request counted.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
};

use crate::error::{Error, ErrorKind, Result};
use crate::names::ObjectName;
use crate::storage::refusal::{is_refusal, refused};

/// A job's directory in an object store. Clones share the store and the counters.
#[derive(Clone)]
pub struct Storage {
    store: Arc<dyn ObjectStore>,
    root: Path,
    /// The directory, if the store is the local file system.
    directory: Option<Arc<std::path::Path>>,
    requests: Arc<Requests>,
}

/// Requests by kind since a [`Storage`] was made.
#[derive(Debug, Default)]
struct Requests {
    puts: AtomicU64,
    gets: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
}

/// How many requests a [`Storage`] has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Objects created.
    pub puts: u64,
    /// Whole and ranged reads, and looks.
    pub gets: u64,
    /// Listings.
    pub lists: u64,
    /// Objects deleted.
    pub deletes: u64,
}

/// What came of creating an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// It was created, by us.
    Yes,
    /// An object of that name is there; it may be ours from an earlier try.
    Exists,
}

impl Storage {
    /// The directory `root` of `store`.
    pub fn new(store: Arc<dyn ObjectStore>, root: impl Into<Path>) -> Self {
        Self {
            store,
            root: root.into(),
            directory: None,
            requests: Arc::default(),
        }
    }

    /// A directory of the local file system, which is created if it is not there.
    ///
    /// An object is written to a temporary name, synced to disk, and then linked to its own name
    /// with its directory synced, so a creation that returned outlives a crash of the machine,
    /// and a crash in between leaves no object. On systems other than Unix directories are not
    /// synced. Deletions are not synced: a deleted object may come back after a crash.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the directory cannot be created or opened.
    pub fn local(directory: &std::path::Path) -> Result<Self> {
        let fails = |message, e: Box<dyn std::error::Error + Send + Sync>| {
            Error::new(ErrorKind::Invalid, message)
                .with("directory", directory.display())
                .because(e)
        };
        create_directory(directory)
            .map_err(|e| fails("a directory cannot be created", Box::new(e)))?;
        let store = LocalFileSystem::new_with_prefix(directory)
            .map_err(|e| fails("a directory cannot be opened", Box::new(e)))?
            .with_fsync(true);
        Ok(Self {
            directory: Some(
                directory
                    .canonicalize()
                    .map_err(|e| fails("a directory cannot be opened", Box::new(e)))?
                    .into(),
            ),
            ..Self::new(Arc::new(store), Path::default())
        })
    }

    /// A new, empty directory in this process's memory.
    pub fn memory() -> Self {
        Self::new(Arc::new(InMemory::new()), Path::default())
    }

    /// As if it were a local directory, where nobody but this process is asked.
    #[cfg(test)]
    pub(crate) fn pretend_local(self) -> Self {
        Self {
            directory: Some(std::path::Path::new("nowhere").into()),
            ..self
        }
    }

    /// Whether both are the same directory of the same store.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_store = match (&self.directory, &other.directory) {
            (Some(own), Some(others)) => own == others,
            _ => Arc::ptr_eq(&self.store, &other.store),
        };
        is_same_store && self.root == other.root
    }

    /// How many requests have been sent.
    pub fn requests(&self) -> RequestCounts {
        RequestCounts {
            puts: self.requests.puts.load(Ordering::Relaxed),
            gets: self.requests.gets.load(Ordering::Relaxed),
            lists: self.requests.lists.load(Ordering::Relaxed),
            deletes: self.requests.deletes.load(Ordering::Relaxed),
        }
    }

    /// Creates an object, whole and durable, unless the name is taken.
    ///
    /// # Errors
    /// [`ErrorKind::InDoubt`] if the outcome is not known: the object may be there, or appear.
    /// [`ErrorKind::Refused`] if a local directory is full or denies access. What other stores
    /// deny is in doubt, because an earlier try of their clients may still take effect.
    pub async fn create(&self, name: &ObjectName, bytes: Bytes) -> Result<Created> {
        self.requests.puts.fetch_add(1, Ordering::Relaxed);
        let options = PutOptions {
            mode: PutMode::Create,
            ..PutOptions::default()
        };
        match self
            .store
            .put_opts(&self.path(name), PutPayload::from_bytes(bytes), options)
            .await
        {
            Ok(_) => Ok(Created::Yes),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(Created::Exists),
            Err(
                e @ (object_store::Error::NotImplemented { .. }
                | object_store::Error::NotSupported { .. }),
            ) => Err(Error::new(
                ErrorKind::Unsupported,
                "the store cannot create on condition",
            )
            .with("object", name)
            .because(e)),
            Err(e) if self.has_refused(name, &e).await => Err(refused(name, e)),
            Err(e) => Err(
                Error::new(ErrorKind::InDoubt, "creating an object did not end clearly")
                    .with("object", name)
                    .because(e),
            ),
        }
    }

    /// Whether a creation that failed with `e` is known to have done nothing: nobody else is
    /// asked on a local directory, so what is not there after the answer will not appear.
    async fn has_refused(&self, name: &ObjectName, e: &object_store::Error) -> bool {
        self.directory.is_some() && is_refusal(e) && matches!(self.size(name).await, Ok(None))
    }

    /// The whole object, or `None` if there is none of that name.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if the store did not answer, [`ErrorKind::Limit`] if the object
    /// is larger than `bytes_max`.
    pub async fn get(&self, name: &ObjectName, bytes_max: u64) -> Result<Option<Bytes>> {
        self.requests.gets.fetch_add(1, Ordering::Relaxed);
        let found = match self.store.get(&self.path(name)).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(e) => return Err(unanswered(name, e)),
        };
        if found.meta.size > bytes_max {
            return Err(
                Error::new(ErrorKind::Limit, "an object is larger than it can be")
                    .with("object", name)
                    .with("bytes_max", bytes_max)
                    .with("got", found.meta.size),
            );
        }
        found
            .bytes()
            .await
            .map(Some)
            .map_err(|e| unanswered(name, e))
    }

    /// A range of an object. Nothing is asked for if it is empty.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such object, [`ErrorKind::Corrupt`] if it is
    /// shorter than the range, [`ErrorKind::Transient`] if the store did not answer.
    pub async fn get_range(&self, name: &ObjectName, range: Range<u64>) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        self.requests.gets.fetch_add(1, Ordering::Relaxed);
        let want = range.end - range.start;
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            ..GetOptions::default()
        };
        let bytes = match self.store.get_opts(&self.path(name), options).await {
            Ok(found) => found.bytes().await.map_err(|e| unanswered(name, e))?,
            Err(object_store::Error::NotFound { .. }) => {
                return Err(
                    Error::new(ErrorKind::NotFound, "an object is missing").with("object", name)
                );
            }
            Err(e) => {
                // A range beyond the end is refused in as many ways as there are stores.
                return match self.size(name).await? {
                    Some(size) if size < range.end => Err(cut_short(name, range.end, size)),
                    _ => Err(unanswered(name, e)),
                };
            }
        };
        if bytes.len() as u64 == want {
            Ok(bytes)
        } else {
            Err(cut_short(name, range.end, range.start + bytes.len() as u64))
        }
    }

    /// The size of an object, or `None` if there is none of that name.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if the store did not answer.
    pub async fn size(&self, name: &ObjectName) -> Result<Option<u64>> {
        self.requests.gets.fetch_add(1, Ordering::Relaxed);
        match self.store.head(&self.path(name)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(unanswered(name, e)),
        }
    }

    /// Deletes an object. It is no error if there is none of that name.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if the store did not answer; the object may be gone.
    pub async fn delete(&self, name: &ObjectName) -> Result<()> {
        self.requests.deletes.fetch_add(1, Ordering::Relaxed);
        match self.store.delete(&self.path(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(unanswered(name, e)),
        }
    }

    /// Deletes objects, many with one request where the store can. It is no error if there is
    /// none of a name.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if the store did not answer; any of the objects may be gone.
    pub async fn delete_all(&self, names: &[ObjectName]) -> Result<()> {
        let count = names.len() as u64;
        self.requests.deletes.fetch_add(count, Ordering::Relaxed);
        let paths: Vec<_> = names.iter().map(|name| Ok(self.path(name))).collect();
        let mut deleted = self.store.delete_stream(stream::iter(paths).boxed());
        let mut failed = None;
        while let Some(outcome) = deleted.next().await {
            match outcome {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(e) => failed = Some(e),
            }
        }
        match failed {
            None => Ok(()),
            Some(e) => Err(
                Error::new(ErrorKind::Transient, "objects could not be deleted")
                    .with("objects", count)
                    .because(e),
            ),
        }
    }

    fn path(&self, name: &ObjectName) -> Path {
        let mut path = self.root.clone();
        for part in name.to_string().split('/') {
            path = path.join(part);
        }
        path
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} in {})", self.root, self.store)
    }
}

/// Creates a directory and those above it, and syncs what now holds a new name.
fn create_directory(directory: &std::path::Path) -> std::io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => std::path::Path::new("."),
    };
    create_directory(parent)?;
    match std::fs::create_dir(directory) {
        // Another process may have been faster, which is as good; a file is not.
        Err(e) if !directory.is_dir() => return Err(e),
        _ => {}
    }
    if cfg!(unix) {
        std::fs::File::open(parent)?.sync_all()?;
    }
    Ok(())
}

fn unanswered(name: &ObjectName, e: object_store::Error) -> Error {
    if is_refusal(&e) {
        return refused(name, e);
    }
    Error::new(ErrorKind::Transient, "the object store did not answer")
        .with("object", name)
        .because(e)
}

fn cut_short(name: &ObjectName, expected: u64, got: u64) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "an object is shorter than its manifest says",
    )
    .with("object", name)
    .expected_got(
        format_args!("at least {expected} bytes"),
        format_args!("{got} bytes"),
    )
}

mod listing;
mod refusal;
mod staged;
#[cfg(test)]
mod tests;

pub use listing::{LISTED_OBJECTS_MAX, Listed, ListedObject};

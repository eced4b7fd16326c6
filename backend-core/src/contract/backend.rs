//! What opens stores.

use async_trait::async_trait;

use crate::contract::store::KeyedStore;
use crate::contract::task::{TaskRestore, TaskScope};
use crate::error::Result;

/// A kind of keyed state: memory, RocksDB, an object store, or a third party's.
#[async_trait]
pub trait StateBackend: Send + Sync {
    /// The name under which configuration knows the backend.
    fn name(&self) -> &'static str;

    /// Opens the state of one task: empty, or as `restore` holds it, clipped to the scope's
    /// range. It returns once reads can be answered, which may be before all bytes are here.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] or [`crate::ErrorKind::NotFound`] name the object that
    /// cannot be read; [`crate::ErrorKind::Mismatch`] if hash or key codec differ from what was
    /// stored. Never a fresh start instead of a restore.
    async fn open(
        &self,
        scope: TaskScope,
        restore: Option<TaskRestore>,
    ) -> Result<Box<dyn KeyedStore>>;
}

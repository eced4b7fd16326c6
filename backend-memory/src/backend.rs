//! Opens stores in memory.

use async_trait::async_trait;
use backend_core::clock::SharedEnvironment;
use backend_core::runtime::IoRuntime;
use backend_core::storage::Storage;
use backend_core::ttl::TimedStore;
use backend_core::{KeyedStore, Result, StateBackend, TaskRestore, TaskScope};

use crate::options::MemoryOptions;
use crate::restore::restore;
use crate::shared::Shared;
use crate::store::MemoryStore;

/// Keyed state in memory; snapshots go to a [`Storage`].
///
/// Every read is ready. A freeze costs one reference count for some 60,000 entries.
#[derive(Clone, Debug)]
pub struct MemoryBackend {
    shared: Shared,
}

impl MemoryBackend {
    /// A backend whose snapshots go to `storage`.
    ///
    /// # Errors
    /// [`backend_core::ErrorKind::Invalid`] for options out of bounds,
    /// [`backend_core::ErrorKind::Transient`] if no threads can be had.
    pub fn new(
        storage: Storage,
        environment: SharedEnvironment,
        options: MemoryOptions,
    ) -> Result<Self> {
        let runtime = IoRuntime::new(options.io_threads)?;
        Self::on(runtime, storage, environment, options)
    }

    /// [`MemoryBackend::new`] on a runtime that is there already, instead of threads of its own.
    ///
    /// # Errors
    /// [`backend_core::ErrorKind::Invalid`] for options out of bounds.
    pub fn on(
        runtime: IoRuntime,
        storage: Storage,
        environment: SharedEnvironment,
        options: MemoryOptions,
    ) -> Result<Self> {
        options.validate()?;
        Ok(Self {
            shared: Shared {
                storage,
                environment,
                runtime,
                options,
            },
        })
    }
}

#[async_trait]
impl StateBackend for MemoryBackend {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn open(
        &self,
        scope: TaskScope,
        restored: Option<TaskRestore>,
    ) -> Result<Box<dyn KeyedStore>> {
        let shared = self.shared.clone();
        let store = match restored {
            None => MemoryStore::empty(shared, scope),
            Some(restored) => {
                let runtime = shared.runtime.clone();
                runtime.run(restore(shared, scope, restored)).await?
            }
        };
        let environment = self.shared.environment.clone();
        Ok(Box::new(TimedStore::new(store, environment)))
    }
}

//! A backend that is plainly right, or wrong in one way: for testing tests, not for state.
//!
//! Its state is a map of maps; a snapshot is a clone of it, and an increment is the difference
//! between two clones. Its segments have a form of their own that no other backend reads.

mod calls;
mod entries;
mod expiry;
mod flaw;
mod restore;
mod segment;
mod store;
mod timers;
mod view;
mod write;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use backend_core::clock::{ManualEnvironment, SharedEnvironment};
use backend_core::storage::Storage;
use backend_core::ttl::TimedStore;
use backend_core::{KeyedStore, Result, StateBackend, TaskRestore, TaskScope};
use parking_lot::Mutex;

pub use self::flaw::Flaw;
use self::store::ReferenceStore;
use crate::backend::BackendUnderTest;

/// A backend to test tests with: right, or with one [`Flaw`].
///
/// It holds everything in memory and never merges segments, so its chains have no bound.
#[derive(Clone, Debug)]
pub struct ReferenceBackend {
    storage: Storage,
    environment: SharedEnvironment,
    flaw: Option<Flaw>,
}

impl ReferenceBackend {
    /// A backend that is right.
    pub fn new(storage: Storage, environment: SharedEnvironment) -> Self {
        Self {
            storage,
            environment,
            flaw: None,
        }
    }

    /// A backend that is wrong.
    pub fn with_flaw(storage: Storage, environment: SharedEnvironment, flaw: Flaw) -> Self {
        Self {
            storage,
            environment,
            flaw: Some(flaw),
        }
    }
}

#[async_trait]
impl StateBackend for ReferenceBackend {
    fn name(&self) -> &'static str {
        "reference"
    }

    async fn open(
        &self,
        scope: TaskScope,
        restore: Option<TaskRestore>,
    ) -> Result<Box<dyn KeyedStore>> {
        let restored = match restore {
            Some(restore) => restore::restore(&scope, &restore, self.flaw).await?,
            None => restore::Restored::default(),
        };
        let entries = restored.entries;
        let mut environment = self.environment.clone();
        if self.flaw == Some(Flaw::StopsItsClock) {
            environment = Arc::new(ManualEnvironment::new(environment.now_ms(), 1));
        }
        let store = ReferenceStore {
            writer: write::Writer {
                scope,
                storage: self.storage.clone(),
                flaw: self.flaw,
                lineage: Arc::new(Mutex::new(restored.lineage)),
                live: Arc::new(Mutex::new(Arc::clone(&entries))),
            },
            states: restored.states,
            entries,
            generation: restored.generation,
            elements: 0,
            cleared: BTreeSet::new(),
            last_snapshot: None,
            environment: environment.clone(),
            claimed: BTreeSet::new(),
            writes: 0,
            leaked_bytes: 0,
        };
        if self.flaw == Some(Flaw::ReadsExpired) {
            environment = Arc::new(ManualEnvironment::new(0, 1));
        }
        Ok(Box::new(TimedStore::new(store, environment)))
    }
}

/// The suite runs on it as on any other backend.
impl BackendUnderTest for Option<Flaw> {
    fn backend(&self, storage: Storage, environment: SharedEnvironment) -> Arc<dyn StateBackend> {
        Arc::new(ReferenceBackend {
            storage,
            environment,
            flaw: *self,
        })
    }
}

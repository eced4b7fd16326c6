//! What a backend's author hands to the suite.

use std::sync::Arc;

use backend_core::StateBackend;
use backend_core::clock::SharedEnvironment;
use backend_core::storage::Storage;

/// Makes the backend that is tested.
///
/// A closure will do unless a capability is missing:
/// `|storage, environment| -> Arc<dyn StateBackend> { Arc::new(MyBackend::new(storage, environment)) }`.
pub trait BackendUnderTest: Send + Sync {
    /// A new backend that writes its segments to `storage` and takes time and chance from
    /// `environment`, whose clock stands until a case moves it. It must not remember anything of
    /// an earlier one: the suite makes a new one for each restore, as a restarted process would.
    fn backend(&self, storage: Storage, environment: SharedEnvironment) -> Arc<dyn StateBackend>;

    /// What the backend can do. What it cannot do is tested to fail clearly.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
}

impl<F> BackendUnderTest for F
where
    F: Fn(Storage, SharedEnvironment) -> Arc<dyn StateBackend> + Send + Sync,
{
    fn backend(&self, storage: Storage, environment: SharedEnvironment) -> Arc<dyn StateBackend> {
        self(storage, environment)
    }
}

/// What a backend can do. The default is everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Whether reads go on after the objects of the restored snapshot were deleted, once all of
    /// the state has been read. A backend that serves reads from those objects says `false`; it
    /// must then answer with an error that names the object, or with the right data.
    pub outlives_restored_objects: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            outlives_restored_objects: true,
        }
    }
}

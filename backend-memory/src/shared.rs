//! What all stores of a backend have in common.

use backend_core::clock::SharedEnvironment;
use backend_core::runtime::IoRuntime;
use backend_core::storage::Storage;

use crate::options::MemoryOptions;

/// What all stores of a backend have in common.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) storage: Storage,
    pub(crate) environment: SharedEnvironment,
    pub(crate) runtime: IoRuntime,
    pub(crate) options: MemoryOptions,
}

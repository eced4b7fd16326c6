//! The memory backend shows every behaviour of the suite.

use std::sync::Arc;

use backend_core::StateBackend;
use backend_core::clock::SharedEnvironment;
use backend_core::storage::Storage;
use backend_memory::{MemoryBackend, MemoryOptions};
use conformance_tests::conformance;

fn memory(storage: Storage, environment: SharedEnvironment) -> Arc<dyn StateBackend> {
    let options = MemoryOptions::default();
    let backend = MemoryBackend::new(storage, environment, options);
    Arc::new(backend.expect("the backend starts"))
}

conformance!(memory);

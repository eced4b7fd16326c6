mod keys;
mod lists;
mod maps;
mod store;
mod values;

use crate::error::Result;
use crate::fetch::Fetch;
use crate::key::StateKey;

use store::TestStore;

/// A store whose reads are at hand, and one whose reads are pending first.
fn stores() -> [TestStore; 2] {
    [TestStore::new(), TestStore::slow()]
}

fn key(text: &str) -> StateKey {
    StateKey::encode(&crate::KeyHasher::XXH3_64, text).expect("a short key")
}

/// Drives a future as an engine with a thread pool would: it must be able to move to another one.
fn drive<T>(future: impl Future<Output = T> + Send) -> T {
    futures::executor::block_on(future)
}

/// The answer, after a look at whether it was at hand exactly if the store has it at hand.
fn answer<T: Send + Unpin>(slow: bool, fetch: Fetch<'_, T>) -> Result<T> {
    assert_eq!(fetch.is_ready(), !slow);
    drive(fetch)
}

//! What coordinators and readers have in common: their way to the store, and their settings.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use backend_core::clock::{ManualEnvironment, SharedEnvironment};
use backend_core::runtime::IoRuntime;
use backend_core::storage::Storage;
use backend_core::store::StoreOptions;
use backend_core::{Error, ErrorKind, SnapshotStore};
use backend_memory::{MemoryBackend, MemoryOptions};
use tokio::runtime::Handle;

use crate::gate::Gate;
use crate::ledger::{Ledger, ROOT, Violation, job};
use crate::numbers::Numbers;
use crate::world::{ProcessId, World};

/// One process.
pub(crate) struct Process {
    /// Its number.
    pub(crate) id: ProcessId,
    /// The store.
    pub(crate) world: Arc<World>,
    /// What must hold.
    pub(crate) ledger: Rc<RefCell<Ledger>>,
    /// Its own chance.
    pub(crate) numbers: Numbers,
    /// Its way to the store.
    pub(crate) storage: Storage,
    /// Its clock, which may be wrong.
    pub(crate) clock: Arc<ManualEnvironment>,
}

/// Why a process ends.
#[derive(Debug)]
pub(crate) enum End {
    /// As processes do: it is done, was fenced, or the store did not answer.
    Ordinary(String),
    /// Something happened that must not.
    Violation(Violation),
}

impl From<Violation> for End {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl From<Error> for End {
    /// A fault of the store or a newer coordinator ends a process; all else must not happen.
    fn from(e: Error) -> Self {
        match e.kind() {
            ErrorKind::Fenced | ErrorKind::InDoubt | ErrorKind::Transient => {
                Self::Ordinary(e.to_string())
            }
            _ => Self::Violation(Violation(e.to_string())),
        }
    }
}

impl Process {
    /// Process `id` of a simulation.
    pub(crate) fn new(id: ProcessId, world: Arc<World>, ledger: Rc<RefCell<Ledger>>) -> Self {
        let mut numbers = Numbers::new(world.seed.rotate_left(17) ^ u64::from(id.0));
        let skewed_ms = 1_700_000_000_000 + numbers.below(1_000_000) as u64 - 500_000;
        Self {
            id,
            storage: Storage::new(Gate::new(Arc::clone(&world), id), ROOT),
            clock: Arc::new(ManualEnvironment::new(skewed_ms, numbers.draw())),
            world,
            ledger,
            numbers,
        }
    }

    /// Adds a line to the trace.
    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        self.world.note(format!("process {}: {line}", self.id.0));
    }

    /// Opens the store of the job.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn open(&mut self) -> Result<SnapshotStore, Error> {
        let mut options = StoreOptions::default();
        options.tries_max = 1 + self.numbers.below(5) as u32;
        options.request_ms_max = if self.world.is_calm() {
            3_600_000
        } else {
            [40, 400, 60_000][self.numbers.below(3)]
        };
        let environment: SharedEnvironment = self.clock.clone();
        let runtime = IoRuntime::on(Handle::current());
        SnapshotStore::open_on(runtime, self.storage.clone(), job(), environment, options).await
    }

    /// A backend in memory, with settings by chance.
    ///
    /// # Errors
    /// None with these settings.
    pub(crate) fn backend(&mut self) -> Result<MemoryBackend, Error> {
        let mut options = MemoryOptions::default();
        if self.numbers.happens(700) {
            options.inline_bytes_max = 0;
            options.chain.full_bytes_max = 0;
        }
        options.chain.fanout = 2 + self.numbers.below(3) as u32;
        options.chain.runs_max = options.chain.fanout + self.numbers.below(4) as u32;
        options.chain.dead_percent_max = [50, 200, 100_000][self.numbers.below(3)];
        options.incremental = self.numbers.happens(900);
        // Its own numbers: it asks for them on other threads.
        let environment = Arc::new(ManualEnvironment::new(
            1_700_000_000_000,
            self.numbers.draw(),
        ));
        let runtime = IoRuntime::on(Handle::current());
        MemoryBackend::on(runtime, self.storage.clone(), environment, options)
    }
}

//! The object store that all processes share, and who waits for what.

use std::collections::BTreeSet;
use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutOptions, PutPayload};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A process: a coordinator with its tasks, or a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId(pub u32);

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It takes effect and is answered.
    Pass,
    /// It fails and has no effect.
    FailBefore,
    /// It takes effect, and the answer is lost.
    FailAfter,
    /// It is never answered, and may take effect later.
    Stall,
}

/// A request that waits for its verdict.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Who asks.
    pub(crate) process: ProcessId,
    /// What for.
    pub(crate) what: String,
    answer: oneshot::Sender<Verdict>,
}

/// A change that its process no longer waits for.
#[derive(Clone, Debug)]
pub(crate) enum Late {
    /// An object is put.
    Put(Path, PutPayload, PutOptions),
    /// An object is deleted.
    Delete(Path),
}

/// The store and its requests.
#[derive(Debug)]
pub(crate) struct World {
    /// The objects.
    pub(crate) objects: Arc<InMemory>,
    /// Decides about reads of state, which do not wait.
    pub(crate) seed: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    late: Vec<Late>,
    dead: BTreeSet<ProcessId>,
    trace: Vec<String>,
    /// A number of all requests and their verdicts.
    fingerprint: u64,
    /// Whether faults are over.
    is_calm: bool,
    /// What work beside a process has seen that must not be.
    violation: Option<String>,
}

impl World {
    /// An empty store.
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            objects: Arc::new(InMemory::new()),
            seed,
            state: Mutex::default(),
        })
    }

    /// Waits until the scheduler lets a request of `process` go on.
    pub(crate) async fn ask(&self, process: ProcessId, what: String) -> Verdict {
        let (answer, verdict) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if !state.dead.contains(&process) {
                state.waiting.push(Waiting {
                    process,
                    what,
                    answer,
                });
            }
        }
        match verdict.await {
            Ok(verdict) => verdict,
            // The process is dead, and nothing that it asks for is answered any more.
            Err(_) => std::future::pending().await,
        }
    }

    /// The requests that wait: who, and what for.
    pub(crate) fn waiting(&self) -> Vec<(ProcessId, String)> {
        let mut state = self.state.lock();
        state.waiting.retain(|w| !w.answer.is_closed());
        // Threads may have brought them in another order.
        state
            .waiting
            .sort_by(|a, b| (a.process, &a.what).cmp(&(b.process, &b.what)));
        let waiting = state.waiting.iter();
        waiting.map(|w| (w.process, w.what.clone())).collect()
    }

    /// Answers the request at `index` of [`World::waiting`].
    pub(crate) fn answer(&self, index: usize, verdict: Verdict) {
        let waiting = self.state.lock().waiting.remove(index);
        let line = format!(
            "process {}: {} -> {verdict:?}",
            waiting.process.0, waiting.what
        );
        // FNV-1a: it only has to differ when the runs do.
        let mut state = self.state.lock();
        state.fingerprint = line.bytes().fold(state.fingerprint, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        drop(state);
        self.note(line);
        // Whoever has stopped waiting meanwhile has left its change behind.
        let _ = waiting.answer.send(verdict);
    }

    /// The process is dead: it asks for nothing more.
    pub(crate) fn kill(&self, process: ProcessId) {
        let mut state = self.state.lock();
        state.dead.insert(process);
        state.waiting.retain(|w| w.process != process);
        drop(state);
        self.note(format!("process {} is killed", process.0));
    }

    /// A change whose process no longer waits for it.
    pub(crate) fn leave(&self, late: Late) {
        self.state.lock().late.push(late);
    }

    /// How many changes may still take effect.
    pub(crate) fn late(&self) -> usize {
        self.state.lock().late.len()
    }

    /// The late change at `index` takes effect, or never will.
    pub(crate) async fn land(&self, index: usize, takes_effect: bool) {
        let late = self.state.lock().late.remove(index);
        if !takes_effect {
            return;
        }
        match late {
            Late::Put(path, payload, options) => {
                self.note(format!("late put of {path}"));
                // It may find its place taken.
                let _ = self.objects.put_opts(&path, payload, options).await;
            }
            Late::Delete(path) => {
                self.note(format!("late delete of {path}"));
                let _ = self.objects.delete(&path).await;
            }
        }
    }

    /// From now on nothing fails by chance.
    pub(crate) fn calm(&self) {
        self.state.lock().is_calm = true;
    }

    /// Whether faults are over.
    pub(crate) fn is_calm(&self) -> bool {
        self.state.lock().is_calm
    }

    /// Something happened that must not, in work that nobody waits for.
    pub(crate) fn violate(&self, what: String) {
        self.state.lock().violation.get_or_insert(what);
    }

    /// What happened that must not.
    pub(crate) fn violation(&self) -> Option<String> {
        self.state.lock().violation.clone()
    }

    /// Adds a line to the trace.
    pub(crate) fn note(&self, line: String) {
        self.state.lock().trace.push(line);
    }

    /// A number of all requests and their verdicts, to compare two runs.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.state.lock().fingerprint
    }

    /// What has happened so far.
    pub(crate) fn trace(&self) -> Vec<String> {
        self.state.lock().trace.clone()
    }
}

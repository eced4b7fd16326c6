//! One simulation: processes that run at the same time, and a scheduler that decides by the seed
//! which request is next, what becomes of it, and who dies.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use backend_core::Coordinator;
use backend_core::inspect::{Scope, VerifyOptions, verify};
use backend_core::store::Retention;
use futures::StreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::task::{JoinHandle, LocalSet};

use crate::leader::lead;
use crate::ledger::{Ledger, ROOT, Stored, Violation, label_of};
use crate::numbers::Numbers;
use crate::process::{End, Process};
use crate::reader::read;
use crate::tasks;
use crate::world::{ProcessId, Verdict, World};

/// Decisions of one simulation.
const STEPS: usize = 1_200;
/// Processes that are alive at a time.
const ALIVE_MAX: usize = 4;
/// Steps without faults in which the job has to come to an end.
const CALM_STEPS: usize = 20_000;

/// What one simulation did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Requests answered.
    pub requests: u64,
    /// Requests that failed, before or after they took effect, or were never answered.
    pub faults: u64,
    /// Processes killed.
    pub crashes: u64,
    /// Changes that took effect, or did not, after their process had stopped waiting.
    pub late: u64,
    /// Snapshots confirmed, adoptions among them.
    pub confirmed: u64,
    /// A number of all that happened, to compare two runs.
    pub trace: u64,
}

/// A simulation that showed what must not be.
#[derive(Debug)]
pub struct Failure {
    /// What.
    pub violation: Violation,
    /// All that happened until then.
    pub trace: Vec<String>,
}

struct Running {
    id: ProcessId,
    task: JoinHandle<Result<(), End>>,
    is_leader: bool,
    /// Out of a thousand; a sleeper is passed over most of the time.
    wakefulness: u32,
}

/// How rough the world is.
#[derive(Clone, Copy, Debug)]
struct Weather {
    fault: u32,
    crash: u32,
    second_leader: u32,
}

struct Scheduler {
    world: Arc<World>,
    ledger: Rc<RefCell<Ledger>>,
    numbers: Numbers,
    weather: Weather,
    running: Vec<Running>,
    next: u32,
    summary: Summary,
}

/// Runs the simulation of `seed`.
///
/// # Errors
/// What must not be, with all that happened until then.
pub fn simulate(seed: u64) -> Result<Summary, Failure> {
    simulate_with_trace(seed).map(|(summary, _)| summary)
}

/// [`simulate`], with a line for all that happened.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_with_trace(seed: u64) -> Result<(Summary, Vec<String>), Failure> {
    let world = World::new(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        // Encoding and merging wait for each other, so that they end in one order.
        .max_blocking_threads(1)
        .build()
        .expect("a runtime can be built");
    let outcome = LocalSet::new().block_on(&runtime, async {
        let mut scheduler = Scheduler::new(Arc::clone(&world));
        scheduler.storm().await?;
        scheduler.calm().await?;
        Ok(scheduler.summary)
    });
    match outcome {
        Ok(summary) => Ok((summary, world.trace())),
        Err(violation) => Err(Failure {
            violation,
            trace: world.trace(),
        }),
    }
}

impl Scheduler {
    fn new(world: Arc<World>) -> Self {
        let mut numbers = Numbers::new(world.seed);
        let weather = Weather {
            fault: [0, 20, 80, 200][numbers.below(4)],
            crash: [0, 3, 10, 25][numbers.below(4)],
            second_leader: [0, 5, 20][numbers.below(3)],
        };
        world.note(format!("{weather:?}"));
        Self {
            world,
            ledger: Rc::default(),
            numbers,
            weather,
            running: Vec::new(),
            next: 0,
            summary: Summary::default(),
        }
    }

    async fn storm(&mut self) -> Result<(), Violation> {
        for _ in 0..STEPS {
            self.settle().await?;
            self.step().await;
            if self.numbers.happens(30) {
                let running = self.numbers.below(self.running.len().max(1));
                if let Some(running) = self.running.get_mut(running) {
                    running.wakefulness = [0, 30, 1_000][self.numbers.below(3)];
                }
            }
        }
        self.settle().await
    }

    /// Lets everybody go on until all wait for a request, and looks whether all is well.
    async fn settle(&mut self) -> Result<(), Violation> {
        // Time stands until nobody can go on.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut ended = Vec::new();
        self.running.retain_mut(|running| {
            let is_ended = running.task.is_finished();
            if is_ended {
                let task = std::mem::replace(&mut running.task, tokio::spawn(async { Ok(()) }));
                ended.push((running.id, task));
            }
            !is_ended
        });
        for (id, task) in ended {
            let end = task.await.map_err(|e| Violation(e.to_string()))?;
            match end {
                Err(End::Violation(violation)) => return Err(violation),
                Err(End::Ordinary(why)) => {
                    self.world.note(format!("process {} ends: {why}", id.0));
                }
                Ok(()) => self.world.note(format!("process {} is done", id.0)),
            }
            // What it left running ends with it.
            self.world.kill(id);
        }
        self.check_store().await
    }

    async fn check_store(&self) -> Result<(), Violation> {
        if let Some(what) = self.world.violation() {
            return Err(Violation(what));
        }
        let stored = Stored::look(&self.world, &self.ledger).await?;
        self.ledger.borrow_mut().check_store(&stored)
    }

    async fn step(&mut self) {
        let leaders = self.running.iter().filter(|r| r.is_leader).count();
        let starts = match leaders {
            0 => 300,
            _ => self.weather.second_leader,
        };
        if self.running.len() < ALIVE_MAX && self.numbers.happens(starts) {
            return self.start(true);
        }
        if self.running.len() < ALIVE_MAX && self.numbers.happens(10) {
            return self.start(false);
        }
        if !self.running.is_empty() && self.numbers.happens(self.weather.crash) {
            let running = self.numbers.below(self.running.len());
            return self.kill(running);
        }
        if self.world.late() > 0 && self.numbers.happens(50) {
            let late = self.numbers.below(self.world.late());
            let takes_effect = self.numbers.happens(700);
            self.summary.late += 1;
            return self.world.land(late, takes_effect).await;
        }
        self.answer();
    }

    fn start(&mut self, is_leader: bool) {
        let id = ProcessId(self.next);
        self.next += 1;
        let process = Process::new(id, Arc::clone(&self.world), Rc::clone(&self.ledger));
        let what = if is_leader { "leader" } else { "reader" };
        self.world
            .note(format!("process {} starts: a {what}", id.0));
        let task = if is_leader {
            tokio::task::spawn_local(lead(process))
        } else {
            tokio::task::spawn_local(read(process))
        };
        self.running.push(Running {
            id,
            task,
            is_leader,
            wakefulness: 1_000,
        });
    }

    fn kill(&mut self, running: usize) {
        let running = self.running.swap_remove(running);
        self.world.kill(running.id);
        running.task.abort();
        self.summary.crashes += 1;
    }

    /// Answers a request of somebody who is awake.
    fn answer(&mut self) {
        let waiting = self.world.waiting();
        if waiting.is_empty() {
            return;
        }
        let index = self.numbers.below(waiting.len());
        let (process, _) = &waiting[index];
        let running = self.running.iter().find(|r| r.id == *process);
        let wakefulness = running.map_or(1_000, |r| r.wakefulness);
        if !self.numbers.happens(wakefulness) {
            return;
        }
        let verdict = if self.numbers.happens(self.weather.fault) {
            self.summary.faults += 1;
            [Verdict::FailBefore, Verdict::FailAfter, Verdict::Stall][self.numbers.below(3)]
        } else {
            Verdict::Pass
        };
        self.summary.requests += 1;
        self.world.answer(index, verdict);
    }

    /// All die, what is late lands, and a new coordinator has to find everything in order.
    async fn calm(&mut self) -> Result<(), Violation> {
        self.world.note("calm".to_owned());
        while !self.running.is_empty() {
            self.kill(0);
        }
        self.settle().await?;
        while self.world.late() > 0 {
            let takes_effect = self.numbers.happens(800);
            self.world.land(0, takes_effect).await;
        }
        self.world.calm();
        let id = ProcessId(self.next);
        let process = Process::new(id, Arc::clone(&self.world), Rc::clone(&self.ledger));
        let mut heir = tokio::task::spawn_local(inherit(process));
        let mut steps = 0;
        while !heir.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            while !self.world.waiting().is_empty() {
                self.world.answer(0, Verdict::Pass);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            steps += 1;
            if steps > CALM_STEPS {
                return Err(Violation("the job does not come to an end".to_owned()));
            }
        }
        let end = (&mut heir).await.map_err(|e| Violation(e.to_string()))?;
        match end {
            Ok(()) => {}
            Err(End::Violation(violation)) => return Err(violation),
            Err(End::Ordinary(why)) => {
                return Err(Violation(format!("without faults: {why}")));
            }
        }
        self.check_store().await?;
        self.summary.confirmed = self.ledger.borrow().confirmations;
        self.summary.trace = self.world.fingerprint();
        Ok(())
    }
}

/// Takes over, compares what it finds, and cleans up.
async fn inherit(mut process: Process) -> Result<(), End> {
    let store = process.open().await?;
    let mut coordinator = store.claim().await?;
    let adopted = coordinator.adopted().clone();
    let stored = Stored::look(&process.world, &process.ledger).await?;
    process.ledger.borrow_mut().check_store(&stored)?;
    if let Some(parent) = adopted.manifest().meta.parent {
        process.ledger.borrow().check_successor(parent.position)?;
    }
    process.ledger.borrow_mut().confirm(&adopted)?;
    let backend = process.backend()?;
    let mut tasks = tasks::restore(&backend, &adopted, 2).await?;
    let expected = process.ledger.borrow().contents(&label_of(&adopted))?;
    if let Some(difference) = tasks::contents(&mut tasks)?.difference(&expected) {
        return Err(Violation(format!("the heir restores: {difference}")).into());
    }
    for pin in store.pins().await? {
        store.unpin(pin.unique).await?;
    }
    for _ in 0..2 {
        collect_all(&mut coordinator).await?;
    }
    check_clean(&process, &store).await?;
    let report = verify(&store, Scope::Store, &VerifyOptions::default()).await?;
    match report.faults.first() {
        Some(fault) => Err(Violation(format!(
            "it does not verify: {} {}",
            fault.object, fault.error
        ))
        .into()),
        None => Ok(()),
    }
}

async fn collect_all(coordinator: &mut Coordinator) -> Result<(), End> {
    let options = backend_core::store::CollectOptions::default();
    let mut collection = coordinator.collection(&Retention::default(), options)?;
    collection.run().await?;
    Ok(())
}

/// Nothing is left but what some snapshot names.
async fn check_clean(process: &Process, store: &backend_core::SnapshotStore) -> Result<(), End> {
    let mut named = std::collections::BTreeSet::new();
    for summary in store.list().await? {
        let position = summary.position;
        named.insert(format!("{ROOT}/{}", position.object()));
        let snapshot = store.load(position.epoch, position.id).await?;
        let objects = snapshot.manifest().objects();
        named.extend(objects.iter().map(|object| format!("{ROOT}/{object}")));
    }
    for folder in ["snapshots", "segments", "parts"] {
        let prefix = Path::from(ROOT).join(folder);
        let mut listed = process.world.objects.list(Some(&prefix));
        while let Some(Ok(object)) = listed.next().await {
            let name = object.location.to_string();
            if !named.contains(&name) {
                return Err(Violation(format!("{name} is garbage that nobody collects")).into());
            }
        }
    }
    Ok(())
}

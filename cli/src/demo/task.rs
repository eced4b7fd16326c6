//! A parallel task: a thread that owns the state of its share of every operator's keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::thread::JoinHandle;

use futures::executor::block_on;
use stateline::prelude::*;
use stateline::{Error, ErrorKind, Result, SnapshotId, TaskRestore, TaskSnapshot, Trigger};

use crate::demo::operators::{Operator, OperatorTask, Results};
use crate::demo::source::Flight;

/// Batches that may wait for a task before the router waits.
const MESSAGES_WAITING: usize = 64;

/// A flight on its way to the operator that counts it under `key`.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) operator: Operator,
    pub(crate) key: StateKey,
    pub(crate) flight: Flight,
}

/// What a task is told, in order.
#[derive(Debug)]
pub(crate) enum Message {
    Records(Vec<Record>),
    /// The barrier of a snapshot: what came before it is in, what comes behind it is not.
    Snapshot(Trigger),
    Confirmed(SnapshotId),
    Aborted(SnapshotId),
    /// The input has ended: answer with the results.
    Finish(SyncSender<Result<Results>>),
}

/// What tasks tell the coordinator.
pub(crate) type Acknowledgement = Result<TaskSnapshot>;

/// The running tasks of the job.
#[derive(Debug)]
pub(crate) struct Tasks {
    inputs: Vec<SyncSender<Message>>,
    threads: Vec<JoinHandle<()>>,
    /// Set when the job dies: tasks then drop what they have, whatever still waits for them.
    dead: Arc<AtomicBool>,
}

/// What each operator restores, by task.
pub(crate) type Restores = Vec<(Operator, Vec<Option<TaskRestore>>)>;

impl Tasks {
    /// Opens the state of `tasks` tasks and starts them.
    pub(crate) fn start(
        backend: &dyn StateBackend,
        tasks: u32,
        mut restores: Restores,
        acknowledgements: &Sender<Acknowledgement>,
    ) -> Result<Self> {
        let dead = Arc::new(AtomicBool::new(false));
        let mut running = Self {
            inputs: Vec::new(),
            threads: Vec::new(),
            dead,
        };
        for task in 0..tasks {
            let mut operators = Vec::new();
            for (operator, restores) in &mut restores {
                let restore = restores.get_mut(task as usize).and_then(Option::take);
                let store = block_on(backend.open(operator.scope(task, tasks)?, restore))?;
                operators.push(OperatorTask::new(*operator, store)?);
            }
            let (input, messages) = sync_channel(MESSAGES_WAITING);
            let acknowledgements = acknowledgements.clone();
            let dead = Arc::clone(&running.dead);
            let thread = std::thread::Builder::new()
                .name(format!("task-{task}"))
                .spawn(move || run(operators, &messages, &acknowledgements, &dead))
                .map_err(|e| {
                    Error::new(ErrorKind::Transient, "a task's thread could not be started")
                        .because(e)
                })?;
            running.inputs.push(input);
            running.threads.push(thread);
        }
        Ok(running)
    }

    /// The number of tasks.
    pub(crate) fn count(&self) -> u32 {
        self.inputs.len() as u32
    }

    /// Sends a message to one task.
    pub(crate) fn send(&self, task: u32, message: Message) -> Result<()> {
        self.inputs[task as usize].send(message).map_err(|_| {
            Error::new(ErrorKind::Closed, "a task has ended before its input did")
                .with("task", task)
        })
    }

    /// Sends a message to every task.
    pub(crate) fn broadcast(&self, message: impl Fn() -> Message) -> Result<()> {
        (0..self.count()).try_for_each(|task| self.send(task, message()))
    }

    /// Ends the input and gathers what the tasks have counted.
    pub(crate) fn finish(self) -> Result<Results> {
        let (answer, answers) = sync_channel(self.inputs.len());
        self.broadcast(|| Message::Finish(answer.clone()))?;
        drop(answer);
        let mut results = Results::default();
        for part in answers {
            results.extend(part?);
        }
        Ok(results)
    }

    /// Takes everything from the tasks at once: no goodbye, no last snapshot.
    pub(crate) fn kill(mut self) {
        self.dead.store(true, Ordering::SeqCst);
        self.inputs.clear();
        for thread in self.threads.drain(..) {
            // A task that panicked is as dead as the others.
            let _ = thread.join();
        }
    }
}

fn run(
    mut operators: Vec<OperatorTask>,
    messages: &Receiver<Message>,
    acknowledgements: &Sender<Acknowledgement>,
    dead: &AtomicBool,
) {
    while let Ok(message) = messages.recv() {
        if dead.load(Ordering::SeqCst) {
            return;
        }
        if let Err(e) = handle(&mut operators, message, acknowledgements) {
            // Nobody listens only if the coordinator has gone, and then there is nothing to say.
            let _ = acknowledgements.send(Err(e));
            return;
        }
    }
}

fn handle(
    operators: &mut [OperatorTask],
    message: Message,
    acknowledgements: &Sender<Acknowledgement>,
) -> Result<()> {
    match message {
        Message::Records(records) => {
            for record in records {
                operators[record.operator as usize].process(&record.key, &record.flight)?;
            }
        }
        Message::Snapshot(trigger) => {
            for operator in operators {
                let pending = operator.store.snapshot(&trigger)?;
                let acknowledgements = acknowledgements.clone();
                // The write goes on while the task counts the next records.
                std::thread::spawn(move || {
                    let _ = acknowledgements.send(block_on(pending.write()));
                });
            }
        }
        Message::Confirmed(snapshot) => {
            for operator in operators {
                operator.store.confirm(snapshot);
            }
        }
        Message::Aborted(snapshot) => {
            for operator in operators {
                operator.store.abort(snapshot);
            }
        }
        Message::Finish(answer) => {
            let mut results = Results::default();
            for operator in operators {
                results.extend(operator.results()?);
            }
            let _ = answer.send(Ok(results));
        }
    }
    Ok(())
}

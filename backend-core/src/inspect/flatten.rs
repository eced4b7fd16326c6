//! Making a full snapshot of a chain, without a running task.

use crate::contract::{SnapshotMode, SnapshotStats, TaskPart, TaskSnapshot, Trigger};
use crate::error::{Error, ErrorKind, Result};
use crate::generation::Generation;
use crate::hash::KeyHasher;
use crate::inspect::hashers::known_hasher;
use crate::inspect::merged::Merged;
use crate::inspect::states::States;
use crate::limits::INLINE_BYTES_MAX;
use crate::manifest::SnapshotKind;
use crate::segment::{SegmentOptions, SegmentRef, Tier};
use crate::store::{Confirmed, Coordinator, Remote, Snapshot};
use crate::upload::{EntrySink, RunSpec, Uploader};

/// How a snapshot is flattened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlattenOptions {
    /// What the outcome is: [`SnapshotMode::Full`], which the job goes on from, or
    /// [`SnapshotMode::Savepoint`], which is its user's. Default: full.
    pub mode: SnapshotMode,
    /// How the new segments are encoded.
    pub segment: SegmentOptions,
    /// A task's whole state up to this size lies in the manifest instead of an object of its
    /// own. Default 8 KiB, at most 8 KiB.
    pub inline_bytes_max: u64,
    /// The job's own hash functions, if it has any. Default: none.
    pub hashers: Vec<KeyHasher>,
}

impl Default for FlattenOptions {
    fn default() -> Self {
        Self {
            mode: SnapshotMode::Full,
            segment: SegmentOptions::default(),
            inline_bytes_max: INLINE_BYTES_MAX,
            hashers: Vec::new(),
        }
    }
}

impl FlattenOptions {
    /// Whether the settings can be used.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] that says what is wrong.
    pub fn validate(&self) -> Result<()> {
        if self.mode == SnapshotMode::Incremental {
            return Err(Error::new(
                ErrorKind::Invalid,
                "a flattened snapshot is full or a savepoint",
            ));
        }
        if self.inline_bytes_max > INLINE_BYTES_MAX {
            return Err(Error::new(ErrorKind::Invalid, "a setting is out of bounds")
                .with("setting", "inline_bytes_max")
                .expected_got(
                    format_args!("at most {INLINE_BYTES_MAX}"),
                    self.inline_bytes_max,
                ));
        }
        self.segment.validate()
    }
}

/// Merges the chains of the last confirmed snapshot into new segments, and commits a snapshot of
/// the same content that refers to nothing older. Engine bytes, task ranges and parallelism stay
/// as they are. It reads and writes all of the state, task by task, in the memory of a few
/// segments.
///
/// What had expired at the old snapshot's clock is left out. The new one has a clock of its own,
/// the time of its trigger, so a restore also drops what has expired since.
///
/// No task has to run. If some do, their next snapshot is a full one, because their chains hold
/// segments that the new snapshot does not name.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the snapshot holds channel or operator state, is not aligned,
/// has values of several schema versions, or is hashed in a way that nobody knows;
/// those of [`FlattenOptions::validate`]; [`ErrorKind::Corrupt`] and
/// [`ErrorKind::NotFound`] name an object that is damaged or missing; those of
/// [`Coordinator::commit`], and [`ErrorKind::InDoubt`] while another commit is in doubt. Unless
/// its own commit is in doubt, the new snapshot has then been given up, and what was written for
/// it is left for collection. If it is, call [`Coordinator::commit`] with
/// [`Coordinator::in_doubt`] and no acknowledgements until it is not.
pub async fn flatten(coordinator: &mut Coordinator, options: &FlattenOptions) -> Result<Confirmed> {
    options.validate()?;
    if let Some(id) = coordinator.in_doubt() {
        return Err(Error::new(
            ErrorKind::InDoubt,
            "a commit is in doubt: commit it again first",
        )
        .with("snapshot", id));
    }
    let snapshot = coordinator.confirmed().clone();
    check_can_flatten(&snapshot)?;
    let remote = coordinator.remote().clone();
    let trigger = coordinator.trigger(options.mode)?;
    let written = write_all(&remote, &snapshot, &trigger, options).await;
    let committed = match written {
        Ok(acks) => {
            let engine = snapshot.engine().clone();
            coordinator.commit(trigger.id, acks, engine).await
        }
        Err(e) => Err(e),
    };
    if committed.is_err() && coordinator.in_doubt().is_none() {
        // A coordinator that was fenced refuses, and has given up everything anyway.
        let _ = coordinator.abort(trigger.id);
    }
    committed
}

fn check_can_flatten(snapshot: &Snapshot) -> Result<()> {
    let refused =
        |message| Error::new(ErrorKind::Unsupported, message).with("snapshot", snapshot.position());
    match snapshot.kind() {
        SnapshotKind::Aligned | SnapshotKind::Savepoint => {}
        kind => {
            return Err(
                refused("only aligned snapshots and savepoints are flattened").with("kind", kind),
            );
        }
    }
    for part in &snapshot.manifest().parts {
        if !part.channels.is_empty() || !part.operator_states.is_empty() {
            return Err(refused("a task has channel or operator state")
                .with("operator", &part.task.operator)
                .with("task", part.task.task));
        }
    }
    for operator in snapshot.operators() {
        let several = operator.states.iter().find(|s| s.versions.len() > 1);
        if let Some(state) = several {
            return Err(refused("a state has values of several schema versions")
                .with("operator", &operator.id)
                .with("state", &state.descriptor.name));
        }
    }
    Ok(())
}

async fn write_all(
    remote: &Remote,
    snapshot: &Snapshot,
    trigger: &Trigger,
    options: &FlattenOptions,
) -> Result<Vec<TaskSnapshot>> {
    let mut acks = Vec::new();
    for operator in snapshot.operators() {
        let hasher = known_hasher(operator.hash, &options.hashers)
            .map_err(|e| e.with("operator", &operator.id))?;
        for part in snapshot.manifest().parts_of(&operator.id) {
            let task = Flattening {
                uploader: Uploader {
                    storage: remote.storage.clone(),
                    environment: remote.env.clone(),
                    runtime: remote.io.clone(),
                    options: options.segment.clone(),
                },
                part: TaskPart::clone(&part.task),
                states: States::of(operator),
                hasher,
                clock_ms: snapshot.manifest().meta.ttl_clock_ms,
                inline_bytes_max: options.inline_bytes_max,
            };
            let trigger = *trigger;
            let written = remote.io.run(async move { task.write(&trigger).await });
            let at = |e: Error| {
                e.with("operator", &operator.id)
                    .with("task", part.task.task)
            };
            acks.push(written.await.map_err(at)?);
        }
    }
    Ok(acks)
}

/// One task's chain on its way into new segments.
struct Flattening {
    uploader: Uploader,
    part: TaskPart,
    states: States,
    hasher: KeyHasher,
    clock_ms: u64,
    inline_bytes_max: u64,
}

impl Flattening {
    async fn write(self, trigger: &Trigger) -> Result<TaskSnapshot> {
        let Self {
            uploader,
            part,
            states,
            hasher,
            clock_ms,
            inline_bytes_max,
        } = self;
        let spec = RunSpec {
            epoch: trigger.epoch,
            snapshot: trigger.id,
            task: part.task,
            clip: part.range,
            generations: generations(&part.segments),
            tier: Tier::BASE,
            run: 0,
            inline_bytes_max,
        };
        let storage = uploader.storage.clone();
        let merged = Merged::open(&part, part.range, hasher, &storage, &uploader.runtime);
        let produce = move |sink: &mut EntrySink<'_>| write_merged(merged, &states, clock_ms, sink);
        let uploaded = uploader.write_run(spec, produce).await?;
        let stats = SnapshotStats {
            entries_new: uploaded.entries(),
            bytes_new: uploaded.bytes(),
            segments: uploaded.segments.len() as u32,
            puts: uploaded.puts,
            is_full: true,
            ..SnapshotStats::default()
        };
        Ok(TaskSnapshot {
            epoch: trigger.epoch,
            id: trigger.id,
            attempt: trigger.attempt,
            part: TaskPart {
                segments: uploaded.segments,
                ..part
            },
            stats,
        })
    }
}

fn generations(segments: &[SegmentRef]) -> (Generation, Generation) {
    let all = segments.iter().map(|segment| segment.meta.generations);
    let lowest = all.clone().map(|(lowest, _)| lowest).min();
    let highest = all.map(|(_, highest)| highest).max();
    (lowest.unwrap_or_default(), highest.unwrap_or_default())
}

fn write_merged(
    mut merged: Merged,
    states: &States,
    clock_ms: u64,
    sink: &mut EntrySink<'_>,
) -> Result<()> {
    while merged.advance()? {
        let raw = merged.current().expect("the merge is at an entry");
        let entry = raw.entry();
        states
            .check(&entry.key, &raw)
            .map_err(|e| merged.place(e))?;
        if entry.expires_ms.is_none_or(|ms| ms > clock_ms) {
            sink(&entry, 0)?;
        }
    }
    Ok(())
}
